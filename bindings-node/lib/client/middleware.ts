/** Middleware of clients: functions around the requests that a client sends ({@link ClientOptions.middleware}). */

import { UsageError } from "../errors.js";
import { checkOptions, typeName } from "../option_checks.js";
import { optionNames } from "../option_names.js";
import type { Awaitable } from "../feature_options.js";
import { BuiltInMiddleware } from "../built_in_middleware.js";
import { BUILT_INS, BuiltInClientMiddleware } from "./built_in_middleware.js";

/**
 * Passes the request on, to the next middleware or to the server. Resolves to the result.
 *
 * It may be called several times, to try again: each time the request is sent. Not at all, and the middleware answers instead.
 *
 * @param request The request, or a changed one ({@link ClientRequest.with}). Default: unchanged.
 * @throws McplineError if the request fails. If the middleware does not catch it, the caller gets it as it is.
 */
export type ClientNext = (request?: ClientRequest) => Promise<Record<string, unknown>>;

/**
 * Code around the requests of a client: calls of tools, lists (each page), reads, prompts, completions, subscriptions, pings and
 * custom requests. It does not see the handshake, notifications, and the requests of the server.
 *
 * Returns the result of {@link ClientNext}, or another one: an object. What it throws is what the caller gets.
 */
export type ClientMiddleware = (request: ClientRequest, next: ClientNext) => Awaitable<ObjectResult>;

/** Any object but a promise, whose value may be missing. */
type ObjectResult = object & { then?: never };

/** What {@link ClientRequest.with} changes. */
export interface ClientRequestChanges {
  /** The arguments of a tool or prompt. */
  arguments?: object;
  /** All parameters. If `arguments` are given too, they replace those of the parameters. */
  params?: object;
}

const CHANGES = optionNames<ClientRequestChanges>({ arguments: true, params: true });

const TARGETS: ReadonlyMap<string, "name" | "uri"> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["resources/subscribe", "uri"],
  ["resources/unsubscribe", "uri"],
]);

/** A request on its way through middleware of a client. {@link with} returns a changed one. */
export class ClientRequest {
  /** The method, such as `tools/call`. */
  readonly method: string;
  /** The signal of the request, if the caller gave one. */
  readonly signal: AbortSignal | undefined;
  readonly #params: object | undefined;

  /** @param params Plain data. @internal */
  constructor(method: string, params: object | undefined, signal: AbortSignal | undefined) {
    this.method = method;
    this.signal = signal;
    this.#params = params;
  }

