/**
 * The errors of mcpline: one base class, and one class for each kind of error.
 *
 * The page "Errors" of the documentation lists all kinds and says which requests may be sent again.
 */

/** What failed: a stable identifier, the same in every language. */
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
  | "url_elicitation_required"
  | "error";

/** What is known of an error besides its kind and its message. */
export interface ErrorFacts extends ErrorOptions {
  /** See {@link McplineError.retrySafe}. */
  retrySafe?: boolean;
  /** See {@link McplineError.outcomeUnknown}. */
  outcomeUnknown?: boolean;
  /** See {@link McplineError.operation}. */
  operation?: string | undefined;
  /** See {@link McplineError.source}. */
  source?: RpcError | string | undefined;
}

/** The base of every error that mcpline throws on its own. */
export class McplineError extends Error {
  /** What failed. */
  readonly kind: ErrorKind = "error";
  /** Whether the peer certainly did not perform the request, so that sending it again cannot perform it twice. */
  readonly retrySafe: boolean;
  /** Whether it is unknown if the peer performed the request. */
  readonly outcomeUnknown: boolean;
  /** The method or action that failed, where it is known: `tools/call`, `connect`, `listen`. */
  readonly operation: string | undefined;
  /** The cause: a JSON-RPC error of the peer, which is also {@link cause}, or the system's own text. */
  readonly source: RpcError | string | undefined;

  constructor(message: string, facts: ErrorFacts = {}) {
    const { cause = facts.source instanceof RpcError ? facts.source : undefined } = facts;
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.retrySafe = facts.retrySafe ?? false;
    this.outcomeUnknown = facts.outcomeUnknown ?? false;
    this.operation = facts.operation;
    this.source = facts.source;
  }
}

/**
 * A JSON-RPC error. Thrown by a client, it is the error that the server returned. Throw it in a handler to respond to a
 * request with exactly this error.
 *
 * JSON-RPC 2.0, section 5.1; the codes of the protocol are in its schema.
 */
export class RpcError extends McplineError {
  override readonly kind: ErrorKind = "rpc_error";
  /** The code on the wire. */
  readonly code: number;
  /**
   * The message on the wire. In the `message` of an error that a peer sent, and so in its stack, terminal escapes and
   * characters that control or reorder text are left out or replaced.
   */
  readonly rpcMessage: string;
  /** Whatever else the error says: any JSON value. */
  readonly data: unknown;

  /**
   * @param code The code on the wire.
   * @param message The message on the wire.
   * @param data Any JSON value; left out if it is undefined.
   * @param text What `message` is to be, if it is another text than on the wire.
   */
  constructor(code: number, message: string, data?: unknown, text = message, facts?: ErrorFacts) {
    super(text, facts);
    this.code = code;
    this.rpcMessage = message;
    this.data = data;
  }
}

/** What is known of a timeout. */
export interface TimeoutFacts extends ErrorFacts {
  /** See {@link RequestTimedOutError.waited}. */
  waited?: number;
  /** See {@link RequestTimedOutError.inAll}. */
  inAll?: boolean;
}

/** No response arrived in time. The request was cancelled; whether the peer performed it is unknown. */
export class RequestTimedOutError extends McplineError {
  override readonly kind: ErrorKind = "request_timed_out";
  /** How long was waited, in ms: since the last sign of life, or in total. */
  readonly waited: number;
  /** Whether the total timeout elapsed, which progress does not extend. */
  readonly inAll: boolean;

  constructor(message: string, facts: TimeoutFacts = {}) {
    super(message, { outcomeUnknown: true, ...facts });
    this.waited = facts.waited ?? 0;
    this.inAll = facts.inAll ?? false;
  }
}

/** The request was cancelled by its sender. The reason of {@link Context.signal}. */
export class RequestCancelledError extends McplineError {
  override readonly kind: ErrorKind = "request_cancelled";
}

