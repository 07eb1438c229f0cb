/**
 * Errors of mcpline: one base class, and one class for each kind of error.
 *
 * The page "Errors" of the documentation lists all kinds, and says which requests can be sent again.
 */

import { getSystemErrorMap } from "node:util";

import { withOwnNames } from "./option_names.js";

/** Stable identifier of a kind of error, the same in every language. */
export type ErrorKind =
  | "rpc_error"
  | "request_timed_out"
  | "request_cancelled"
  | "http_error"
  | "server_unreachable"
  | "handshake_failed"
  | "handshake_timed_out"
  | "connection_lost"
  | "session_expired"
  | "server_exited"
  | "authorization_failed"
  | "invalid_response"
  | "input_request_failed"
  | "tool_call_refused"
  | "not_supported"
  | "limit_exceeded"
  | "closed"
  | "usage_error"
  | "transport_error"
  | "internal_error"
  | "tool_error"
  | "resource_not_found"
  | "url_elicitation_required"
  | "error";

/** Members of an error besides its kind and its message. */
export interface ErrorDetails extends ErrorOptions {
  /** See {@link McplineError.retrySafe}. */
  retrySafe?: boolean;
  /** See {@link McplineError.outcomeUnknown}. */
  outcomeUnknown?: boolean;
  /** See {@link McplineError.operation}. */
  operation?: string | undefined;
  /** See {@link McplineError.source}. */
  source?: RpcError | string | undefined;
}

/** Base class of all errors that mcpline throws. */
export class McplineError extends Error {
  /** Stable identifier of the kind of error. */
  readonly kind: ErrorKind = "error";
  /** Whether the peer certainly did not process the request, so that it can be sent again. */
  readonly retrySafe: boolean;
  /** Whether it is unknown if the peer processed the request. */
  readonly outcomeUnknown: boolean;
  /** The method or action that failed, if known: `tools/call`, `connect`, `listen`. */
  readonly operation: string | undefined;
  /** The cause: a JSON-RPC error of the peer, which is also {@link cause}, or the message of the operating system. */
  readonly source: RpcError | string | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    const { cause = details.source instanceof RpcError ? details.source : undefined } = details;
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.retrySafe = details.retrySafe ?? false;
    this.outcomeUnknown = details.outcomeUnknown ?? false;
    this.operation = details.operation;
    this.source = details.source;
  }
}

/**
 * A JSON-RPC error (JSON-RPC 2.0, section 5.1).
 *
 * A client throws it if the server returns an error. Throw it in a handler to return this error to the client; code,
 * message and data are sent unchanged. 2026-07-28 reserves the codes from -32020 to -32099: for its clients, one that the
 * specification does not define becomes -32603, with a warning. Use codes outside of -32768 to -32000.
 */
export class RpcError extends McplineError {
  override readonly kind: ErrorKind = "rpc_error";
  /** Error code. */
  readonly code: number;
  /**
   * The message as the peer sent it. In `message`, and so in the stack, control and bidirectional characters are
   * removed or replaced.
   */
  readonly rpcMessage: string;
  /** Further data: any JSON value. */
  readonly data: unknown;

  /**
   * @param code Error code.
   * @param message Error message.
   * @param data Any JSON value; omitted if it is undefined.
   * @param text The `message` of the error object, if it differs from the message on the wire.
   */
  constructor(code: number, message: string, data?: unknown, text = message, details?: ErrorDetails) {
    super(text, details);
    this.code = code;
    this.rpcMessage = message;
    this.data = data;
  }
}

/** Members of a timeout error. */
export interface TimeoutDetails extends ErrorDetails {
  /** See {@link RequestTimedOutError.waited}. */
  waited?: number;
  /** See {@link RequestTimedOutError.inAll}. */
  inAll?: boolean;
}

/** No response arrived in time. The request was cancelled; whether the peer processed it is unknown. */
export class RequestTimedOutError extends McplineError {
  override readonly kind: ErrorKind = "request_timed_out";
  /** The timeout that elapsed, in milliseconds. */
  readonly waited: number;
  /** Whether it was the total timeout, which progress does not restart. */
  readonly inAll: boolean;

