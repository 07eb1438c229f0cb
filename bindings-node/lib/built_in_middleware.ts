/** The middleware that the library provides, for {@link Server.use}. It runs in the core, without JavaScript. */

import { UsageError } from "./errors.js";
import { checkLists, checkOptions } from "./option_checks.js";
import { optionNames, snakeCase } from "./option_names.js";
import { count, secondsFromMs } from "./settings.js";

/**
 * What a limit counts requests by:
 *
 * - `client`: the authenticated caller, else the network address (for IPv6 its network of 64 bits), else the connection.
 *   Clients of `server.fetch` without an address count as one.
 * - `session`: the session, over HTTP on revisions up to 2025-11-25. Other requests count by client.
 * - `target`: the method and the tool, prompt or resource.
 */
export type LimitKey = "client" | "session" | "target";

/** Options of {@link rateLimit}. */
export interface RateLimitOptions {
  /** Requests in each period, on average; at least 1. */
  requests: number;
  /** The period, in milliseconds. Default: 1,000. */
  period?: number;
  /** Requests at once; at least 1. Default: as many as in a period. */
  burst?: number;
  /** What requests are counted by, together. Default: all requests are counted together. */
  per?: readonly LimitKey[];
}

/** Options of {@link concurrencyLimit}. */
export interface ConcurrencyLimitOptions {
  /** Requests that run at the same time; at least 1. */
  maxRunning: number;
  /** Requests that may wait. Default: 0. */
  maxWaiting?: number;
  /** What requests are counted by, together. Default: all requests are counted together. */
  per?: readonly LimitKey[];
}

/** Options of {@link responseCache}. */
export interface ResponseCacheOptions {
  /** Time that a result is kept, in milliseconds. */
  ttl: number;
  /** Names of tools whose results are kept. They must have no effects, because not every call runs them. Default: none. */
  tools?: readonly string[];
  /** Bytes of results that are kept. If there is no room, the oldest are dropped. Default: 16 MiB. */
  maxBytes?: number;
}

/** Options of {@link responseSizeLimit}. */
export interface ResponseSizeLimitOptions {
  /** Bytes of a result, as JSON. Values from 1 to 511 count as 512: a note must fit. */
  maxBytes: number;
}

/** A middleware that the library provides. It cannot be called, only given to {@link Server.use}. */
export class BuiltInMiddleware {
  readonly #definition: string;

  /** @param definition JSON of the core. @internal */
  constructor(definition: string) {
    this.#definition = definition;
  }

  /** The definition that the core reads, as JSON. @internal */
  get definition(): string {
    return this.#definition;
  }
}

/** Forms of options. */
type Form = "count" | "time" | "list";

/** The form of each option. */
type Forms<T> = Record<keyof T, Form>;

const RATE_LIMIT: Forms<RateLimitOptions> = { requests: "count", period: "time", burst: "count", per: "list" };
const CONCURRENCY_LIMIT: Forms<ConcurrencyLimitOptions> = { maxRunning: "count", maxWaiting: "count", per: "list" };
const RESPONSE_CACHE: Forms<ResponseCacheOptions> = { ttl: "time", tools: "list", maxBytes: "count" };
const RESPONSE_SIZE_LIMIT: Forms<ResponseSizeLimitOptions> = { maxBytes: "count" };

const RATE_LIMIT_NAMES = optionNames<RateLimitOptions>(RATE_LIMIT);
const CONCURRENCY_LIMIT_NAMES = optionNames<ConcurrencyLimitOptions>(CONCURRENCY_LIMIT);
const RESPONSE_CACHE_NAMES = optionNames<ResponseCacheOptions>(RESPONSE_CACHE);
const RESPONSE_SIZE_LIMIT_NAMES = optionNames<ResponseSizeLimitOptions>(RESPONSE_SIZE_LIMIT);

