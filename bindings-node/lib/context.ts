/** What a handler may do and know while it works. */

import { type Caller, callerOf } from "./auth.js";
import { jsonOf } from "./content.js";
import { attempt, ClosedError, RequestCancelledError, RpcError } from "./errors.js";
import { ask, hasReported, hub, watch } from "./hub.js";
import type { NativeRequestInfo } from "./native.js";
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
} from "./protocol.js";
import { elicitForm, elicitUrl, listRoots, sample, type Question } from "./questions.js";
import { type Parsed, type Schema, validatorOf } from "./schemas.js";
import type { Server } from "./server.js";

/** The answer to a form. */
export type ElicitResult<Content> =
  { action: "accept"; content: Content } | { action: "decline" | "cancel"; content?: undefined };

/** How a question is put. */
export interface AskOptions {
  /**
   * Names the answer for a replay in another process (2026-07-28); without one, the number of the question does. Give
   * questions keys where their order may differ from run to run.
   */
  key?: string;
}

/** The HTTP request that a mounted server was given. */
export type MountedRequest = unknown;

/**
 * The request that a handler serves.
 *
 * After a suspension everything here is that of the client's latest request. All of it may be used until the handler
 * ends; then reports say nothing, and questions fail.
 */
export class Context {
  readonly #call: number;
  readonly #server: Server;
  #controller: AbortController | undefined;

  /** @internal */
  constructor(call: number, server: Server) {
    this.#call = call;
    this.#server = server;
  }

  /** The server that the handler belongs to. */
  get server(): Server {
    return this.#server;
  }

