/** Settings of servers, and how they are told to the core: in its own spelling, and in seconds. */

import { type ResourceServerSettings, resourceServerOptions } from "./auth.js";
import { UsageError } from "./errors.js";
import type { Extension } from "./extension.js";
import type { Revision } from "./protocol.js";

/** So many a second, after a burst of so many at once. */
export interface Rate {
  perSecond: number;
  burst: number;
}

/** How long something may be kept, and whether others may be given it (2026-07-28, caching). */
export interface CacheHint {
  ttlMs: number;
  cacheScope?: "public" | "private";
}

/** Settings of a server. What is absent keeps its default. Times are in ms. */
export interface ServerSettings {
  /** The revisions that it speaks; all of them. */
  revisions?: Revision[];
  /** How long a message on a pipe may be, in bytes. */
  lineLimit?: number;
  /** How many messages a batch may have. */
  batchLimit?: number;
  /** How deep JSON may be nested. */
  depthLimit?: number;
  /** How many items a page of a list has; everything. */
  pageSize?: number;
  /** How long clients may keep lists (2026-07-28). */
  listCache?: CacheHint;
  /** How long clients may keep what resources hold (2026-07-28). */
  resourceCache?: CacheHint;
  /** How long a question waits for a sign of life. */
  askIdleTimeout?: number;
  /** How long a question waits in all. */
  askTimeout?: number;
  /** Secrets that seal what clients carry between rounds: base64 of at least 32 bytes; the first seals, all open. */
  stateKeys?: string[];
  /** How long clients may take between rounds. */
  stateLifetime?: number;
  /**
   * How many handlers may wait for a client's next round; 10,000. Past it the oldest one of the client that has most is
   * aborted, and its client's retry runs it again from its start.
   */
  suspended?: number;
  /**
   * Bytes held on behalf of all peers together: bodies and their calls, unread answers, events kept for clients that come
   * back, sessions; 512 MiB. What would exceed it is refused as busy (HTTP 503).
   */
  maxPeerBytes?: number;
  /** Calls in flight in all sessions together; 10,000. More are refused as busy. */
  maxCalls?: number;
  /**
   * The largest part of each limit that one client may use, above 0 and at most 1: of `maxPeerBytes`, `maxCalls`,
   * `suspended`, and over HTTP of connections and sessions. A client is a principal where requests are authenticated, else
   * an address. 0.25; past it the client is refused as busy (HTTP 429) and others are served as before.
   */
  clientShare?: number;
  /** How many rounds a request may take. */
  rounds?: number;
  /**
   * How many questions one call may put to a client of the handshake era; 1,000, so that a loop of tools that samples again
   * and again ends. On 2026-07-28 `rounds` bounds that.
   */
  callAsks?: number;
  /** How long what clients carry may be, in bytes. */
  stateSize?: number;
  /** Whether results are held against output schemas; they are. */
  checkOutput?: boolean;
  /** How often a client may call one tool. */
  toolRate?: Rate;
  /** How often completions may be asked for, by all clients; no limit. */
  completionRate?: Rate;
  /** How long calls may go on after the server is told to end. */
  shutdownGrace?: number;
  /** How many requests of one client may be in flight. */
  inFlight?: number;
  /** How many questions to one client may be open. */
  openAsks?: number;
  /** How many resources one client may subscribe to. */
  subscriptions?: number;
  /** Bytes of JSON that `clientInfo` and `capabilities` of a session may have together; 64 KiB. */
  maxClientInfoBytes?: number;
  /** Bytes that the URIs of one session's subscriptions may have together; 256 KiB. */
  maxSubscriptionBytes?: number;
  /** How often progress is told; more is thinned. */
  progressRate?: Rate;
  /** How often log messages are sent; more are dropped. */
  logRate?: Rate;
  /** How often clients are pinged; never. */
  pingInterval?: number;
  /** After how many pings without an answer a client is gone. */
  pingMisses?: number;
  /** Experimental capabilities that the server declares. */
  experimental?: Record<string, Record<string, unknown>>;
  /** What the server declares although it has none of it yet. */
  declare?: ("tools" | "resources" | "prompts" | "completions")[];
}

