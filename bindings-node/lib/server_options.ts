/** The options of a server. */

import type { Context } from "./context.js";
import type { Extension } from "./extension.js";
import type { OnError } from "./handler_errors.js";
import type { Implementation } from "./protocol.js";
import type { OnRequestEnd, RequestLogger } from "./request_log.js";
import type { ServerSettings } from "./settings.js";

/**
 * Options of a server.
 *
 * @typeParam C Type of {@link Context.context}.
 * @typeParam State Type of {@link Server.state}.
 */
export interface ServerOptions<C = unknown, State = unknown> extends Implementation {
  /** How to use the server, for the model. */
  instructions?: string;
  /** Protocol extensions to offer. */
  extensions?: readonly Extension[];
  /** Limits and timeouts. */
  settings?: ServerSettings;
  /**
   * Called with what a handler throws, unless it is for the client or the model ({@link RpcError}, {@link ToolError} and
   * the like) or the call was cancelled: for Sentry, OpenTelemetry and logs. It runs in the asynchronous context of the
   * handler, before the client gets its response, which does not contain the error. The error is also emitted as a
   * warning of the process. If the function returns a {@link ToolError} or an {@link RpcError}, the client gets that, and
   * there is no warning; a promise is not awaited.
   */
  onError?: OnError<C, State>;
  /**
   * Called at the end of each request, except notifications, for a log of requests. It runs after the response was
   * passed on, in the asynchronous context in which the server was created. Requests that are refused by their HTTP headers are
   * not among them. Without the function, requests cost nothing more. What it throws is emitted as a warning of the process; a
   * promise is not awaited.
   */
  onRequestEnd?: OnRequestEnd;
  /**
   * A logger for requests, such as `console` or pino: its method `info` is called at the end of each request with the record and a
   * text such as `tools/call "search": ok in 12.3 ms`. For other levels, texts or loggers, use {@link ServerOptions.onRequestEnd}.
   */
  logger?: RequestLogger;
  /**
   * Whether requests have spans in the OpenTelemetry of the program, if it has set that up (a `TracerProvider` of
   * `@opentelemetry/api` 1.x) when the server begins to be served. Handlers run in the span of their request. Spans contain the
   * names of methods, tools and prompts and the URIs of resources, but neither arguments nor results. Default: `true`. A program
   * without OpenTelemetry pays nothing for it.
   */
  tracing?: boolean;
  /**
   * Creates the value of {@link Context.context} for a call whose request came without one, from the caller, the headers
   * or the request. It is called when a handler first reads the value; other calls do not pay for it. If it returns a
   * promise, handlers await `ctx.context`. What it throws is an error of the handler. In the function, `ctx.context` is
   * `undefined`.
   */
  createContext?: (ctx: Context<undefined, State>) => C;
  /** A value that all handlers share, such as a connection pool: {@link Server.state}. */
  state?: State;
}