  /** Aborted when the client cancels the request, or its connection ends (`basic/utilities/cancellation`). */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      watch(this.#call, () => {
        controller.abort(new RequestCancelledError("request was cancelled"));
      });
    }
    return this.#controller.signal;
  }

  /** Whether the request was cancelled, or has ended. */
  get cancelled(): boolean {
    return hub.callCancelled(this.#call);
  }

  /**
   * Reports progress, if the client wants it (`basic/utilities/progress`). It must increase with each report; floods
   * are thinned, and the last report is always delivered.
   */
  progress(progress: number, total?: number, message?: string): void {
    attempt(() => {
      hub.progress(this.#call, progress, total, message);
    });
    hasReported();
  }

  /**
   * Sends a log message, if the client wants messages of this level (`server/utilities/logging`). `data` is any JSON value.
   *
   * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
   */
  log(level: LogLevel, data: unknown, logger?: string): void {
    const json = JSON.stringify(data) as string | undefined;
    attempt(() => {
      hub.log(this.#call, level, logger, json ?? "null");
    });
    hasReported();
  }

  /** {@link log}, at level `debug`. */
  debug(data: unknown, logger?: string): void {
    this.log("debug", data, logger);
  }

  /** {@link log}, at level `info`. */
  info(data: unknown, logger?: string): void {
    this.log("info", data, logger);
  }

  /** {@link log}, at level `notice`. */
  notice(data: unknown, logger?: string): void {
    this.log("notice", data, logger);
  }

  /** {@link log}, at level `warning`. */
  warning(data: unknown, logger?: string): void {
    this.log("warning", data, logger);
  }

  /** {@link log}, at level `error`. */
  error(data: unknown, logger?: string): void {
    this.log("error", data, logger);
  }

  /** {@link log}, at level `critical`. */
  critical(data: unknown, logger?: string): void {
    this.log("critical", data, logger);
  }

  /** {@link log}, at level `alert`. */
  alert(data: unknown, logger?: string): void {
    this.log("alert", data, logger);
  }

  /** {@link log}, at level `emergency`. */
  emergency(data: unknown, logger?: string): void {
    this.log("emergency", data, logger);
  }

  /**
   * Sends a notification that no revision of the protocol defines, on the stream of the call. In a session with a handshake,
   * the handlers of events and of custom notifications send it on the session's own stream.
   *
   * Does nothing once the request has ended, or where there is none. A client that does not read may lose notifications.
   *
   * @param method Its method, such as `acme/searching`.
   * @param params Its parameters: a JSON object.
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
   * Asks the user with a form, in mid-call, on every revision (`client/elicitation`).
   *
   * @param message What is asked, in words for the user.
   * @param schema An object schema with properties of plain types; content is held against it.
   * @throws NotSupportedError if the client does not support elicitation, InputRequestFailedError if it returns an error,
   *   RequestTimedOutError, RequestCancelledError if the request was cancelled.
   */
  async elicit<const S extends Schema>(
    message: string,
    schema: S,
    options?: AskOptions,
  ): Promise<ElicitResult<Parsed<S>>>;
  async elicit(message: string): Promise<ElicitResult<Record<string, unknown>>>;
  async elicit(message: string, schema?: Schema, options?: AskOptions): Promise<ElicitResult<unknown>> {
    const answer = (await this.#ask(elicitForm(message, schema), options)) as {
      action: ElicitAction;
      content?: unknown;
    };
    if (answer.action !== "accept") {
      return { action: answer.action };
    }
    const content = answer.content ?? {};
    const validate = schema === undefined ? undefined : validatorOf(schema);
    return { action: "accept", content: validate === undefined ? content : await validate(content) };
  }

  /**
   * Asks the user to visit a page, for what must not pass through the client (`client/elicitation`, URL mode).
   * Fails as {@link elicit} does.
   */
  async elicitUrl(
    message: string,
    url: string,
    options?: AskOptions & {
      /** What {@link Server.notifyElicitationComplete} tells the end of the visit under (2025-11-25). */
      elicitationId?: string;
    },
  ): Promise<{ action: ElicitAction }> {
    const answer = await this.#ask(elicitUrl(message, url, options?.elicitationId), options);
    return { action: (answer as { action: ElicitAction }).action };
  }

  /**
   * Asks the client's model (`client/sampling`). Fails as {@link elicit} does.
   *
   * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
   */
  async sample(params: CreateMessageParams, options?: AskOptions): Promise<CreateMessageResult> {
    return (await this.#ask(sample(params), options)) as CreateMessageResult;
  }

  /**
   * Asks for the client's root directories (`client/roots`). Fails as {@link elicit} does.
   *
   * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
   */
  async listRoots(options?: AskOptions): Promise<Root[]> {
    return ((await this.#ask(listRoots(), options)) as { roots: Root[] }).roots;
  }

  /**
   * Sends the client a request that no revision of the protocol defines, and resolves to its result, a JSON object. Fails as
   * {@link elicit} does.
   *
   * No capability says that a client serves the method. Toward a client of 2026-07-28 the request is one of the result's
   * `inputRequests`, and a client that does not know it fails the whole call: so send it only to clients that declare an
   * extension which has it.
   *
   * @param method Its method, such as `acme/pick`.
   * @param params Its parameters: a JSON object.
   * @throws UsageError if the protocol defines the method, or `params` is not a JSON object.
   */
  async sendRequest(method: string, params?: object, options?: AskOptions): Promise<Record<string, unknown>> {
    return (await this.#ask({ method, params }, options)) as Record<string, unknown>;
  }

  /**
   * Closes the response's stream while the call goes on; the client comes back for the rest (2025-11-25,
   * `basic/transports`, polling). Does nothing on other revisions and transports.
   */
  closeStream(): void {
    attempt(() => {
      hub.closeStream(this.#call);
    });
    hasReported();
  }

  /** The client, as it names itself. */
  get client(): Implementation | undefined {
    return parsed(this.#info.client) as Implementation | undefined;
  }

  /** What the client can do. */
  get clientCapabilities(): ClientCapabilities {
    return JSON.parse(this.#info.clientCapabilities) as ClientCapabilities;
  }

  /** The settings with which the client declared an extension; `undefined` if it did not. */
  clientExtension(identifier: string): object | undefined {
    const { extensions } = this.clientCapabilities;
    const settings: unknown = extensions?.[identifier];
    return typeof settings === "object" && settings !== null && !Array.isArray(settings) ? settings : undefined;
  }

  /**
   * Checks that the client declared an extension, where only a part of a handler needs it.
   *
   * @throws RpcError -32021, which names the extension; to be let through.
   */
  requireExtension(identifier: string): void {
    if (this.clientExtension(identifier) === undefined) {
      throw new RpcError(-32021, `Missing required client capability: extension ${identifier}`, {
        requiredCapabilities: { extensions: { [identifier]: {} } },
      });
    }
  }

  /** The revision that the request follows. */
  get revision(): Revision {
    return this.#info.revision as Revision;
  }

  /** The request's JSON-RPC id. */
  get requestId(): string | number {
    return JSON.parse(this.#info.requestId) as string | number;
  }

  /** The HTTP session's id, where there are such sessions. */
  get sessionId(): string | undefined {
    return this.#info.sessionId;
  }

  /** The headers of the HTTP request, where there is one. */
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
   * The request as the program's own HTTP server has it, where the server is mounted: an `IncomingMessage` for
   * {@link Server.handler}, a `Request` for {@link Server.fetch}.
   */
  get request(): MountedRequest {
    const { exchange } = this.#info;
    return exchange === undefined ? undefined : this.#server.mounted(exchange);
  }

  /** Who calls, where the server is protected ({@link HttpSettings.auth}); the token itself is given to nobody. */
  get auth(): Caller | undefined {
    const { auth } = this.#info;
    return auth === undefined ? undefined : callerOf(auth);
  }

  /** The request's `_meta`. */
  get meta(): Meta {
    return (parsed(this.#info.meta) ?? {}) as Meta;
  }

  /** Answers to the questions that the handler returned, by their keys; `undefined` in its first run. */
  get inputResponses(): Record<string, unknown> | undefined {
    return parsed(this.#info.inputResponses) as Record<string, unknown> | undefined;
  }

  /** What the handler's last run wanted to remember. */
  get requestState(): string | undefined {
    return this.#info.requestState;
  }

  get #info(): NativeRequestInfo {
    const info = hub.callInfo(this.#call);
    if (info === null) {
      throw new ClosedError("the request has ended");
    }
    return info;
  }

  async #ask({ method, params }: Question, options: AskOptions | undefined): Promise<unknown> {
    const json = params === undefined ? undefined : JSON.stringify(params);
    return JSON.parse(await ask(this.#call, method, json, options?.key));
  }
}

function parsed(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json);
}
