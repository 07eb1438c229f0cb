/** The errors of mcpline: one base class, and one class per question that a caller may ask of a failure. */

/** Whatever fails in mcpline. {@link code} tells what, and never changes. */
export class McplineError extends Error {
  /** What failed, in a word: stable, to be compared with. */
  readonly code: string = "MCPLINE";

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * A JSON-RPC error. Throw it in a handler to answer a request with exactly this error.
 *
 * JSON-RPC 2.0, section 5.1; the codes of the protocol are in its schema.
 */
export class RpcError extends McplineError {
  override readonly code: string = "RPC_ERROR";
  /** The code on the wire. */
  readonly rpcCode: number;
  /**
   * The message on the wire. In the `message` of an error that a peer sent, and so in its stack, terminal escapes and
   * characters that control or reorder text are left out or replaced.
   */
  readonly rpcMessage: string;
  /** Whatever else the error says: any JSON value. */
  readonly data: unknown;

  /** `shown` is what `message` is to be, if it is another text than on the wire. */
  constructor(rpcCode: number, message: string, data?: unknown, shown = message) {
    super(shown);
    this.rpcCode = rpcCode;
    this.rpcMessage = message;
    this.data = data;
  }
}

/** The client answered a question with an error. A handler that lets it pass has failed: the model reads of it. */
export class RefusedError extends RpcError {
  override readonly code: string = "REFUSED";
}

/** A tool failed in a way that the model should read. Throw it in a handler of a tool; the message is for the model. */
export class ToolError extends McplineError {
  override readonly code: string = "TOOL_ERROR";
}

/**
 * The client lacks a capability. Not caught, it ends a request with error -32021 on 2026-07-28, and a tool's call with
 * its message as a tool error on other revisions.
 */
export class UnsupportedError extends McplineError {
  override readonly code: string = "UNSUPPORTED";
  /** `ClientCapabilities` that would do. */
  readonly required: Record<string, unknown>;

  constructor(message: string, required: Record<string, unknown>) {
    super(message);
    this.required = required;
  }
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
 * Error -32042 on 2025-11-25 (`client/elicitation`, URL elicitation required), questions on 2026-07-28, words elsewhere.
 */
export class UrlElicitationRequiredError extends McplineError {
  override readonly code: string = "URL_ELICITATION_REQUIRED";
  /** The pages. */
  readonly visits: readonly Visit[];

  constructor(...visits: Visit[]) {
    super(visits.map(({ message, url }) => `${message}: ${url}`).join("\n"));
    this.visits = visits;
  }
}

/** No answer came in time. */
export class TimedOutError extends McplineError {
  override readonly code: string = "TIMED_OUT";
}

/** What was used is closed, or has ended. */
export class ClosedError extends McplineError {
  override readonly code: string = "CLOSED";
}

/** The program uses mcpline wrongly. */
export class UsageError extends McplineError {
  override readonly code: string = "USAGE";
}

/** The operating system failed: an address is taken, a pipe is broken. */
export class TransportError extends McplineError {
  override readonly code: string = "TRANSPORT";
}

/** A defect of mcpline. */
export class InternalError extends McplineError {
  override readonly code: string = "INTERNAL";
}

/** A failure as the addon describes it. */
export interface FailureDescription {
  class: string;
  message: string;
  members: Record<string, unknown>;
}

type Maker = (message: string, members: Record<string, unknown>) => Error;

const makers = new Map<string, Maker>([
  ["McplineError", (message) => new McplineError(message)],
  [
    "RefusedError",
    (message, { rpcCode, rpcMessage, data }) =>
      new RefusedError(rpcCode as number, rpcMessage as string, data, message),
  ],
  ["UnsupportedError", (message, { required }) => new UnsupportedError(message, required as Record<string, unknown>)],
  ["TimedOutError", (message) => new TimedOutError(message)],
  ["ClosedError", (message) => new ClosedError(message)],
  ["UsageError", (message) => new UsageError(message)],
  ["TransportError", (message) => new TransportError(message)],
  ["InternalError", (message) => new InternalError(message)],
]);

/**
 * Says how a class of failures is made into an error.
 * @internal
 */
export function defineFailure(name: string, maker: Maker): void {
  makers.set(name, maker);
}

/**
 * The error that the addon describes as JSON.
 * @internal
 */
export function errorOf(json: string): Error {
  const failure = JSON.parse(json) as FailureDescription;
  const maker = makers.get(failure.class);
  return maker === undefined ? new InternalError(failure.message) : maker(failure.message, failure.members);
}

/**
 * Calls the addon; its failures become errors of ours.
 * @internal
 */
export function attempt<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('{"class":')) {
      const failure = errorOf(error.message);
      Error.captureStackTrace(failure, attempt);
      throw failure;
    }
    throw error instanceof Error ? new InternalError(error.message, { cause: error }) : error;
  }
}