/** Settings of serving over HTTP. What is absent keeps its default. Times are in ms. */
export interface HttpSettings {
  /** The path of the MCP endpoint; `/mcp`. */
  path?: string;
  /** The paths of HTTP+SSE (2024-11-05), for its stream and its messages; `/sse` and `/messages`. `false`: none. */
  sse?: [stream: string, messages: string] | false;
  /** The path that tells of health; `/health`. `false`: none. */
  health?: string | false;
  /** What a proxy in front of us takes away from paths. */
  proxyPrefix?: string;
  /** Values of `Host` that are served besides loopback's. */
  allowedHosts?: string[];
  /** Values of `Origin` that are served besides loopback's. */
  allowedOrigins?: string[];
  /** How long a request's body may be, in bytes. */
  bodyLimit?: number;
  /** How long a client may take to send a request. */
  readTimeout?: number;
  /** How long a client may take to read. */
  writeTimeout?: number;
  /** How many connections may be open. */
  connections?: number;
  /** How many sessions may be open. */
  sessions?: number;
  /** How long a session may be unused. */
  sessionIdle?: number;
  /** After how long without a word an answer becomes an event stream. */
  silence?: number;
  /** How often an event stream is kept alive. */
  keepAlive?: number;
  /** How long clients are told to wait before they come back. */
  retry?: number;
  /** How many events a stream keeps for clients that come back. */
  keptEvents?: number;
  /** How many bytes of them; each counts as 128 bytes more than its message, the memory that it takes. */
  keptBytes?: number;
  /**
   * Bytes of one event stream that its client has not read yet, counted as for `keptBytes`, beside one message; 16 MiB. Beyond
   * it notifications are dropped, and a stream whose responses alone exceed it ends.
   */
  maxUnreadBytes?: number;
  /**
   * The header in which a reverse proxy in front names the address of the client, `X-Forwarded-For` for instance; the last
   * address in it counts. Tells clients apart where requests are not authenticated (`clientShare`). Without a proxy leave it out:
   * a client could write there whatever it likes.
   */
  clientAddressHeader?: string;
  /** Whose tokens are accepted; without it everybody is served. */
  auth?: ResourceServerSettings;
}

const TIMES = new Set([
  "askIdleTimeout",
  "askTimeout",
  "stateLifetime",
  "shutdownGrace",
  "pingInterval",
  "readTimeout",
  "writeTimeout",
  "sessionIdle",
  "silence",
  "keepAlive",
  "retry",
]);
const RATES = new Set(["toolRate", "completionRate", "progressRate", "logRate"]);
const CACHES = new Set(["listCache", "resourceCache"]);

/** In the core's spelling. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

/** A time in ms as the core reads it: in seconds. */
export function seconds(name: string, value: unknown): number {
  if (typeof value !== "number" || Number.isNaN(value) || value < 0) {
    throw new UsageError(`${name} is a time in ms, not ${String(value)}`);
  }
  // JSON has no infinity; this is as good.
  return Math.min(value / 1000, Number.MAX_SAFE_INTEGER);
}

function converted(name: string, value: unknown): unknown {
  if (TIMES.has(name)) {
    return seconds(name, value);
  }
  if (RATES.has(name)) {
    const { perSecond, burst } = value as Rate;
    return [perSecond, burst];
  }
  if (CACHES.has(name)) {
    const { ttlMs, cacheScope } = value as CacheHint;
    return [ttlMs, cacheScope === "public"];
  }
  return value;
}

/** Settings of a server as the core reads them; `undefined` if there are none. */
export function serverOptions(settings: ServerSettings, extensions: readonly Extension[]): string | undefined {
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (value !== undefined) {
      options[snakeCase(name)] = converted(name, value);
    }
  }
  if (extensions.length > 0) {
    Object.assign(options, declared(extensions));
  }
  return Object.keys(options).length === 0 ? undefined : JSON.stringify(options);
}

/** What declares extensions: settings by identifier, identifiers by type of result. */
function declared(extensions: readonly Extension[]): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  const resultTypes: Record<string, string> = {};
  for (const { identifier, options } of extensions) {
    const refuse = (reason: string) => new UsageError(`extension ${JSON.stringify(identifier)}: ${reason}`);
    if (Object.hasOwn(settings, identifier)) {
      throw refuse("the server has it already");
    }
    settings[identifier] = options.settings ?? {};
    for (const resultType of options.resultTypes ?? []) {
      if (Object.hasOwn(resultTypes, resultType)) {
        throw refuse(`result type ${JSON.stringify(resultType)} is another's already`);
      }
      resultTypes[resultType] = identifier;
    }
  }
  return { extensions: settings, result_types: resultTypes };
}

/** Settings of serving over HTTP as the core reads them. */
export function httpOptions(settings: HttpSettings): string {
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) {
      continue;
    }
    if (name === "sse") {
      options[value === false ? "serve_sse" : "sse_paths"] = value;
    } else if (name === "health") {
      options[value === false ? "serve_health" : "health_path"] = value;
    } else if (name === "auth") {
      options[name] = resourceServerOptions(value as ResourceServerSettings);
    } else {
      options[snakeCase(name)] = converted(name, value);
    }
  }
  return JSON.stringify(options);
}