  /** The parameters, as they are sent; empty if the request has none. */
  get params(): Readonly<Record<string, unknown>> {
    return (this.#params ?? {}) as Record<string, unknown>;
  }

  /** The name of the tool or prompt, or the URI of the resource. `undefined` for other methods. */
  get name(): string | undefined {
    const member = TARGETS.get(this.method);
    const name = member === undefined ? undefined : this.params[member];
    return typeof name === "string" ? name : undefined;
  }

  /** The arguments of the tool or prompt; empty if the request has none. */
  get arguments(): Readonly<Record<string, unknown>> {
    const given = this.params["arguments"];
    return typeof given === "object" && given !== null ? (given as Record<string, unknown>) : {};
  }

  /**
   * Returns a request with other arguments or parameters, for {@link ClientNext}.
   *
   * @throws UsageError if a value is not an object.
   */
  with(changes: ClientRequestChanges): ClientRequest {
    checkOptions("`with` of a request", changes, CHANGES);
    const { arguments: given, params = this.params } = changes;
    const objects: Record<string, unknown> = { params, arguments: given ?? {} };
    for (const [what, value] of Object.entries(objects)) {
      if (!isObject(value)) {
        throw new UsageError(`\`with\` of a request: \`${what}\` must be an object, not ${typeName(value)}`);
      }
    }
    const changed = given === undefined ? params : { ...params, arguments: given };
    return new ClientRequest(this.method, plainData(changed), this.signal);
  }

  /** What is sent; `undefined` if the request has no parameters. @internal */
  get sent(): object | undefined {
    return this.#params;
  }
}

/** Returns parameters as they are sent, so that functions see what the server will. */
export function plainData(params: object | undefined): object | undefined {
  const json = params === undefined ? undefined : (JSON.stringify(params) as string | undefined);
  return json === undefined ? undefined : (JSON.parse(json) as object);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Functions of the option `middleware`, and what the library provides as JSON of the core. */
export interface SortedMiddleware {
  readonly functions: readonly ClientMiddleware[];
  readonly definitions: readonly object[];
}

/** Kinds of what servers have as well, in definitions of the core. */
const SHARED: ReadonlySet<string> = new Set(["audit_log", "redaction"]);

const NONE: SortedMiddleware = { functions: [], definitions: [] };

/**
 * Checks the option `middleware`.
 *
 * @throws UsageError if it is not a list of functions, followed by what the library provides.
 */
export function sortedMiddleware(given: unknown): SortedMiddleware {
  if (given === undefined) {
    return NONE;
  }
  if (!Array.isArray(given)) {
    throw new UsageError(`\`middleware\` must be an array, not ${typeName(given)}`);
  }
  const functions: ClientMiddleware[] = [];
  const definitions: object[] = [];
  for (const each of given as unknown[]) {
    if (each instanceof BuiltInClientMiddleware) {
      definitions.push(each.definition);
    } else if (each instanceof BuiltInMiddleware) {
      const definition = JSON.parse(each.definition) as object;
      if (!Object.keys(definition).some((kind) => SHARED.has(kind))) {
        throw new UsageError("`middleware` of a client takes no middleware that is for servers only");
      }
      definitions.push(definition);
    } else if (typeof each !== "function") {
      throw new UsageError(
        `\`middleware\` of a client takes no ${typeName(each)}: pass functions, and what \`retry\`, \`circuitBreaker\`, ` +
          "`toolPolicy`, `auditLog` and `redaction` return",
      );
    } else if ((BUILT_INS as readonly unknown[]).includes(each)) {
      throw new UsageError("`middleware` of a client has a function of the library that was not called");
    } else if (definitions.length > 0) {
      throw new UsageError(
        "functions come first in `middleware` of a client, because what the library provides runs after them",
      );
    } else {
      functions.push(each as ClientMiddleware);
    }
  }
  return { functions, definitions };
}

/** Runs a request through functions, until its signal is aborted. */
export async function sendThrough(
  functions: readonly ClientMiddleware[],
  request: ClientRequest,
  send: (request: ClientRequest) => Promise<unknown>,
): Promise<object> {
  const { signal } = request;
  signal?.throwIfAborted();
  const running = throughMiddleware(functions, request, send);
  const result = await (signal === undefined ? running : unlessAborted(signal, running));
  // A copy: the client may add members to it, and a function may keep its own.
  return { ...(result as object) };
}

function unlessAborted<T>(signal: AbortSignal, running: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    running.finally(() => signal.removeEventListener("abort", abort)).then(resolve, reject);
  });
}

/**
 * Runs a request through functions.
 *
 * @param send Sends what has passed them all.
 * @throws UsageError if a function returns no object.
 */
async function throughMiddleware(
  functions: readonly ClientMiddleware[],
  request: ClientRequest,
  send: (request: ClientRequest) => Promise<unknown>,
): Promise<unknown> {
  const [first, ...others] = functions;
  if (first === undefined) {
    return send(request);
  }
  const next = (changed: ClientRequest = request) => {
    if (!(changed instanceof ClientRequest)) {
      return Promise.reject(new UsageError(`\`next\` takes a request, not ${typeName(changed)}`));
    }
    return throughMiddleware(others, changed, send) as Promise<Record<string, unknown>>;
  };
  const result: unknown = await first(request, next);
  if (!isObject(result)) {
    const name = first.name === "" ? "" : ` ${first.name}`;
    throw new UsageError(
      `the middleware${name} returned ${typeName(result)} for ${request.method}: return the result of \`next\`, or an ` +
        "object in its place",
    );
  }
  return result;
}