  constructor(message: string, details: TimeoutDetails = {}) {
    super(message, { outcomeUnknown: true, ...details });
    this.waited = details.waited ?? 0;
    this.inAll = details.inAll ?? false;
  }
}

/** The request was cancelled by its sender. The reason of {@link Context.signal}. */
export class RequestCancelledError extends McplineError {
  override readonly kind: ErrorKind = "request_cancelled";
}

/**
 * The server responded with an HTTP error status instead of a JSON-RPC message. `source` is the JSON-RPC error in the
 * body, if there is one.
 */
export class HttpError extends McplineError {
  override readonly kind: ErrorKind = "http_error";
  /** The HTTP status. */
  readonly status: number;
  /** The first 4 KiB of the body. */
  readonly body: string;
  /** The `WWW-Authenticate` header; `undefined` if there was none. */
  readonly challenge: string | undefined;

  constructor(
    message: string,
    details: ErrorDetails & { status?: number; body?: string; challenge?: string | null | undefined } = {},
  ) {
    super(message, details);
    this.status = details.status ?? 0;
    this.body = details.body ?? "";
    this.challenge = details.challenge ?? undefined;
  }
}

/** The server could not be reached: the connection failed, or its process did not start. Nothing was sent. */
export class ServerUnreachableError extends McplineError {
  override readonly kind: ErrorKind = "server_unreachable";
}

/**
 * The handshake (`server/discover` or `initialize`) failed.
 *
 * The server refused it, or client and server have no protocol revision in common. `source` is the JSON-RPC error that
 * the server returned, if any.
 */
export class HandshakeFailedError extends McplineError {
  override readonly kind: ErrorKind = "handshake_failed";
}

/** The server did not respond to `initialize` or `server/discover` in time. */
export class HandshakeTimedOutError extends HandshakeFailedError {
  override readonly kind: ErrorKind = "handshake_timed_out";
  /** The timeout that elapsed, in milliseconds. */
  readonly waited: number;

  constructor(message: string, details: TimeoutDetails = {}) {
    super(message, details);
    this.waited = details.waited ?? 0;
  }
}

/** The connection ended before the response arrived. Whether the peer processed the request is unknown. */
export class ConnectionLostError extends McplineError {
  override readonly kind: ErrorKind = "connection_lost";
}

/**
 * The server no longer knows the session (HTTP 404), or the cursor of a list belongs to an earlier session.
 *
 * The request was not processed. Read lists again from the first page.
 */
export class SessionExpiredError extends McplineError {
  override readonly kind: ErrorKind = "session_expired";
}

/** The server's process exited. See `retrySafe` and `outcomeUnknown` for whether the request was sent. */
export class ServerExitedError extends ConnectionLostError {
  override readonly kind: ErrorKind = "server_exited";
  /** Exit status or signal: `exit status: 1`, `signal: 9 (SIGKILL)`. */
  readonly exit: string | undefined;
  /** The last lines of its stderr, if captured. */
  readonly stderr: readonly string[];

  constructor(message: string, details: ErrorDetails & { exit?: string | null | undefined; stderr?: string[] } = {}) {
    super(message, details);
    this.exit = details.exit ?? undefined;
    this.stderr = details.stderr ?? [];
  }
}

/** The server requires authorization, and the client could not obtain an access token that it accepts. */
export class AuthorizationFailedError extends McplineError {
  override readonly kind: ErrorKind = "authorization_failed";
  /** Stable identifier of the reason, such as `unattended` or `insufficient_scope`. */
  readonly reason: string;

  constructor(message: string, details: ErrorDetails & { reason?: string } = {}) {
    super(message, { retrySafe: true, ...details });
    this.reason = details.reason ?? "";
  }
}

/** A response violates the protocol or a schema. */
export class InvalidResponseError extends McplineError {
  override readonly kind: ErrorKind = "invalid_response";
}

/**
 * An input request was answered with an error, which is `source`.
 *
 * In a handler of a server: the client returned the error, or a middleware refused the input request with it. If the handler
 * does not catch it, it fails as with a {@link ToolError}. In a client: no handler is set for the input request, or the handler failed, and the request that it
 * belongs to was abandoned (2026-07-28).
 */
