/** The handlers of a client, which answer the server's input requests and receive its notifications. */

import { jsonOf } from "../content.js";
import { attempt, type ErrorKind, errorOf, factsOf, McplineError, RpcError, ToolCallRefusedError } from "../errors.js";
import { native } from "../native.js";
import {
  type ClientRequestRecord,
  type OnClientRequestEnd,
  reportClientRequest,
  type RequestLogger,
  requestListener,
} from "../request_log.js";
import type { AuthSetup } from "./auth.js";
import type {
  CallToolResult,
  CreateMessageParams,
  CreateMessageResult,
  ElicitAnswer,
  ElicitParams,
  LogMessage,
  Notification,
  Root,
  ToolAnnotations,
} from "../protocol.js";
import type { Attributes } from "../open_telemetry.js";
import type { ClientExtension, ReceivedResult } from "../extension.js";
import type { Channels } from "../channel.js";
import { Backlog, BacklogLimit } from "./backlog.js";
import { About } from "./event_kinds.js";
import { type SortedMiddleware, sortedMiddleware } from "./middleware.js";
import { RequestTracing } from "./request_tracing.js";
import type { NativeClient } from "./native.js";
import type { ClientOptions, Progress } from "./options.js";

type Awaitable<T> = T | Promise<T>;

/** Context of a handler that answers a request of the server. */
export interface InputRequestContext {
  /** Aborted when the server cancels the request, or the answer is no longer needed. */
  readonly signal: AbortSignal;
}

/** Result of an elicitation: the complete result, or only the action if there is no content. */
export type ElicitReturn = ElicitAnswer | "accept" | "decline" | "cancel";

/** Result of a sampling request: text, or the complete result; `null` if the user refuses. */
export type SampleReturn = string | CreateMessageResult | null;

/** A tool call that is about to be sent. */
export interface ToolCall {
  /** Unique number of the call in this process. */
  readonly id: number;
  /** Name of the tool. */
  readonly name: string;
  /** Arguments of the tool. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Annotations of the tool, if it was listed. Do not rely on them unless you trust the server. */
  readonly annotations?: ToolAnnotations;
}

/** The end of a tool call, with a result or an error. */
export interface ToolCallOutcome {
  /** The call. */
  readonly call: ToolCall;
  /** The result as the server sent it, also if it has `isError`; absent if there is none. */
  readonly result?: CallToolResult;
  /** The error, if there is no result. `kind` is `request_cancelled` if the caller cancelled the call. */
  readonly error?: { readonly kind: ErrorKind; readonly message: string };
}

/** Root directories: absolute paths, or `file://` URIs. Other values throw `UsageError`. */
export type RootsReturn = readonly (string | URL | Root)[];

/**
 * Handlers of a client. Those of elicitations, sampling requests and roots declare the corresponding capability.
 *
 * If a handler throws an {@link RpcError}, the server gets this error. For any other error it gets an internal error
 * without details, and the error is emitted as a warning of the process.
 */
