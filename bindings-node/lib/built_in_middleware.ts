/** The middleware that the library provides, for {@link Server.use}. It runs in the core, without JavaScript. */

import { coreDefinition, optionForms, type OptionForms } from "./middleware_options.js";

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
  /**
   * The name under which all processes that share state (`settings.sharing`: `"local"`, or Valkey) count together. Limits with
   * the same name should have the same options. While the store fails, and with a store of your own, each process counts on its
   * own. Default: each process counts on its own.
   */
  shared?: string;
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
  /** Whether clients can read what is cut in pages, as resources `result://{id}/{page}`. Default: `false`. */
  pages?: boolean;
  /** Bytes that are kept for pages. If there is no room, the oldest are dropped. Default: 16 MiB. */
  maxKeptBytes?: number;
  /** Time that pages are kept, in milliseconds. Default: ten minutes. */
  lifetime?: number;
}

/** Options of {@link auditLog}. */
export interface AuditLogOptions {
  /**
   * The file. A new one can be read and written by its owner only. Each log needs a file of its own; several processes may share
   * one only without rotation.
   */
  path: string;
  /** The size at which the file is rotated, in bytes; 0: never. Default: 100 MiB. */
  maxBytes?: number;
  /** How many rotated files are kept: `path.1`, which is the newest, `path.2` and so on; at most 1,000. Default: 10. */
  maxFiles?: number;
  /** Whether records contain the arguments of tools and prompts. Of those above 16 KiB they contain the size. Default: `false`. */
  arguments?: boolean;
  /** Whether records contain results. Of those above 16 KiB they contain the size. Default: `false`. */
  results?: boolean;
  /**
   * Names of members whose values are replaced by `[redacted]`, at any depth and without regard to case. The values of obvious
   * secrets, such as `password` and `api_key`, always are.
   */
  redact?: readonly string[];
  /** Whether a request fails if its record cannot be written. Otherwise a warning is logged. Default: `true`. */
  required?: boolean;
}

/** Options of {@link redaction}. */
export interface RedactionOptions {
  /**
   * Names of members whose values are replaced, at any depth of structured content, and of texts that are themselves a JSON
   * object, array or string. They are compared without regard to case.
   */
  members?: readonly string[];
  /**
   * Regular expressions whose matches are replaced in texts and messages of errors, and in the strings of structured content. Their
   * syntax is that of the Rust crate `regex`, without look-around and back references.
   */
  patterns?: readonly string[];
  /** What takes the place of a value or match. Default: `[redacted]`. */
  replacement?: string;
  /** Whether the arguments of tools and prompts are redacted as well, before they are checked. Default: `false`. */
  arguments?: boolean;
}