export class InputRequestFailedError extends McplineError {
  override readonly kind: ErrorKind = "input_request_failed";
}

/** The hook `onToolCall` refused the tool call; nothing was sent. Throw it in the hook, with the reason. */
export class ToolCallRefusedError extends McplineError {
  override readonly kind: ErrorKind = "tool_call_refused";
}

/**
 * The peer or the protocol revision does not support the operation. Nothing was sent.
 *
 * In a handler of a server: the client lacks a capability. If the handler does not catch it, the client receives a tool
 * error, or on 2026-07-28 the JSON-RPC error -32021.
 */
export class NotSupportedError extends McplineError {
  override readonly kind: ErrorKind = "not_supported";
  /** The capabilities that the client lacks, as it would declare them; `undefined` for other operations. */
  readonly required: Record<string, unknown> | undefined;

  constructor(message: string, details: ErrorDetails & { required?: Record<string, unknown> | undefined } = {}) {
    super(message, details);
    this.required = details.required;
  }
}

/** A limit of this library is reached. The message names the limit. */
export class LimitExceededError extends McplineError {
  override readonly kind: ErrorKind = "limit_exceeded";
}

/** The client, the server or the connection was closed by this program, or the request has ended. */
export class ClosedError extends McplineError {
  override readonly kind: ErrorKind = "closed";
}

/** The library was used incorrectly: an invalid argument, a name that is taken, or a call in the wrong order. */
export class UsageError extends McplineError {
  override readonly kind: ErrorKind = "usage_error";
}

/** The operating system reported an error of a socket, a pipe or a process. `source` is its message. */
export class TransportError extends McplineError {
  override readonly kind: ErrorKind = "transport_error";
  /** The name of the system's error, as in errors of Node: `EADDRINUSE`, `EACCES`. `undefined` if it has none. */
  readonly code: string | undefined;

  constructor(message: string, details?: ErrorDetails) {
    super(message, details);
    this.code = systemErrorName(details?.source);
  }
}

/** Names of Windows' errors of sockets, whose numbers Node does not list. */
const WINDOWS_ERRORS: Readonly<Record<number, string>> = {
  10013: "EACCES",
  10048: "EADDRINUSE",
  10049: "EADDRNOTAVAIL",
};

/** Returns the name of the error whose number the text of a system error ends with. */
function systemErrorName(source: unknown): string | undefined {
  const [, number] = typeof source === "string" ? (/\(os error (\d+)\)$/.exec(source) ?? []) : [];
  return number === undefined
    ? undefined
    : (getSystemErrorMap().get(-Number(number))?.[0] ?? WINDOWS_ERRORS[Number(number)]);
}

/** A bug in mcpline. */
export class InternalError extends McplineError {
  override readonly kind: ErrorKind = "internal_error";
}

/** A tool failed. Throw it in a tool: its message is returned to the model as the result, marked as an error. */
export class ToolError extends McplineError {
  override readonly kind: ErrorKind = "tool_error";
}

/**
 * The resource does not exist. Throw it in a handler, usually that of a resource template.
 *
 * The client receives the same JSON-RPC error as for a URI that no resource has, with the URI in its data: -32002, or
 * -32602 on 2026-07-28 (`server/resources`, error handling). Thrown by a tool, it is an error result for the model.
 */
export class ResourceNotFoundError extends McplineError {
  override readonly kind: ErrorKind = "resource_not_found";
  /** URI of the resource; `undefined` stands for the URI that the client reads. */
  readonly uri: string | undefined;

  /** @param uri URI of the resource. Default: the URI that the client reads. */
  constructor(uri?: string) {
    super(uri === undefined ? "resource not found" : `resource not found: ${uri}`);
    this.uri = uri;
  }
}

/** A URL elicitation: a URL that the user has to open before a request can be served. */
export interface UrlElicitation {
  /** Message to the user. */
  message: string;
  /** The URL. */
  url: string;
  /** Id for {@link Server.notifyElicitationComplete}. Default: a random id. */
  elicitationId?: string;
}

/**
 * The user has to open URLs before the request can be served. Throw it in a handler.
 *
 * The client sends the request again afterwards; {@link Server.notifyElicitationComplete} reports the completion. On
 * 2025-11-25 this is the JSON-RPC error -32042 (`client/elicitation`); on 2026-07-28 the URLs are input requests, and
 * the handler is called again with the responses. Other clients get the URLs as text.
 */