/**
 * Returns a middleware that limits how often requests are answered (token bucket).
 *
 * ```ts
 * // 60 calls of each client per minute, 10 of them at once.
 * server.use({ methods: ["tools/call"] }, rateLimit({ requests: 60, period: 60_000, burst: 10, per: ["client"] }));
 * ```
 *
 * Further requests fail with {@link RpcError}, code -31000, whose data say in how many seconds (`retryAfter`) one may succeed.
 *
 * Each `use` counts on its own. If requests have more than 10,000 keys (`per`) at a time, the newest ones share one limit.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type. {@link Server.use} throws it for a value out of
 * range.
 */
export function rateLimit(options: RateLimitOptions): BuiltInMiddleware {
  return builtIn("rateLimit", options, RATE_LIMIT, RATE_LIMIT_NAMES, "requests");
}

/**
 * Returns a middleware that limits how many requests run at the same time.
 *
 * ```ts
 * // Each tool with this tag runs twice at a time; 20 calls of it may wait.
 * server.use({ tags: ["slow"] }, concurrencyLimit({ maxRunning: 2, maxWaiting: 20, per: ["target"] }));
 * ```
 *
 * Further requests wait in the order of their arrival. When `maxWaiting` of them wait, others fail with {@link RpcError}, code
 * -31000, without data. Each `use` counts on its own.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type. {@link Server.use} throws it for a value out of
 * range.
 */
export function concurrencyLimit(options: ConcurrencyLimitOptions): BuiltInMiddleware {
  return builtIn("concurrencyLimit", options, CONCURRENCY_LIMIT, CONCURRENCY_LIMIT_NAMES, "maxRunning");
}

/**
 * Returns a middleware that keeps results and answers equal requests with them: contents of resources, prompts, and results
 * of the `tools` that it is given.
 *
 * ```ts
 * server.use(responseCache({ ttl: 60_000, tools: ["forecast"] }));
 * ```
 *
 * A result is kept for the caller that it was made for, with its scopes; without authorization for the session or connection.
 * Over HTTP on 2026-07-28, requests without authorization share only results with `cacheScope: "public"`, which are kept for all
 * clients. Errors, results with `isError` and those that ask for input are not kept. Requests are equal if they have the same
 * method, parameters (without `_meta`) and revision.
 *
 * An answer from the cache runs no handler, so it sends no progress and no log messages. A result is kept for its whole `ttl`,
 * also if the feature changes or is removed. Each `use` has a cache of its own.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type.
 */
export function responseCache(options: ResponseCacheOptions): BuiltInMiddleware {
  return builtIn("responseCache", options, RESPONSE_CACHE, RESPONSE_CACHE_NAMES, "ttl");
}

/**
 * Returns a middleware that limits the size of the results of tools, which models have to read.
 *
 * ```ts
 * server.use(responseSizeLimit({ maxBytes: 100_000 }));
 * ```
 *
 * Of a larger result, the longest text is cut, with a note that says how many bytes are left out. If that is not enough, or the
 * result has structured content, the client gets a tool error (`isError`) that names the size and the limit. Results that ask for
 * input stay as they are.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type. {@link Server.use} throws it for a value out of
 * range.
 */
export function responseSizeLimit(options: ResponseSizeLimitOptions): BuiltInMiddleware {
  return builtIn("responseSizeLimit", options, RESPONSE_SIZE_LIMIT, RESPONSE_SIZE_LIMIT_NAMES, "maxBytes");
}

/** Checks the form of the options, and writes them for the core, which checks what they mean. */
function builtIn<T extends object>(
  kind: string,
  options: T,
  forms: Forms<T>,
  names: readonly string[],
  needed: keyof T & string,
): BuiltInMiddleware {
  const where = `\`${kind}\``;
  checkOptions(where, options, names);
  if (options[needed] === undefined) {
    throw new UsageError(`${where}: \`${needed}\` is missing`);
  }
  const core: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) {
      core[snakeCase(name)] = converted(where, name, forms[name as keyof T], value);
    }
  }
  return new BuiltInMiddleware(JSON.stringify({ [snakeCase(kind)]: core }));
}

function converted(where: string, name: string, form: Form, value: unknown): unknown {
  switch (form) {
    case "count":
      return count(name, value);
    case "time":
      return secondsFromMs(name, value);
    case "list":
      checkLists(where, { [name]: value });
      return value;
  }
}