/** The server responded with an HTTP status instead of a JSON-RPC message. `source` is the JSON-RPC error in the body. */
export class HttpError extends McplineError {
  override readonly kind: ErrorKind = "http_error";
  readonly status: number;
  /** The beginning of the body, at most 4 KiB. */
  readonly body: string;
  /** The `WWW-Authenticate` header, if there was one. */
  readonly challenge: string | undefined;

  constructor(
    message: string,
    facts: ErrorFacts & { status?: number; body?: string; challenge?: string | null | undefined } = {},
  ) {
    super(message, facts);
    this.status = facts.status ?? 0;
    this.body = facts.body ?? "";
    this.challenge = facts.challenge ?? undefined;
  }
}

/** The server could not be reached: no connection was made, or its process did not start. Nothing was sent. */
export class ServerUnreachableError extends McplineError {
  override readonly kind: ErrorKind = "server_unreachable";
}

/**
 * The server was reached, but the handshake (`server/discover` or `initialize`) failed: it was refused, or client and
 * server have no protocol revision in common. `source` is the JSON-RPC error that the server returned, if it did.
 */
export class HandshakeFailedError extends McplineError {
  override readonly kind: ErrorKind = "handshake_failed";
}

/** The server was reached, but did not respond to `initialize` or `server/discover` in time. */
export class HandshakeTimedOutError extends HandshakeFailedError {
  override readonly kind: ErrorKind = "handshake_timed_out";
  /** How long was waited, in ms. */
  readonly waited: number;

  constructor(message: string, facts: TimeoutFacts = {}) {
    super(message, facts);
    this.waited = facts.waited ?? 0;
  }
}

/** The connection ended before the response arrived. Whether the peer performed the request is unknown. */
export class ConnectionLostError extends McplineError {
  override readonly kind: ErrorKind = "connection_lost";
}

/**
 * The server no longer knows the session (HTTP 404), or the cursor of a list belongs to an earlier session. The server did
 * nothing. Read lists again from the first page.
 */
export class SessionExpiredError extends McplineError {
  override readonly kind: ErrorKind = "session_expired";
}

/** The server's process exited. `retrySafe` says that the request was not sent, `outcomeUnknown` that it was. */
export class ServerExitedError extends ConnectionLostError {
  override readonly kind: ErrorKind = "server_exited";
  /** How: "exit status: 1", "signal: 9 (SIGKILL)". */
  readonly exit: string | undefined;
  /** The last lines that it wrote to stderr, where they are captured. */
  readonly stderr: readonly string[];

  constructor(message: string, facts: ErrorFacts & { exit?: string | null | undefined; stderr?: string[] } = {}) {
    super(message, facts);
    this.exit = facts.exit ?? undefined;
    this.stderr = facts.stderr ?? [];
  }
}

/** The server requires authorization, and no access token that it accepts could be obtained. */
export class AuthorizationFailedError extends McplineError {
  override readonly kind: ErrorKind = "authorization_failed";
  /** What failed, by a stable name: `unattended`, `insufficient_scope`, `metadata_issuer_mismatch` and so on. */
  readonly reason: string;

  constructor(message: string, facts: ErrorFacts & { reason?: string } = {}) {
    super(message, { retrySafe: true, ...facts });
    this.reason = facts.reason ?? "";
  }
}

/** A response violates the protocol or a schema. */
export class InvalidResponseError extends McplineError {
  override readonly kind: ErrorKind = "invalid_response";
}

/**
 * An input request was answered with an error, which is `source`.
 *
 * In a handler of a server, the client returned the error; a handler that does not catch it fails as with a
 * {@link ToolError}. At a client, no handler is set for the input request, or the handler failed, and the request that it
 * belongs to was given up (2026-07-28).
 */
export class InputRequestFailedError extends McplineError {
  override readonly kind: ErrorKind = "input_request_failed";
}

/** The host's hook refused the tool call; nothing was sent. Throw it in `onToolCall` with the reason. */
export class ToolCallRefusedError extends McplineError {
  override readonly kind: ErrorKind = "tool_call_refused";
}