export interface Handlers {
  /**
   * Answers elicitations (`client/elicitation`). Omitted fields of a form get their defaults. If the content does not
   * match `requestedSchema`, it is not sent: the server gets an error, and the reason is logged.
   */
  elicit?: (params: ElicitParams, context: InputRequestContext) => Awaitable<ElicitReturn>;
  /**
   * Answers sampling requests (`client/sampling`).
   *
   * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
   */
  sample?: (params: CreateMessageParams, context: InputRequestContext) => Awaitable<SampleReturn>;
  /**
   * Root directories (`client/roots`), or a function that returns them.
   *
   * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
   */
  roots?: RootsReturn | (() => Awaitable<RootsReturn>);
  /**
   * Called before each tool call is sent. Return to allow the call, or throw {@link ToolCallRefusedError} with a reason
   * for the caller. Any other error also refuses the call.
   */
  onToolCall?: (call: ToolCall, context: InputRequestContext) => Awaitable<void>;
  /** Called after each tool call, before the caller gets the result. */
  onToolOutcome?: (outcome: ToolCallOutcome, context: InputRequestContext) => Awaitable<void>;
  /**
   * Called with each log message of the server (`server/utilities/logging`).
   *
   * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
   */
  onLog?: (message: LogMessage) => unknown;
  /** Called when the list of tools has changed (`notifications/tools/list_changed`). */
  onToolsChanged?: () => unknown;
  /** Called when the list of resources has changed (`notifications/resources/list_changed`). */
  onResourcesChanged?: () => unknown;
  /** Called when the list of prompts has changed (`notifications/prompts/list_changed`). */
  onPromptsChanged?: () => unknown;
  /** Called when a subscribed resource has changed (`notifications/resources/updated`). */
  onResourceUpdated?: (uri: string) => unknown;
  /**
   * Handlers of custom requests of the server, by method. Each is called with the request's `params` and returns the
   * result, a JSON object. They declare no capability: use {@link ClientExtension.onRequest} for requests that belong
   * to an extension.
   */
  onRequest?: Readonly<
    Record<string, (params: Record<string, unknown>, context: InputRequestContext) => Awaitable<object | undefined>>
  >;
  /** Protocol extensions that the client supports. */
  extensions?: readonly ClientExtension[];
  /** Called with each notification of the server. */
  onNotification?: (notification: Notification) => unknown;
  /** Called for each change of the connection. */
  onConnection?: (event: ConnectionEvent) => unknown;
  /**
   * Called at the end of each request, for a log of requests: those of the program, also if a cached result or middleware
   * of the library answers them, and those of the server that the client answers (sampling, elicitation, roots, custom ones). It runs in the
   * asynchronous context in which the client was created. The requests that the client sends by itself are not among them:
   * the handshake, pings at an interval, `subscriptions/listen`. Without the function, requests cost nothing more. What it throws is
   * emitted as a warning of the process; a promise is not awaited.
   */
  onRequestEnd?: OnClientRequestEnd;
  /**
   * A logger for requests, such as `console` or pino: its method `info` is called at the end of each request with the record and a
   * text such as `tools/call "search": ok in 12.3 ms`. For other levels, texts or loggers, use {@link ClientOptions.onRequestEnd}.
   */
  logger?: RequestLogger;
}

/**
 * A change of a client's connection. The first is `connected`, the last `closed`. After a loss, attempts to connect again
 * follow until one succeeds or the client gives up. There is none before the first connection: the function that connects
 * throws its error.
 *
 * Over HTTP a connection is a session of the handshake revisions; 2026-07-28 has no sessions, so that a failed request
 * does not lose the connection.
 */
export type ConnectionEvent =
  /**
   * `connected` for the first connection; `retrying` while a new one is opened; `restored` when it has taken the place of
   * the lost one.
   */
  | { readonly state: "connected" | "retrying" | "restored"; readonly error?: undefined }
  /** The connection was lost, or could not be opened again, for this reason. The next request opens a new one. */
  | { readonly state: "lost"; readonly error: McplineError }
  /**
   * The last attempt that `reconnectAttempts` allows has failed, for this reason. Requests fail with it; after 30 seconds,
   * a request makes another attempt, unless none are allowed.
   */
  | { readonly state: "given_up"; readonly error: McplineError }
  /** The client was closed. */
  | { readonly state: "closed"; readonly error?: undefined };

/** A receiver of a client's notifications, in addition to the handlers. */
export interface NotificationReceiver {
  /** Receives a notification, whose JSON has `size` characters. */
  take(notification: Notification, size: number): void;
  /** Called when there are no more notifications. */
  end(): void;
}

const INTERNAL_ERROR = -32603;
const INVALID_PARAMS = -32602;
/** Error code of a refused sampling request (`client/sampling`, error handling). */
const REFUSED = -1;

/** The default mode of an elicitation. */
const FORM: object = { mode: "form" };

/** Runs the handlers of one client. */
export class Host {
  readonly takers = new Set<NotificationReceiver>();
  /** Progress listeners, by the number of the request's promise. */
  readonly reports = new Map<number, (report: Progress) => void>();
  /** Limits the notifications and progress reports that wait for slow listeners. */
  readonly waiting = new BacklogLimit();
  /** Spans of requests. */
  readonly tracing: RequestTracing;
  /** Functions around requests, and what the library provides. */
  readonly middleware: SortedMiddleware;
  native!: NativeClient;
  /** Channels of a custom transport. */
  channels: Channels | undefined;
  /** Authorization of the client. */
  authorization: AuthSetup | undefined;
  /** A server in the same process, kept alive by its client. */
  server: object | undefined;
  /** Ends the use of this client's asynchronous context for the handlers of that server. */
  leaveContext: (() => void) | undefined;
  readonly #handlers: Handlers;
  readonly #stderr: ((line: string) => void) | undefined;
  /** Receives the records of requests. */
  readonly #requestListener: ((record: ClientRequestRecord) => void) | undefined;
  /** The roots, if they are not a function. */
  readonly #roots: readonly Root[];
  readonly #answering = new Map<number, AbortController>();
  /** Runs the handlers of notifications in order. */
  readonly #listeners: Backlog;

