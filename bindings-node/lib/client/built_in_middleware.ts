/** The middleware of clients that the library provides, for {@link ClientOptions.middleware}. It runs in the core. */

import { coreDefinition, optionForms, type OptionForms } from "../middleware_options.js";

/** Options of {@link retry}. */
export interface RetryOptions {
  /** How often a request is sent, at most. Default: 3. */
  attempts?: number;
  /** Delay before the second attempt in milliseconds, which doubles before each further one. Default: 200. */
  firstDelay?: number;
  /** Maximum delay in milliseconds. An error with a longer `retryAfter` is thrown. Default: 10,000. */
  maxDelay?: number;
  /** Tools that may run twice for one call, whatever their annotations say. Default: none. */
  tools?: readonly string[];
}

/** Options of {@link circuitBreaker}. */
export interface CircuitBreakerOptions {
  /** Failures in a row. Default: 5. */
  failures?: number;
  /** Time in which nothing is sent, in milliseconds. Default: 30,000. */
  reset?: number;
}

/** Options of {@link toolPolicy}. */
export interface ToolPolicyOptions {
  /** Names of the tools that are allowed; `*` stands for any characters. Default: all. */
  allowed?: readonly string[];
  /** Names of tools that are denied, also if they are allowed. Default: none. */
  denied?: readonly string[];
  /**
   * Names of tools whose calls need the approval of {@link Handlers.onToolCall}, without which they are refused. For calls of other
   * tools it does not run. Default: it runs for all. Annotations decide nothing, because the server writes them.
   */
  approval?: readonly string[];
  /** Whether definitions are pinned for the life of the client. Default: `false`. */
  pin?: boolean;
  /**
   * File that keeps the pinned definitions: a JSON object of definitions by name. Removing a tool from it lets the tool be pinned
   * anew by the next client. Use a file of its own for each server; several clients of it may share the file.
   */
  pinFile?: string | URL;
}

/** A middleware that the library provides. It cannot be called, only given to {@link ClientOptions.middleware}. */
export class BuiltInClientMiddleware {
  readonly #definition: object;

  /** @param definition Definition of the core. @internal */
  constructor(definition: object) {
    this.#definition = definition;
  }

  /** The definition that the core reads. @internal */
  get definition(): object {
    return this.#definition;
  }
}

const RETRY = optionForms<RetryOptions>({ attempts: "count", firstDelay: "time", maxDelay: "time", tools: "list" });
const CIRCUIT_BREAKER = optionForms<CircuitBreakerOptions>({ failures: "count", reset: "time" });
const TOOL_POLICY = optionForms<ToolPolicyOptions>({
  allowed: "list",
  denied: "list",
  approval: "list",
  pin: "flag",
  pinFile: "path",
});

/**
 * Returns a middleware that sends failed requests again, after a delay that doubles.
 *
 * A request that the server has not performed is sent again in any case: the server was busy (-31000, HTTP 429 and 503) or could
 * not be reached. If the server may have performed it (the connection was lost, a timeout elapsed, the server shut down, an
 * internal error, another HTTP status from 500), only what may be performed twice is: lists, reads, prompts, completions, calls of
 * `tools`, and calls of tools that the server annotates as read-only or idempotent, with
 * {@link ClientSettings.trustToolAnnotations}. Other errors are
 * thrown, and results with `isError` are returned. The actual delay is between half and all of it, by chance, or what the
 * server asks for (`retryAfter`) if that is longer. -31000 is the code with which servers of this library refuse a request
 * before a handler runs.
 *
 * Each attempt has the timeouts of the request, and calls {@link Handlers.onToolCall}. A request with `reissue: "never"` is sent again
 * only if it was not performed. The error of an open circuit is thrown at once.
 *
 * @throws UsageError if an option is unknown, or not of its type. The client throws it for a value out of range.
 */
export function retry(options: RetryOptions = {}): BuiltInClientMiddleware {
  return builtIn("retry", options, RETRY);
}

/**
 * Returns a middleware that sends nothing for a while to a server that has failed several times in a row.
 *
 * Failures are: the server could not be reached or the handshake failed, the connection or the process ended, a timeout elapsed,
 * the server was busy, or it answered with an HTTP status from 500, or 429. Every other answer of the server is a success; errors
 * of the host, such as a refused call, count as neither. After `failures` of them in a row, requests fail with
 * {@link ServerUnreachableError} and nothing is sent; what the client has cached is still returned. After `reset` up to ten requests
 * are sent as trials. Put {@link retry} before it.
 *
 * @throws UsageError if an option is unknown, or not of its type. The client throws it for a value out of range.
 */
export function circuitBreaker(options: CircuitBreakerOptions = {}): BuiltInClientMiddleware {
  return builtIn("circuitBreaker", options, CIRCUIT_BREAKER);
}

/**
 * Returns a middleware that decides which tools of a server the client lists and calls.
 *
 * Other tools are left out of lists, and calls of them fail with {@link ToolCallRefusedError}.
 *
 * With pins, a tool keeps the definition that it had when it was first listed, with all members but its icons: a server cannot get
 * consent for a harmless tool and then change what the model reads. A tool whose definition has changed is left out of lists, with
 * a warning in the log, and calls of it are refused with the difference. A tool that the server does not list cannot be called. A
 * call of a tool that was not listed on this connection, or since the server said that its tools have changed, first lists the
 * tools.
 *
 * Names are compared as they are written. A server may run a tool under another spelling, such as another case: to limit what a
 * server can do, allow names instead of denying some.
 *
 * @throws UsageError if an option is unknown, or not of its type. The client throws it for a file that cannot be read.
 */
export function toolPolicy(options: ToolPolicyOptions = {}): BuiltInClientMiddleware {
  return builtIn("toolPolicy", options, TOOL_POLICY);
}

/** The functions that return such a middleware. */
export const BUILT_INS = [retry, circuitBreaker, toolPolicy] as const;

function builtIn<T extends object>(kind: string, options: T, forms: OptionForms<T>): BuiltInClientMiddleware {
  return new BuiltInClientMiddleware(coreDefinition(kind, options, forms));
}
