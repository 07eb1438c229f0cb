/** What can go wrong between a client and its server. */

import { defineFailure, McplineError, RpcError } from "../errors.js";

/** What the addon knows of every failure of a client. */
interface Known {
  retrySafe: boolean;
  outcomeUnknown: boolean;
  reason?: string;
  error?: { code: number; message: string; data?: unknown };
  /** The message of `error`, fit to be shown. */
  shown?: string;
}

/** Something that was asked of a server has no result; its subclasses say why. */
export class ClientError extends McplineError {
  override readonly code: string = "CLIENT_ERROR";
  /** Whether the server certainly did nothing of what was asked, so that asking again can't do it twice. */
  readonly retrySafe: boolean;
  /** Whether it is not known what the server did. */
  readonly outcomeUnknown: boolean;

  /** @internal */
  constructor(message: string, known: Partial<Known> = {}) {
    super(message);
    this.retrySafe = known.retrySafe ?? false;
    this.outcomeUnknown = known.outcomeUnknown ?? false;
  }

  /** A {@link ServerError} is one, too: it has two bases. @internal */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return (
      Function.prototype[Symbol.hasInstance].call(this, value) || (this === ClientError && value instanceof ServerError)
    );
  }
}

/**
 * The server answered with a JSON-RPC error. It is a {@link ClientError} as well as an {@link RpcError}:
 * `instanceof` says so of both.
 */
export class ServerError extends RpcError {
  override readonly code: string = "SERVER_ERROR";
  /** See {@link ClientError.retrySafe}. */
  readonly retrySafe: boolean;
  /** See {@link ClientError.outcomeUnknown}. */
  readonly outcomeUnknown: boolean;

  /** @internal */
  constructor(rpcCode: number, message: string, data?: unknown, known: Partial<Known> = {}) {
    super(rpcCode, message, data, known.shown ?? message);
    this.retrySafe = known.retrySafe ?? false;
    this.outcomeUnknown = known.outcomeUnknown ?? false;
  }
}

/** No answer came in time. Whether the server did what was asked is not known; it was told to stop. */
export class RequestTimedOutError extends ClientError {
  override readonly code: string = "REQUEST_TIMED_OUT";
  /** How long was waited, in ms: without a sign of life, or in all. */
  readonly waited: number;
  /** Whether it is the maximum that is over, which no progress extends. */
  readonly inAll: boolean;

  /** @internal */
  constructor(message: string, known: Partial<Known> & { waited?: number; inAll?: boolean } = {}) {
    super(message, known);
    this.waited = known.waited ?? 0;
    this.inAll = known.inAll ?? false;
  }
}

/** The server answered with an HTTP status instead of a message. */
export class HttpError extends ClientError {
  override readonly code: string = "HTTP_ERROR";
  readonly status: number;
  /** The beginning of the body, 4 KiB at most. */
  readonly body: string;
  /** The `WWW-Authenticate` header, if there was one. */
  readonly challenge: string | undefined;
  /** The JSON-RPC error in the body, if there was one. */
  readonly error: RpcError | undefined;

  /** @internal */
  constructor(
    message: string,
    known: Partial<Known> & { status?: number; body?: string; challenge?: string | null } = {},
  ) {
    super(message, known);
    this.status = known.status ?? 0;
    this.body = known.body ?? "";
    this.challenge = known.challenge ?? undefined;
    this.error = rpcError(known);
  }
}

/**
 * The server can't be reached, or the connection or session ended before the answer came. `retrySafe` says that the
 * server was never asked, `outcomeUnknown` that it was.
 */
export class ConnectionFailedError extends ClientError {
  override readonly code: string = "CONNECTION_FAILED";
}

/** The server's process ended. */
export class ServerExitedError extends ConnectionFailedError {
  override readonly code: string = "SERVER_EXITED";
  /** How: "exit status: 1", "signal: 9 (SIGKILL)". */
  readonly exit: string | undefined;
  /** The last lines that it wrote to stderr, where they are captured. */
  readonly stderr: readonly string[];

  /** @internal */
  constructor(message: string, known: Partial<Known> & { exit?: string | null; stderr?: string[] } = {}) {
    super(message, known);
    this.exit = known.exit ?? undefined;
    this.stderr = known.stderr ?? [];
  }
}

/** What came from the server is not what the protocol, or a schema of its own, demands. */
export class InvalidAnswerError extends ClientError {
  override readonly code: string = "INVALID_ANSWER";
}

/** The server was reached, but no conversation could be opened with it. */
export class OpenFailedError extends ClientError {
  override readonly code: string = "OPEN_FAILED";
  /** The JSON-RPC error that it answered with, if it did. */
  readonly error: RpcError | undefined;

  /** @internal */
  constructor(message: string, known: Partial<Known> = {}) {
    super(message, known);
    this.error = rpcError(known);
  }
}

/** The server was reached, but did not answer in time. */
export class OpenTimedOutError extends OpenFailedError {
  override readonly code: string = "OPEN_TIMED_OUT";
}

/**
 * A question of the server could not be answered: there is no handler for it, or the handler failed. The request in
 * whose course it came was given up (2026-07-28).
 */
export class QuestionUnansweredError extends ClientError {
  override readonly code: string = "QUESTION_UNANSWERED";
  /** What the question was answered with. */
  readonly error: RpcError | undefined;

  /** @internal */
  constructor(message: string, known: Partial<Known> = {}) {
    super(message, known);
    this.error = rpcError(known);
  }
}

/** The server demands a token, and there is none that it takes. The request had no effect. */
export class AuthorizationFailedError extends ClientError {
  override readonly code: string = "AUTHORIZATION_FAILED";
  /** What failed, by a stable name: `unattended`, `refused`, `insufficient_scope`, `issuer_mismatch` and so on. */
  readonly reason: string;

  /** @internal */
  constructor(message: string, known: Partial<Known> = {}) {
    super(message, known);
    this.reason = known.reason ?? "";
  }
}

/** The host's hook refused the tool call; it was not sent. Thrown by `onToolCall` with the reason. */
export class ToolCallRefusedError extends ClientError {
  override readonly code: string = "TOOL_CALL_REFUSED";
}

/** The revision or the server doesn't have what was asked for; it was not sent. */
export class NotSupportedError extends ClientError {
  override readonly code: string = "NOT_SUPPORTED";
}

/** The client was closed. */
export class ClientClosedError extends ClientError {
  override readonly code: string = "CLIENT_CLOSED";
}

function rpcError({ error, shown }: Partial<Known>): RpcError | undefined {
  return error && new RpcError(error.code, error.message, error.data, shown ?? error.message);
}

for (const [name, made] of Object.entries({
  ClientError,
  AuthorizationFailedError,
  RequestTimedOutError,
  HttpError,
  ConnectionFailedError,
  ServerExitedError,
  InvalidAnswerError,
  OpenFailedError,
  OpenTimedOutError,
  QuestionUnansweredError,
  ToolCallRefusedError,
  NotSupportedError,
  ClientClosedError,
})) {
  defineFailure(name, (message, members) => new made(message, members));
}
defineFailure("ServerError", (message, members) => {
  const known = members as unknown as Known;
  const { code, message: said, data } = known.error ?? { code: 0, message };
  return new ServerError(code, said, data, known);
});