/** Options of {@link serverToolPolicy}. */
export interface ServerToolPolicyOptions {
  /** Names of the tools that are allowed; `*` stands for any characters. Default: all. */
  allowed?: readonly string[];
  /** Names of tools that are denied, also if they are allowed. Default: none. */
  denied?: readonly string[];
  /** Names of tools before whose calls the user is asked. Default: none. */
  approval?: readonly string[];
  /**
   * Callers with all of these scopes may use every tool without approval. Callers on stdio, on Unix sockets, in memory and on
   * channels without a principal count as having all scopes. Default: none are exempt.
   */
  exemptScopes?: readonly string[];
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

const RATE_LIMIT = optionForms<RateLimitOptions>({
  requests: "count",
  period: "time",
  burst: "count",
  per: "list",
  shared: "text",
});
const CONCURRENCY_LIMIT = optionForms<ConcurrencyLimitOptions>({
  maxRunning: "count",
  maxWaiting: "count",
  per: "list",
});
const RESPONSE_CACHE = optionForms<ResponseCacheOptions>({ ttl: "time", tools: "list", maxBytes: "count" });
const RESPONSE_SIZE_LIMIT = optionForms<ResponseSizeLimitOptions>({
  maxBytes: "count",
  pages: "flag",
  maxKeptBytes: "count",
  lifetime: "time",
});
const AUDIT_LOG = optionForms<AuditLogOptions>({
  path: "text",
  maxBytes: "count",
  maxFiles: "count",
  arguments: "flag",
  results: "flag",
  redact: "list",
  required: "flag",
});
const REDACTION = optionForms<RedactionOptions>({
  members: "list",
  patterns: "list",
  replacement: "text",
  arguments: "flag",
});
const TOOL_POLICY = optionForms<ServerToolPolicyOptions>({
  allowed: "list",
  denied: "list",
  approval: "list",
  exemptScopes: "list",
});

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
 * Each `use` counts on its own, unless it has a name (`shared`). If requests have more than 10,000 keys (`per`) at a time, the
 * newest ones share one limit.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type. {@link Server.use} throws it for a value out of
 * range.
 */
export function rateLimit(options: RateLimitOptions): BuiltInMiddleware {
  return builtIn("rateLimit", options, RATE_LIMIT, "requests");
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
  return builtIn("concurrencyLimit", options, CONCURRENCY_LIMIT, "maxRunning");
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
 * An answer from the cache runs no handler, so it sends no progress and no log messages. Results are forgotten when features of
 * their kind are added, changed, enabled, disabled or removed, and those of a resource with {@link Server.notifyResourceUpdated}.
 * Each `use` has a cache of its own.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type.
 */
export function responseCache(options: ResponseCacheOptions): BuiltInMiddleware {
  return builtIn("responseCache", options, RESPONSE_CACHE, "ttl");
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
 * With `pages`, the note or the error names resources in which the client can read the whole text, or the structured content as
 * JSON. Their ids are not guessable, and if the caller was authenticated, only that caller can read them. The server gets a
 * resource template for them; a client of a server that it is mounted in cannot read them.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type. {@link Server.use} throws it for a value out of
 * range.
 */
export function responseSizeLimit(options: ResponseSizeLimitOptions): BuiltInMiddleware {
  return builtIn("responseSizeLimit", options, RESPONSE_SIZE_LIMIT, "maxBytes");
}

/**
 * Returns a middleware that appends a record of each request to a file: a JSON object on a line of its own, with time, method, name,
 * caller, duration and outcome. See "Audit log" in `docs/observability.md`.
 *
 * ```ts
 * server.use({ methods: ["tools/call"] }, auditLog({ path: "audit.jsonl", arguments: true, redact: ["iban"] }));
 * ```
 *
 * Records contain neither tokens nor ids of sessions. A record is passed to the operating system before the client gets the response.
 * If it cannot be written, the request has run, but the client gets an internal error. A request that ends without a response is
 * `cancelled`.
 *
 * In {@link ClientOptions.middleware}, it records what the client sends: with server, address and kind of the error, and without
 * caller. The file is opened when the client connects. A request whose record cannot be written fails with {@link TransportError}.
 *
 * @throws UsageError if an option is missing, unknown, or not of its type. {@link Server.use} opens the file, and throws it if that
 * fails.
 */
export function auditLog(options: AuditLogOptions): BuiltInMiddleware {
  return builtIn("auditLog", options, AUDIT_LOG, "path");
}

/**
 * Returns a middleware that replaces values in the results of tools, the texts of resources and the messages of prompts.
 *
 * ```ts
 * server.use(redaction({ members: ["iban"], patterns: [String.raw`\b\d{3}-\d{2}-\d{4}\b`] }));
 * ```
 *
 * Results of custom requests are redacted as structured content is, and, if it is used without a scope, what handlers send. Types,
 * URIs, names, `_meta`, blobs, the data of errors and lists stay as they are. Structured content
 * is checked against the output schema before: let members that are replaced be strings there, because clients may refuse a result
 * that does not match. A value that takes more than five seconds is not sent: the client gets an internal error. Use
 * {@link responseSizeLimit} before this; after it, {@link Server.use} refuses it.
 *
 * In {@link ClientOptions.middleware}, results are replaced before the caller gets them, and arguments before they leave the host.
 * `onToolOutcome` gets the result as the server sent it. A value that takes more than five seconds is a {@link LimitExceededError}.
 *
 * @throws UsageError if an option is unknown or not of its type. {@link Server.use} throws it for an invalid pattern, and if there
 * are neither members nor patterns.
 */
export function redaction(options: RedactionOptions): BuiltInMiddleware {
  return builtIn("redaction", options, REDACTION);
}

/**
 * Returns a middleware that decides which tools clients list and call. {@link toolPolicy} is that of clients.
 *
 * ```ts
 * server.use(serverToolPolicy({ denied: ["delete_*"], approval: ["send_*"], exemptScopes: ["admin"] }));
 * ```
 *
 * A tool that is not allowed is left out of lists, and a call of it fails like that of a tool that does not exist. Before each call
 * of a tool that needs approval, the server asks the user by an elicitation that shows the name and the arguments. If the user
 * declines, or the client does not support elicitation in form mode, the tool does not run.
 *
 * Names are those that the tools have at the server of the policy: at a mounted server without the prefix of the mount, and for a
 * transformed tool the new name. Of several policies, the strictest decides, also of those of mounted servers. A policy also decides on
 * tools to which other middleware passes a request, whatever their order. If other middleware answers a call by itself, the user is
 * not asked.
 *
 * @throws UsageError if an option is unknown or not of its type. {@link Server.use} throws it for invalid or empty `exemptScopes`.
 */
export function serverToolPolicy(options: ServerToolPolicyOptions): BuiltInMiddleware {
  return builtIn("toolPolicy", options, TOOL_POLICY);
}

function builtIn<T extends object>(
  kind: string,
  options: T,
  forms: OptionForms<T>,
  needed?: keyof T & string,
): BuiltInMiddleware {
  return new BuiltInMiddleware(JSON.stringify(coreDefinition(kind, options, forms, needed)));
}