/**
 * The peer or the protocol revision does not support the operation. Nothing was sent.
 *
 * In a handler of a server, the client lacks a capability. Not caught, it ends a request with error -32021 on 2026-07-28,
 * and a tool's call with its message as a tool error on other revisions.
 */
export class NotSupportedError extends McplineError {
  override readonly kind: ErrorKind = "not_supported";
  /** `ClientCapabilities` that the client lacks; undefined if it is something else. */
  readonly required: Record<string, unknown> | undefined;

  constructor(message: string, facts: ErrorFacts & { required?: Record<string, unknown> | undefined } = {}) {
    super(message, facts);
    this.required = facts.required;
  }
}

/** A limit of this library is reached. The message names it. */
export class LimitExceededError extends McplineError {
  override readonly kind: ErrorKind = "limit_exceeded";
}

/** The client, the server or the connection was closed by this program, or has ended. */
export class ClosedError extends McplineError {
  override readonly kind: ErrorKind = "closed";
}

/** The library was used incorrectly: an invalid argument, a name that is taken, a call out of order. */
export class UsageError extends McplineError {
  override readonly kind: ErrorKind = "usage_error";
}

/** The operating system reported an error of a socket, a pipe or a process. `source` is its text. */
export class TransportError extends McplineError {
  override readonly kind: ErrorKind = "transport_error";
}

/** A bug in mcpline. */
export class InternalError extends McplineError {
  override readonly kind: ErrorKind = "internal_error";
}

/** A tool failed in a way that the model should read. Throw it in a handler of a tool; the message is for the model. */
export class ToolError extends McplineError {
  override readonly kind: ErrorKind = "tool_error";
}

/** A page that the user has to visit before a request can be served. */
export interface Visit {
  /** Why, in words for the user. */
  message: string;
  /** Where. */
  url: string;
  /** Names the visit, for {@link Server.notifyElicitationComplete}; drawn where it is absent. */
  elicitationId?: string;
}

/**
 * The request can't be served before the user has visited these pages; the client tries again then.
 *
 * Error -32042 on 2025-11-25 (`client/elicitation`, URL elicitation required), input requests on 2026-07-28, text
 * elsewhere.
 */
export class UrlElicitationRequiredError extends McplineError {
  override readonly kind: ErrorKind = "url_elicitation_required";
  /** The pages. */
  readonly visits: readonly Visit[];

  constructor(...visits: Visit[]) {
    super(visits.map(({ message, url }) => `${message}: ${url}`).join("\n"));
    this.visits = visits;
  }
}

/** The JSON-RPC error of a description, with its message as it may be shown. */
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
  members: Omit<ErrorFacts, "source"> & { source?: RpcDescription | string; forModel?: boolean };
}

const classes = new Map<string, new (message: string, facts: ErrorFacts) => McplineError>([
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

/** Errors of input requests that the model reads if a handler does not catch them. */
const forModel = new WeakSet<Error>();

/**
 * Whether the model reads the message, if a handler does not catch this error.
 * @internal
 */
export function isForModel(error: unknown): error is McplineError {
  return error instanceof ToolError || (error instanceof McplineError && forModel.has(error));
}

/**
 * The error that the addon describes as JSON.
 * @internal
 */
export function errorOf(json: string): McplineError {
  const { kind, message, members } = JSON.parse(json) as Description;
  const { source, ...facts } = members;
  if (kind === "rpc_error" && typeof source === "object") {
    return new RpcError(source.code, source.message, source.data, message, facts);
  }
  const made = classes.get(kind) ?? InternalError;
  const cause =
    typeof source === "object" ? new RpcError(source.code, source.message, source.data, source.shown) : source;
  const error = new made(message, { ...facts, source: cause });
  if (members.forModel === true) {
    forModel.add(error);
  }
  return error;
}

/**
 * Calls the addon; its failures become errors of ours.
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
