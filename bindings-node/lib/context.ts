/** The request context of handlers: progress, logging, input requests, and information about the client. */

import { AsyncResource } from "node:async_hooks";

import { type Caller, callerOf } from "./auth.js";
import { jsonOf } from "./content.js";
import { attempt, ClosedError, RequestCancelledError, RpcError, ToolError, UsageError } from "./errors.js";
import { requestInput, hasReported, hub, sessionStateOf, watch } from "./hub.js";
import type { HttpExchange } from "./http.js";
import type { NativeRequestInfo } from "./native.js";
import type { Attributes } from "./open_telemetry.js";
import type {
  ClientCapabilities,
  CreateMessageParams,
  CreateMessageResult,
  ElicitAction,
  Implementation,
  LogLevel,
  Meta,
  Revision,
  Root,
  TransportKind,
} from "./protocol.js";
import { elicitUrl, formRequest, listRoots, sample, type InputRequest } from "./input_requests.js";
import { formOf, type SchemaOutput, type Schema, SINGLE_FIELD, validationOf } from "./schemas.js";
import { SentRequest } from "./sent_requests.js";
import type { Server } from "./server.js";

/** The result of an elicitation: the action, and the content of the form if the user accepted. */
export type ElicitResult<Content> =
  { action: "accept"; content: Content } | { action: "decline" | "cancel"; content?: undefined };

/** Options of an input request. */
export interface InputRequestOptions {
  /**
   * Identifies the answer if the handler is replayed in another process (2026-07-28). Default: the number of the input
   * request. Set it if the order of input requests can differ between runs.
   */
  key?: string;
}

/** The HTTP request of a mounted server. */
export type MountedRequest = unknown;

/**
 * The request context of a handler.
 *
 * Valid until the handler ends. After that, reports do nothing and input requests fail. If a call is suspended and
 * resumed (2026-07-28), the members are those of the client's latest request.
 *
 * @typeParam C Type of {@link context}: that of the server, `Server<C>`.
 * @typeParam State Type of {@link state}: that of the server, `Server<C, State>`.
 */
export class Context<C = unknown, State = unknown> {
  readonly #call: number;
  readonly #server: Server<C, State>;
  #controller: AbortController | undefined;
  /** The value of the program, in an array once it is known. */
  #value: [unknown] | undefined;

  /** @internal */
  constructor(call: number, server: Server<C, State>) {
    this.#call = call;
    this.#server = server;
  }

  /** Number of the call. @internal */
  get call(): number {
    return this.#call;
  }

  /** The server. */
  get server(): Server<C, State> {
    return this.#server;
  }

  /** The {@link ServerOptions.state} of the server. */
  get state(): State {
    return this.#server.state;
  }