export class UrlElicitationRequiredError extends McplineError {
  override readonly kind: ErrorKind = "url_elicitation_required";
  /** The URL elicitations. */
  readonly elicitations: readonly UrlElicitation[];

  constructor(...elicitations: UrlElicitation[]) {
    super(elicitations.map(({ message, url }) => `${message}: ${url}`).join("\n"));
    this.elicitations = elicitations;
  }
}

/** A JSON-RPC error as the addon describes it. `shown` is its message without control characters. */
interface RpcDescription {
  code: number;
  message: string;
  data?: unknown;
  shown: string;
}

/** An error as the addon describes it. */
interface Description {
  kind: string;
  message: string;
  members: Omit<ErrorDetails, "source"> & { source?: RpcDescription | string; forModel?: boolean };
}

const classes = new Map<string, new (message: string, details: ErrorDetails) => McplineError>([
  ["request_timed_out", RequestTimedOutError],
  ["request_cancelled", RequestCancelledError],
  ["http_error", HttpError],
  ["server_unreachable", ServerUnreachableError],
  ["handshake_failed", HandshakeFailedError],
  ["handshake_timed_out", HandshakeTimedOutError],
  ["connection_lost", ConnectionLostError],
  ["session_expired", SessionExpiredError],
  ["server_exited", ServerExitedError],
  ["authorization_failed", AuthorizationFailedError],
  ["invalid_response", InvalidResponseError],
  ["input_request_failed", InputRequestFailedError],
  ["tool_call_refused", ToolCallRefusedError],
  ["not_supported", NotSupportedError],
  ["limit_exceeded", LimitExceededError],
  ["closed", ClosedError],
  ["usage_error", UsageError],
  ["transport_error", TransportError],
]);

/** Errors of input requests that become tool errors if a handler does not catch them. */
const forModel = new WeakSet<Error>();

/**
 * Whether an uncaught error of a handler becomes a tool error, which the model reads.
 * @internal
 */
export function isForModel(error: unknown): error is McplineError {
  return error instanceof ToolError || (error instanceof McplineError && forModel.has(error));
}

/**
 * Decodes an error that the addon describes as JSON.
 * @internal
 */
export function errorOf(json: string): McplineError {
  const { kind, message, members } = JSON.parse(json) as Description;
  const { source, ...details } = members;
  // Other messages may quote the peer.
  const text = kind === "usage_error" || kind === "not_supported" ? withOwnNames(message) : message;
  if (kind === "rpc_error" && typeof source === "object") {
    return new RpcError(source.code, source.message, source.data, message, details);
  }
  const made = classes.get(kind) ?? InternalError;
  const cause =
    typeof source === "object" ? new RpcError(source.code, source.message, source.data, source.shown) : source;
  const error = new made(text, { ...details, source: cause });
  if (members.forModel === true) {
    forModel.add(error);
  }
  return error;
}

/**
 * Encodes an error as the addon describes it: the inverse of {@link errorOf}.
 * @internal
 */
export function factsOf(error: McplineError): Record<string, unknown> {
  const { kind, message, outcomeUnknown } = error;
  const cause = error instanceof RpcError ? error : error.source;
  const source = cause instanceof RpcError ? { code: cause.code, message: cause.rpcMessage, data: cause.data } : cause;
  const { waited, inAll, status, body, challenge, exit, stderr } = error as Partial<
    RequestTimedOutError & HttpError & ServerExitedError
  >;
  return {
    kind,
    message,
    outcome_unknown: outcomeUnknown,
    source,
    // The core counts in seconds.
    waited: waited === undefined ? undefined : waited / 1000,
    in_all: inAll,
    status,
    body,
    challenge,
    exit,
    stderr,
  };
}

/**
 * Calls the addon, and converts its errors.
 * @internal
 */
export function attempt<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('{"kind":')) {
      const failure = errorOf(error.message);
      Error.captureStackTrace(failure, attempt);
      throw failure;
    }
    throw error instanceof Error ? new InternalError(error.message, { cause: error }) : error;
  }
}