  /** @param network Attributes of spans: how the server is reached. */
  constructor(
    handlers: Handlers & Pick<ClientOptions, "tracing" | "middleware">,
    stderr?: (line: string) => void,
    network: Attributes = {},
  ) {
    this.#handlers = handlers;
    this.#requestListener = requestListener(handlers.onRequestEnd, handlers.logger);
    this.tracing = new RequestTracing(handlers.tracing, network);
    this.middleware = sortedMiddleware(handlers.middleware);
    this.#stderr = stderr;
    this.#listeners = new Backlog("a handler of notifications", this.waiting);
    this.#roots = Array.isArray(handlers.roots) ? handlers.roots.map(rootOf) : [];
  }

  /** Returns the identity, capabilities and handlers of the client as JSON for the core. */
  offer(info: object, capabilities: object): string {
    const { elicit, sample, roots, onLog, ...others } = this.#handlers;
    const listeners = [
      others.onNotification,
      others.onToolsChanged,
      others.onResourcesChanged,
      others.onPromptsChanged,
      others.onResourceUpdated,
    ];
    return JSON.stringify({
      info,
      capabilities,
      elicit: elicit !== undefined,
      sample: sample !== undefined,
      roots: roots !== undefined,
      requests: Object.keys(others.onRequest ?? {}),
      extensions: (others.extensions ?? []).map(({ identifier, settings, onRequest, onResultType }) => ({
        identifier,
        settings: settings ?? {},
        requests: Object.keys(onRequest ?? {}),
        result_types: Object.keys(onResultType ?? {}),
      })),
      tool_call: others.onToolCall !== undefined,
      tool_outcome: others.onToolOutcome !== undefined,
      logs: onLog !== undefined,
      connection: others.onConnection !== undefined,
      notifications: listeners.some((handler) => handler !== undefined),
      stderr: this.#stderr !== undefined,
      middleware: this.middleware.definitions,
    });
  }

  /** Whether the program wants a record of each request. */
  get recordsRequests(): boolean {
    return this.#requestListener !== undefined;
  }

  /** Handles an event of the native client. */
  onEvent(about: number, number: number, json: string): void {
    switch (about) {
      case About.Progress: {
        const report = this.reports.get(number);
        if (report !== undefined) {
          const [progress, total, message] = JSON.parse(json) as [number, number | null, string | null];
          report({ progress, ...(total === null ? {} : { total }), ...(message === null ? {} : { message }) });
        }
        break;
      }
      case About.Elicit:
        void this.#answerInSpan(number, ["elicitation/create", json], (context) => this.#elicit(json, context));
        break;
      case About.Sample:
        void this.#answerInSpan(number, ["sampling/createMessage", json], (context) => this.#sample(json, context));
        break;
      case About.Roots:
        void this.#answerInSpan(number, ["roots/list", json], () => this.#listRoots());
        break;
      case About.Auth:
        this.#own(number, json);
        break;
      case About.Request: {
        const [method, params] = JSON.parse(json) as [string, Record<string, unknown>];
        const given = JSON.stringify(params);
        void this.#answerInSpan(number, [method, given], (context) => this.#serve(method, params, context));
        break;
      }
      case About.Withdrawn:
        this.#answering.get(number)?.abort();
        this.#answering.delete(number);
        break;
      case About.Told: {
        const [method, params] = JSON.parse(json) as [string, Record<string, unknown>];
        this.#notify({ method, params }, json.length);
        break;
      }
      case About.Connection: {
        const [state, failure] = JSON.parse(json) as [string, object | null];
        const error = failure === null ? {} : { error: errorOf(JSON.stringify(failure)) };
        const event = { state, ...error } as ConnectionEvent;
        this.#run("connection events", json.length, () => this.#handlers.onConnection?.(event));
        break;
      }
      case About.RequestEnded:
        if (this.#requestListener !== undefined) {
          reportClientRequest(this.#requestListener, json);
        }
        break;
      case About.Stderr:
        this.#run("stderr", json.length, () => this.#stderr?.(JSON.parse(json) as string));
        break;
    }
  }

  /** Answers a request of the core itself. */
  #own(number: number, json: string): void {
    const [method, params] = JSON.parse(json) as [string, Record<string, string>];
    if (method === "host/tool_call") {
      const call = { arguments: {}, ...params } as unknown as ToolCall;
      void this.#answer(number, async (context) => done(await this.#handlers.onToolCall?.(call, context)));
    } else if (method === "host/tool_outcome") {
      const outcome = params as unknown as ToolCallOutcome;
      void this.#answer(number, async (context) => done(await this.#handlers.onToolOutcome?.(outcome, context)));
    } else if (method === "host/extended_result") {
      const received = params as unknown as ReceivedResult;
      void this.#answer(number, (context) => this.#resolve(received, context), true);
    } else {
      void this.#authorize(number, method, params);
    }
  }