  /** Aborted when the client cancels the request, or its connection ends (`basic/utilities/cancellation`). */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const abort = () => {
        controller.abort(new RequestCancelledError("request was cancelled"));
      };
      // Listeners run in the asynchronous context of the handler.
      watch(this.#call, AsyncResource.bind(abort));
    }
    return this.#controller.signal;
  }

  /** Whether the request was cancelled, or has ended. */
  get cancelled(): boolean {
    return hub.callCancelled(this.#call);
  }

  /**
   * Reports progress to the client (`basic/utilities/progress`). Does nothing if the client did not request progress.
   * Reports beyond `progressRate` are dropped, except the last one.
   *
   * @param progress Progress so far. Must increase with each report.
   * @param total Value of `progress` at the end, if known.
   * @param message Description of the current step.
   */
  progress(progress: number, total?: number, message?: string): void {
    attempt(() => {
      hub.progress(this.#call, progress, total, message);
    });
    hasReported();
  }

  /**
   * Sends a log message to the client, if it requested this level (`server/utilities/logging`).
   *
   * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
   *
   * @param level Severity (RFC 5424).
   * @param data The message: any JSON value.
   * @param logger Name of the logger.
   */
  log(level: LogLevel, data: unknown, logger?: string): void {
    const json = JSON.stringify(data) as string | undefined;
    attempt(() => {
      hub.log(this.#call, level, logger, json ?? "null");
    });
    hasReported();
  }

  /** Sends a log message at level `debug`; see {@link log}. */
  debug(data: unknown, logger?: string): void {
    this.log("debug", data, logger);
  }

  /** Sends a log message at level `info`; see {@link log}. */
  info(data: unknown, logger?: string): void {
    this.log("info", data, logger);
  }

  /** Sends a log message at level `notice`; see {@link log}. */
  notice(data: unknown, logger?: string): void {
    this.log("notice", data, logger);
  }

  /** Sends a log message at level `warning`; see {@link log}. */
  warning(data: unknown, logger?: string): void {
    this.log("warning", data, logger);
  }

  /** Sends a log message at level `error`; see {@link log}. */
  error(data: unknown, logger?: string): void {
    this.log("error", data, logger);
  }

  /** Sends a log message at level `critical`; see {@link log}. */
  critical(data: unknown, logger?: string): void {
    this.log("critical", data, logger);
  }

  /** Sends a log message at level `alert`; see {@link log}. */
  alert(data: unknown, logger?: string): void {
    this.log("alert", data, logger);
  }

  /** Sends a log message at level `emergency`; see {@link log}. */
  emergency(data: unknown, logger?: string): void {
    this.log("emergency", data, logger);
  }

  /**
   * Sends a custom notification, one that no revision of the protocol defines, on the stream of the request.
   *
   * With revisions up to 2025-11-25, handlers of events and of custom notifications send it on the stream of the
   * session. Does nothing after the request has ended. If the client does not read fast enough, notifications are
   * dropped.
   *
   * @param method Method of the notification, such as `acme/searching`.
   * @param params Parameters: a JSON object.
   * @throws UsageError if the protocol defines the method, or `params` is not a JSON object.
   */
  notify(method: string, params?: object): void {
    const json = params === undefined ? undefined : jsonOf(params);
    attempt(() => {
      hub.notify(this.#call, method, json);
    });
    hasReported();
  }

  /**
   * Asks the user to fill in a form (`client/elicitation`).
   *
   * @param message Message to the user.
   * @param schema The form: the schema of an object with properties of primitive types, or that of a single value, such
   *   as `z.boolean()`, which is then the content. The content is validated against it. Without a schema the user can only
   *   accept or decline.
   * @throws NotSupportedError if the client does not support elicitation.
   * @throws InputRequestFailedError if the client returns an error.
   * @throws RequestTimedOutError if no response arrives in time.
   * @throws RequestCancelledError if the request is cancelled.
   */
  async elicit<const S extends Schema>(
    message: string,
    schema: S,
    options?: InputRequestOptions,
  ): Promise<ElicitResult<SchemaOutput<S>>>;
  async elicit(message: string): Promise<ElicitResult<Record<string, unknown>>>;
  async elicit(message: string, schema?: Schema, options?: InputRequestOptions): Promise<ElicitResult<unknown>> {
    const form = schema === undefined ? undefined : formOf(schema, "`schema` of the form");
    const answer = (await this.#requestInput(formRequest(message, form), options)) as {
      action: ElicitAction;
      content?: Record<string, unknown>;
    };
    if (answer.action !== "accept") {
      return { action: answer.action };
    }
    const fields = answer.content ?? {};
    const content = form?.isSingle === true ? fields[SINGLE_FIELD] : fields;
    const refused = (issues: string) => new ToolError(`Invalid user input: ${issues}`);
    const validate = schema === undefined ? undefined : validationOf(schema, "`schema` of the form", refused);
    return { action: "accept", content: validate === undefined ? content : await validate(content) };
  }

  /**
   * Asks the user to open a URL, for data that must not pass through the client (`client/elicitation`, URL mode).
   * Throws the errors of {@link elicit}.
   */
  async elicitUrl(
    message: string,
    url: string,
    options?: InputRequestOptions & {
      /** Id for {@link Server.notifyElicitationComplete} (2025-11-25). */
      elicitationId?: string;
    },
  ): Promise<{ action: ElicitAction }> {
    const answer = await this.#requestInput(elicitUrl(message, url, options?.elicitationId), options);
    return { action: (answer as { action: ElicitAction }).action };
  }

  /**
   * Requests a completion from the client's model (`client/sampling`). Throws the errors of {@link elicit}.
   *
   * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
   */
  async sample(params: CreateMessageParams, options?: InputRequestOptions): Promise<CreateMessageResult> {
    return (await this.#requestInput(sample(params), options)) as CreateMessageResult;
  }

  /**
   * Requests the client's root directories (`client/roots`). Throws the errors of {@link elicit}.
   *
   * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
   */
  async listRoots(options?: InputRequestOptions): Promise<Root[]> {
    return ((await this.#requestInput(listRoots(), options)) as { roots: Root[] }).roots;
  }

  /**
   * Sends the client a custom request, one that no revision of the protocol defines, and resolves to its result, a JSON
   * object. Throws the errors of {@link elicit}.
   *
   * No capability declares such methods. A client of 2026-07-28 that does not know the method fails the whole call,
   * because the request is part of the result's `inputRequests`. Send it only to clients that declare an extension
   * which defines it.
   *
   * @param method Method of the request, such as `acme/pick`.
   * @param params Parameters: a JSON object.
   * @throws UsageError if the protocol defines the method, or `params` is not a JSON object.
   */
  async sendRequest(method: string, params?: object, options?: InputRequestOptions): Promise<Record<string, unknown>> {
    return (await this.#requestInput({ method, params }, options)) as Record<string, unknown>;
  }

  /**
   * Closes the response stream while the call continues. The client reconnects to get the result.
   *
   * Only for 2025-11-25 over HTTP (`basic/transports`, polling); does nothing otherwise.
   */
  closeStream(): void {
    attempt(() => {
      hub.closeStream(this.#call);
    });
    hasReported();
  }

  /** Name of the called tool, as the client knows it: with the prefix of a mount. `undefined` in other handlers. */
  get toolName(): string | undefined {
    return this.#info.toolName;
  }

  /** Name of the requested prompt, as the client knows it. `undefined` in other handlers. */
  get promptName(): string | undefined {
    return this.#info.promptName;
  }

  /** The URI that the client reads, also of a resource template. `undefined` in handlers that serve no resource. */
  get uri(): string | undefined {
    return this.#info.uri;
  }

  /** Name and version of the client; `undefined` if it sent none. */
  get client(): Implementation | undefined {
    return parsed(this.#info.client) as Implementation | undefined;
  }

  /** The capabilities that the client declared. */
  get clientCapabilities(): ClientCapabilities {
    return JSON.parse(this.#info.clientCapabilities) as ClientCapabilities;
  }

  /** Returns the settings with which the client declared an extension; `undefined` if it did not declare it. */
  clientExtension(identifier: string): object | undefined {
    const { extensions } = this.clientCapabilities;
    const settings: unknown = extensions?.[identifier];
    return typeof settings === "object" && settings !== null && !Array.isArray(settings) ? settings : undefined;
  }

  /**
   * Requires that the client declared an extension. For handlers that need the extension only in some cases.
   *
   * @throws RpcError if the client did not declare it (-32021). Do not catch the error: it is the response to the
   *   client.
   */
  requireExtension(identifier: string): void {
    if (this.clientExtension(identifier) === undefined) {
      throw new RpcError(-32021, `Missing required client capability: extension ${identifier}`, {
        requiredCapabilities: { extensions: { [identifier]: {} } },
      });
    }
  }

  /** The protocol revision of the request. */
  get revision(): Revision {
    return this.#info.revision as Revision;
  }

  /** The transport of the request. */
  get transport(): TransportKind {
    return this.#info.transport as TransportKind;
  }

  /** The JSON-RPC id of the request. */
  get requestId(): string | number {
    return JSON.parse(this.#info.requestId) as string | number;
  }

  /** The id of the HTTP session; `undefined` if there is none. */
  get sessionId(): string | undefined {
    return this.#info.sessionId;
  }

  /**
   * Values of the program that live as long as the client's session; empty at first.
   *
   * On stdio, in memory and on custom transports a session is the connection, over HTTP what `Mcp-Session-Id` names. The
   * values are released when it ends; their number and size are up to the program. They stay in this thread, also if
   * several processes serve the session. Calls of a client may run at the same time.
   *
   * @throws NotSupportedError if there is no session: 2026-07-28 has none on any transport, because state that spans
   *   requests is named by an identifier that the client passes (`basic`, statelessness), and neither has a `stateless`
   *   HTTP server; or if the session has ended.
   */
  get sessionState(): Map<string, unknown> {
    return sessionStateOf(this.#call);
  }

  /** The HTTP headers of the request; `undefined` on other transports. */
  get headers(): Headers | undefined {
    const { headers } = this.#info;
    if (headers === undefined) {
      return undefined;
    }
    const result = new Headers();
    for (let index = 0; index + 1 < headers.length; index += 2) {
      result.append(headers[index] as string, headers[index + 1] as string);
    }
    return result;
  }

  /**
   * The HTTP request of a mounted server, as it was passed to {@link Server.handler} (an `IncomingMessage`, or a request
   * of Express or Fastify) or to {@link Server.fetch} (a `Request`); `undefined` on other transports.
   */
  get request(): MountedRequest {
    return this.#exchange?.request;
  }

  /**
   * The value of the program for this call: the `context` that it passed with the request to {@link Server.handler} or
   * {@link Server.fetch}. If it passed none, and on other transports, it is what {@link ServerOptions.createContext}
   * returns, which is called when the value is first read; without that function, `undefined`.
   */
  get context(): C {
    if (this.#value === undefined) {
      const given = this.#exchange?.value;
      // While the value is created, there is none.
      this.#value = [given];
      if (given === undefined) {
        try {
          this.#value = [this.#server.createContext(this)];
        } catch (error) {
          this.#value = undefined;
          throw error;
        }
      }
    }
    return this.#value[0] as C;
  }

  /**
   * The authenticated caller; `undefined` if there is none. Identified by its access token ({@link HttpSettings.auth}),
   * by the program that the server is mounted in ({@link MountedRequestOptions.auth}), or by the custom transport ({@link
   * ChannelOptions.principal}).
   */
  get auth(): Caller | undefined {
    const { auth } = this.#info;
    return auth === undefined ? undefined : callerOf(auth);
  }

  /**
   * Requires that the caller has these scopes: for scopes that depend on the arguments. Otherwise use the option `scopes` of
   * the feature. Where callers are not authenticated, each has all scopes.
   *
   * @throws RpcError if a scope is missing. Do not catch it: it names the scopes that the client must request, over HTTP with
   *   status 403 and a `WWW-Authenticate` challenge.
   */
  requireScopes(...scopes: string[]): void {
    for (const scope of scopes) {
      if (typeof scope !== "string") {
        throw new UsageError("requireScopes: each scope must be a string, as an argument of its own");
      }
    }
    const lacks = attempt(() => hub.callMissingScopes(this.#call, scopes));
    if (lacks !== null) {
      const { code, message, data } = JSON.parse(lacks) as { code: number; message: string; data?: unknown };
      throw new RpcError(code, message, data);
    }
  }

  /** `_meta` of the request. */
  get meta(): Meta {
    return (parsed(this.#info.meta) ?? {}) as Meta;
  }

  /** The client's answers to the input requests that the handler returned, by key; `undefined` in the first run. */
  get inputResponses(): Record<string, unknown> | undefined {
    return parsed(this.#info.inputResponses) as Record<string, unknown> | undefined;
  }

  /** The `state` of the {@link InputRequired} that the handler returned. */
  get requestState(): string | undefined {
    return this.#info.requestState;
  }

  get #exchange(): HttpExchange | undefined {
    const { exchange } = this.#info;
    return exchange === undefined ? undefined : this.#server.mounted(exchange);
  }

  get #info(): NativeRequestInfo {
    const info = hub.callInfo(this.#call);
    if (info === null) {
      throw new ClosedError("the request has ended");
    }
    return info;
  }

  async #requestInput({ method, params }: InputRequest, options: InputRequestOptions | undefined): Promise<unknown> {
    const span = this.#server.isTracingEnabled ? this.#beginSpan(method, params) : undefined;
    if (span === undefined) {
      return this.#send(method, params, options);
    }
    try {
      const answer = await this.#send(method, span.inParams(params), options);
      span.succeeded(answer);
      return answer;
    } catch (error) {
      span.failed(error);
      throw error;
    }
  }

  #beginSpan(method: string, params: object | undefined): SentRequest | undefined {
    return SentRequest.begin(method, params, () => {
      const attributes = hub.spanAttributes(this.#call);
      return attributes === null ? {} : (JSON.parse(attributes) as Attributes);
    });
  }

  async #send(method: string, params: object | undefined, options: InputRequestOptions | undefined): Promise<unknown> {
    const json = params === undefined ? undefined : JSON.stringify(params);
    return JSON.parse(await requestInput(this.#call, method, json, options?.key));
  }
}

function parsed(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}