  /** Answers a request of the authorization. An error fails the requests that wait for the token. */
  async #authorize(number: number, method: string, params: Record<string, string>): Promise<void> {
    try {
      const answer = this.authorization?.answers.get(method);
      if (answer === undefined) {
        throw new TypeError(`no handler for ${method}`);
      }
      this.native.answer(number, JSON.stringify(await answer(params)));
    } catch (error) {
      this.native.refuse(number, INTERNAL_ERROR, error instanceof Error ? error.message : String(error));
    }
  }

  /** Answers an input request, whose parameters are JSON, in a span. A request that is cancelled ends its span at once. */
  #answerInSpan(
    number: number,
    [method, params]: [string, string],
    handle: (context: InputRequestContext) => Promise<string>,
  ): Promise<void> {
    const span = this.tracing.receive(method, params, () => this.native.inputRequestSpan(number));
    if (span === undefined) {
      return this.#answer(number, handle);
    }
    return this.#answer(number, (context) => {
      context.signal.addEventListener("abort", () => {
        span.cancelled();
      });
      return span.run(() => handle(context));
    });
  }

  /** `toCaller`: the error of a request that the handler sends goes to the caller of this client, with all its facts. */
  async #answer(
    number: number,
    handle: (context: InputRequestContext) => Promise<string>,
    toCaller = false,
  ): Promise<void> {
    const controller = new AbortController();
    this.#answering.set(number, controller);
    try {
      this.native.answer(number, await handle(controller));
    } catch (error) {
      if (controller.signal.aborted) {
        // The answer is no longer needed.
        return;
      }
      if (toCaller && error instanceof McplineError) {
        this.native.refuse(number, INTERNAL_ERROR, error.message, jsonOf({ failure: factsOf(error) }));
      } else if (error instanceof RpcError) {
        const data = error.data === undefined ? undefined : JSON.stringify(error.data);
        this.native.refuse(number, error.code, error.rpcMessage, data);
      } else if (error instanceof ToolCallRefusedError) {
        this.native.refuse(number, INTERNAL_ERROR, error.message);
      } else {
        warn("a handler of the client failed", error);
        this.native.refuse(number, INTERNAL_ERROR, "the client's handler failed");
      }
    } finally {
      this.#answering.delete(number);
    }
  }

  async #elicit(json: string, context: InputRequestContext): Promise<string> {
    // Before 2025-11-25, every elicitation is a form without `mode`.
    const params = { ...FORM, ...paramsOf<ElicitParams>(json, "message") };
    const answer = await this.#handlers.elicit?.(params, context);
    const written = typeof answer === "string" ? { action: answer } : answer;
    const action: unknown = written?.action;
    if (action !== "accept" && action !== "decline" && action !== "cancel") {
      throw new TypeError("the elicitation handler must return an action: accept, decline or cancel");
    }
    return JSON.stringify(action === "accept" ? written : { action });
  }

  async #sample(json: string, context: InputRequestContext): Promise<string> {
    const answer = await this.#handlers.sample?.(paramsOf<CreateMessageParams>(json, "messages"), context);
    if (answer === null) {
      throw new RpcError(REFUSED, "the user refused");
    }
    if (typeof answer === "string") {
      const content = { type: "text", text: answer };
      return JSON.stringify({ role: "assistant", model: "unknown", content, stopReason: "endTurn" });
    }
    if (typeof answer !== "object") {
      throw new TypeError("the sampling handler must return text or a `CreateMessageResult`");
    }
    return JSON.stringify(answer);
  }

  async #serve(method: string, params: Record<string, unknown>, context: InputRequestContext): Promise<string> {
    const { onRequest, extensions = [] } = this.#handlers;
    const serve = handlerOf(method, [onRequest, ...extensions.map((extension) => extension.onRequest)]);
    return jsonOf((await serve?.(params, context)) ?? {});
  }

  /** Converts a result of an extension's result type to the method's ordinary result. */
  async #resolve(received: ReceivedResult, context: InputRequestContext): Promise<string> {
    const type = String(received.result["resultType"]);
    const { extensions = [] } = this.#handlers;
    const resolve = handlerOf(
      type,
      extensions.map((extension) => extension.onResultType),
    );
    return jsonOf(await resolve?.(received, context));
  }

  async #listRoots(): Promise<string> {
    const { roots } = this.#handlers;
    return JSON.stringify({ roots: typeof roots === "function" ? (await roots()).map(rootOf) : this.#roots });
  }

  #notify(notification: Notification, size: number): void {
    const handlers = this.#handlers;
    for (const taker of this.takers) {
      taker.take(notification, size);
    }
    const { method, params } = notification;
    this.#run(method, size, () => handlers.onNotification?.(notification));
    switch (method) {
      case "notifications/message":
        this.#run(method, size, () => handlers.onLog?.(params as unknown as LogMessage));
        break;
      case "notifications/tools/list_changed":
        this.#run(method, size, () => handlers.onToolsChanged?.());
        break;
      case "notifications/resources/list_changed":
        this.#run(method, size, () => handlers.onResourcesChanged?.());
        break;
      case "notifications/prompts/list_changed":
        this.#run(method, size, () => handlers.onPromptsChanged?.());
        break;
      case "notifications/resources/updated":
        this.#run(method, size, () => handlers.onResourceUpdated?.(String(params["uri"])));
        break;
    }
  }

  /** Runs a handler of notifications after the previous ones. `size` is the number of characters that it holds. */
  #run(what: string, size: number, handle: () => unknown): void {
    const failed = (error: unknown) => {
      warn(`the handler of ${what} failed`, error);
    };
    this.#listeners.run(size, () => {
      try {
        const value = handle();
        return value instanceof Promise ? value.then(() => undefined, failed) : undefined;
      } catch (error) {
        failed(error);
        return undefined;
      }
    });
  }
}

/** Returns the handler of a name in the first table that has one. Inherited members, such as `constructor`, are none. */
function handlerOf<T>(name: string, tables: readonly (Readonly<Record<string, T>> | undefined)[]): T | undefined {
  return tables.find((table) => table !== undefined && Object.hasOwn(table, name))?.[name];
}

/** Encodes an empty result. */
function done(_: void): string {
  return "{}";
}

/** Emits an error of a handler as a warning of the process. */
export function warn(what: string, error: unknown): void {
  const trace = read(() => (error instanceof Error ? (error.stack ?? error.message) : error));
  process.emitWarning(`${what}: ${trace}`, "McplineWarning");
}

/** Returns the message of an error. */
export function errorText(error: unknown): string {
  return read(() => (error instanceof Error ? error.message : error));
}

/** Returns a text of an error. Handlers may throw anything, such as a proxy that throws when it is read. */
function read(text: () => unknown): string {
  try {
    return String(text());
  } catch {
    return "an error that cannot be read";
  }
}

/** Decodes the parameters of an input request, and checks that a required member is present. */
function paramsOf<T extends object>(json: string, member: string & keyof T): Partial<T> & T {
  const params = (json === "" ? {} : JSON.parse(json)) as T;
  if (!(member in params)) {
    throw new RpcError(INVALID_PARAMS, `params.${member} is missing`);
  }
  return params;
}

/** Converts a root directory. Throws `UsageError` if it is neither an absolute path nor a `file://` URI. */
function rootOf(root: string | URL | Root): Root {
  const { uri, ...rest } = typeof root === "string" ? { uri: root } : root instanceof URL ? { uri: root.href } : root;
  return { uri: attempt(() => native.rootUri(uri)), ...rest };
}
