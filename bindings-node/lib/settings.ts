/** Settings of servers, and their conversion to the core's names and units (seconds). */

import { type ResourceServerSettings, resourceServerOptions } from "./auth.js";
import { UsageError } from "./errors.js";
import type { Extension } from "./extension.js";
import { checkOptions, typeName } from "./option_checks.js";
import { optionNames, snakeCase } from "./option_names.js";
import type { LogLevel, Revision } from "./protocol.js";
import type { Sharing } from "./sharing.js";

/** A rate limit (token bucket). */
export interface Rate {
  /** Sustained rate, per second. */
  perSecond: number;
  /** Maximum number at once. */
  burst: number;
}

/** Cache hints of a result (2026-07-28, `server/utilities/caching`). */
export interface CacheHint {
  /** Lifetime in milliseconds. */
  ttlMs: number;
  /** Whether shared caches may store the result. Default: `"private"`. */
  cacheScope?: "public" | "private";
}

/** Settings of a server. Every setting has a production-safe default. Durations are in milliseconds. */
export interface ServerSettings {
  /**
   * Where several processes of one service share sessions, event streams and notifications, so that a client may reach any of the
   * processes. `local` shares them among the processes of one user on one machine, such as the workers of one service;
   * `local://NAME` separates services whose servers have the same name, and `local:///path` names the directory to use (not on
   * Windows). `valkey://host:6379/0` shares them over a Valkey or Redis server, `valkeys://` with TLS; the URL's parameter
   * `key_prefix` separates services that share the server, and `timeout` limits each operation, in seconds (2). An object shares
   * them over a store, a log and a bus of your own. Default: each process has its own sessions.
   */
  sharing?: string | Sharing;
  /** Protocol revisions to serve. Default: all. */
  revisions?: Revision[];
  /** Maximum length of a message on stdio, in bytes. Default: 16 MiB. */
  maxLineBytes?: number;
  /** Maximum number of messages in a JSON-RPC batch (2024-11-05 and 2025-03-26). Default: 100. */
  maxBatchMessages?: number;
  /** Maximum nesting depth of the JSON in a message. Default: 127, which is also the highest allowed value. */
  maxJsonDepth?: number;
  /** Maximum number of items per page of a list. Default: 1,000. Many clients never request a second page. */
  pageSize?: number;
  /** Cache hints of lists (2026-07-28). Default: lifetime 0, private. */
  listCache?: CacheHint;
  /** Cache hints of resource contents (2026-07-28). Default: lifetime 0, private. */
  resourceCache?: CacheHint;
  /**
   * Time that an input request waits for the client's answer; each progress notification restarts it. Default: 600,000,
   * because a person may have to answer.
   */
  inputRequestIdleTimeout?: number;
  /** Maximum total time that an input request waits, regardless of progress. Default: 3,600,000. */
  inputRequestTimeout?: number;
  /**
   * Secrets that seal `requestState`, the same in all processes of a service: base64 of at least 32 bytes each. The
   * first one seals, all of them open. Default: the environment variable `MCPLINE_STATE_SECRETS`, or else a key of this
   * process.
   */
  stateKeys?: string[];
  /**
   * Lifetime of a sealed `requestState` and of the suspended handler behind it (2026-07-28). Default: 600,000. A
   * `requestState` can be replayed during this time.
   */
  stateLifetime?: number;
  /**
   * Maximum number of handlers suspended while they wait for the client's next round (2026-07-28). Default: 10,000.
   * When the limit is reached, the oldest handler of the client with the most suspended handlers is cancelled; the
   * retry of its request runs the handler again from the start.
   */
  maxSuspendedHandlers?: number;
  /**
   * Maximum memory held on behalf of all clients together, in bytes: request bodies and their calls, unread responses,
   * events kept for resumption, sessions. Default: 512 MiB. Requests that would exceed it are refused as busy (HTTP
   * 503).
   */
  maxTotalClientBytes?: number;
  /** Maximum number of calls in flight, over all sessions. Default: 10,000. Further calls are refused as busy. */
  maxCalls?: number;
  /**
   * Largest fraction of each shared limit that one client may use, above 0 and at most 1. Applies to
   * `maxTotalClientBytes`, `maxCalls` and `maxSuspendedHandlers`, and over HTTP to `maxConnections` and `maxSessions`.
   * A client is identified by its principal if requests are authenticated, otherwise by its network address. Default:
   * 0.25. A client that exceeds its share is refused as busy (HTTP 429); other clients are unaffected.
   */
  clientShare?: number;
  /** Maximum number of input rounds per request (2026-07-28). Default: 16. */
  maxInputRounds?: number;
  /**
   * Maximum number of input requests per call, for clients of the revisions up to 2025-11-25. Default: 1,000. For
   * 2026-07-28, `maxInputRounds` is the limit.
   */
  maxInputRequestsPerCall?: number;
  /** Maximum size of a sealed `requestState`, in bytes. Default: 64 KiB. Clients send it with every retry. */
  maxStateBytes?: number;
  /** Validate structured results against the output schema of their tool. Default: `true`. */
  checkOutput?: boolean;
  /** Rate limit of the calls per tool, for all clients together. Default: unlimited. */
  toolRate?: Rate;
  /** Rate limit of completions, for all clients together. Default: unlimited. */
  completionRate?: Rate;
  /** Time that calls in flight have to finish after the server is stopped. Default: 5,000. */
  shutdownTimeout?: number;
  /**
   * Write one line to stderr when a transport is ready, with the server's name, version, URL, revisions and number of
   * features. Default: always, but over stdio only if standard input is a terminal, because hosts show what a
   * server writes to stderr as errors.
   */
  startupMessage?: boolean;
  /**
   * Debug mode, for development only: clients get the name and the message of every error that a handler throws, results
   * are validated even if `checkOutput` is `false`, and all messages are printed to stderr. Default: `true` if the
   * environment variable `MCPLINE_DEBUG` is `1`, otherwise `false`.
   */
  debug?: boolean;
  /**
   * File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty path turns it
   * off. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For development and bug
   * reports: the file contains user data. It is renamed to `….1` when it would exceed 100 MiB.
   */
  trafficFile?: string;
  /**
   * Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions for MCP.
   * `Server.metrics` returns them, and the HTTP server serves them at `metricsPath`. Default: `false`, because each request
   * then costs a little more, and because metrics contain the names of tools and prompts.
   */
  metrics?: boolean;
  /**
   * Record the arguments and results of tool calls in spans (`gen_ai.tool.call.arguments` and, for calls that succeed,
   * `gen_ai.tool.call.result`), each as JSON of at most 8 KiB. Default: `false`, because they may be confidential. Obvious
   * secrets are replaced, and what the middleware `redaction` replaces.
   */
  spanContents?: boolean;
  /** Maximum number of requests in flight per session. Default: 1,024. Further requests are refused as busy. */
  maxRequestsInFlight?: number;
  /** Maximum number of unanswered input requests per session. Default: 64. */
  maxOpenInputRequests?: number;
  /** Maximum number of resource subscriptions per session. Default: 1,024. */
  maxSubscriptions?: number;
  /** Maximum size of a session's `clientInfo` and `capabilities` together, in bytes of JSON. Default: 64 KiB. */
  maxClientInfoBytes?: number;
  /** Maximum total length of the URIs that a session is subscribed to, in bytes. Default: 256 KiB. */
  maxSubscriptionBytes?: number;
  /**
   * Rate limit of progress notifications per request. Default: 20 per second, burst of 64. Excess notifications are
   * dropped, except the last one.
   */
  progressRate?: Rate;
  /** Rate limit of log messages per session. Default: 50 per second, burst of 128. */
  logRate?: Rate;
  /**
   * Minimum level of the log messages that a client receives until it sets a level (revisions up to 2025-11-25).
   * Default: all levels. On 2026-07-28 each request names its level.
   */
  clientLogLevel?: LogLevel;
  /** Time without messages after which the server pings a client (revisions up to 2025-11-25). Default: no pings. */
  pingInterval?: number;
  /** Number of consecutive unanswered pings after which the session is closed. Default: 3. */
  maxMissedPings?: number;
  /** Experimental capabilities to declare, with their settings, by name. */
  experimental?: Record<string, Record<string, unknown>>;
  /** Capabilities to declare even while no feature of the kind is registered. */
  declare?: ("tools" | "resources" | "prompts" | "completions")[];
}

/** Settings of a server on a Unix socket. Every setting has a production-safe default. */
export interface UnixSettings {
  /**
   * Permissions of the socket file, which say who may connect; `0o660` admits the group of the file too. The umask does
   * not change them. Programs that can write the directory of the socket can replace it, whatever its permissions are.
   * Default: `0o600`, the user of the server.
   */
  mode?: number;
  /**
   * Maximum number of open connections; further ones are closed at once. A connection stays open as long as its client
   * runs, and uses a file descriptor, of which many systems give a process 1,024. Default: 256.
   */
  maxConnections?: number;
}

/** Settings of serving over HTTP. Every setting has a production-safe default. Durations are in milliseconds. */
export interface HttpSettings {
  /**
   * Path of the MCP endpoint. This and the other paths are relative to the prefix of a mount; with the default, the mount
   * point itself is an endpoint, too. Default: `/mcp`.
   */
  path?: string;
  /**
   * Paths of the event stream and of the message endpoint of HTTP+SSE (2024-11-05); `false` disables HTTP+SSE. Default:
   * `["/sse", "/messages"]`.
   */
  sse?: [stream: string, messages: string] | false;
  /**
   * Path of the health check (liveness), which responds with 200 `ok` as long as the process serves HTTP, also during a shutdown;
   * `false` disables it. Default: `/health`.
   */
  health?: string | false;
  /**
   * Path of the readiness check, which responds with 200 `ready`, and with 503 from the beginning of a shutdown on: a load
   * balancer should then send requests elsewhere. `false` disables it. Default: `/ready`.
   */
  ready?: string | false;
  /**
   * Path at which the HTTP server serves the metrics of the server in the text format of Prometheus, such as `/metrics`. The
   * server's `metrics` must be on. Hosts and origins are checked as at the MCP endpoint, but access tokens are not required.
   * Default: not served.
   */
  metricsPath?: string;
  /**
   * Path prefix that a reverse proxy removes before it forwards requests. Used for the message endpoint announced to
   * HTTP+SSE clients. Default: none.
   */
  proxyPrefix?: string;
  /**
   * Accepted host names of the `Host` header, without port. `*.example.com` accepts all names below `example.com`, but not
   * the web pages of these hosts; `*` accepts any name. Loopback names and the bound address are always accepted. The check prevents DNS rebinding: with `*`, a web page can send requests to a server that only this
   * machine or its network reaches, so use it only if everybody may reach the server. Default: none.
   */
  allowedHosts?: string[];
  /**
   * Accepted values of the `Origin` header, such as `https://app.example.com`, in addition to the origins of allowed
   * hosts; `*` accepts any. Pages of these origins may also read the responses (CORS). Requests without `Origin` are
   * not affected. Default: none.
   */
  allowedOrigins?: string[];
  /** Maximum size of a request body, in bytes. Default: 16 MiB. */
  maxBodyBytes?: number;
  /**
   * Time that a client has to send the headers of a request, and then its body; with TLS also for the handshake. Default:
   * 30,000.
   */
  readTimeout?: number;
  /** Time after which a response ends if the client reads nothing of it. Default: 30,000. */
  writeTimeout?: number;
  /** Maximum number of open connections; further ones wait to be accepted. Default: 10,000. */
  maxConnections?: number;
  /**
   * Serve clients of handshake revisions without sessions, so that any process can answer any request. Default: `false`.
   * Nothing is kept between their requests then: there are no input requests, subscriptions, notifications of changes and
   * resumable streams, the log level that they set has no effect, and HTTP+SSE is not served. Clients of 2026-07-28 never
   * have sessions.
   */
  stateless?: boolean;
  /**
   * Maximum number of sessions (revisions up to 2025-11-25). Default: 10,000. At the limit, a session that was idle for
   * at least a thirtieth of `sessionIdleTimeout` is closed to make room; if there is none, `initialize` is refused
   * with HTTP 503.
   */
  maxSessions?: number;
  /**
   * Idle time after which a session is closed. Default: 1,800,000. If it is infinite, sessions last until their clients
   * end them, and none makes room at the limit of `maxSessions`.
   */
  sessionIdleTimeout?: number;
  /**
   * Time without output after which the response to a pending call becomes an event stream with keep-alive comments.
   * Default: 10,000.
   */
  streamUpgradeDelay?: number;
  /** Interval between keep-alive comments on an idle event stream. Default: 15,000. */
  keepAliveInterval?: number;
  /** Reconnection delay that is sent to clients as `retry` of an event stream. Default: 500. */
  retry?: number;
  /** Maximum number of events kept per resumable stream, for clients that reconnect. Default: 1,024. */
  maxKeptEvents?: number;
  /**
   * Maximum size of the events kept per resumable stream, in bytes. Each event counts as its message plus 128 bytes.
   * Default: 4 MiB.
   */
  maxKeptBytes?: number;
  /**
   * Maximum size of the unread events of one event stream, in bytes, counted as for `maxKeptBytes`; one message is
   * accepted in any case. Default: 16 MiB. Beyond it notifications are dropped, and a stream whose responses alone
   * exceed it ends.
   */
  maxUnreadBytes?: number;
  /**
   * Header in which a reverse proxy sends the address of the client, for example `X-Forwarded-For`; the last address in
   * it counts. Used to distinguish clients if requests are not authenticated (see `clientShare`). Set it only behind a
   * proxy that sets this header: otherwise clients can forge their address. Default: none.
   */
  clientAddressHeader?: string;
  /** Authentication of callers (`basic/authorization`). Default: none; every request is served. */
  auth?: ResourceServerSettings;
}

/** Forms of values of settings. */
export type SettingKind =
  "count" | "number" | "time" | "flag" | "text" | "list" | "rate" | "cache" | "object" | "paths" | "path";

const SERVER_SETTINGS: Readonly<Record<keyof ServerSettings, SettingKind>> = {
  sharing: "text",
  revisions: "list",
  maxLineBytes: "count",
  maxBatchMessages: "count",
  maxJsonDepth: "count",
  pageSize: "count",
  listCache: "cache",
  resourceCache: "cache",
  inputRequestIdleTimeout: "time",
  inputRequestTimeout: "time",
  stateKeys: "list",
  stateLifetime: "time",
  maxSuspendedHandlers: "count",
  maxTotalClientBytes: "count",
  maxCalls: "count",
  clientShare: "number",
  maxInputRounds: "count",
  maxInputRequestsPerCall: "count",
  maxStateBytes: "count",
  checkOutput: "flag",
  toolRate: "rate",
  completionRate: "rate",
  shutdownTimeout: "time",
  startupMessage: "flag",
  debug: "flag",
  trafficFile: "text",
  metrics: "flag",
  spanContents: "flag",
  maxRequestsInFlight: "count",
  maxOpenInputRequests: "count",
  maxSubscriptions: "count",
  maxClientInfoBytes: "count",
  maxSubscriptionBytes: "count",
  progressRate: "rate",
  logRate: "rate",
  clientLogLevel: "text",
  pingInterval: "time",
  maxMissedPings: "count",
  experimental: "object",
  declare: "list",
};

const HTTP_SETTINGS: Readonly<Record<keyof HttpSettings, SettingKind>> = {
  path: "text",
  sse: "paths",
  health: "path",
  ready: "path",
  metricsPath: "text",
  proxyPrefix: "text",
  allowedHosts: "list",
  allowedOrigins: "list",
  maxBodyBytes: "count",
  readTimeout: "time",
  writeTimeout: "time",
  maxConnections: "count",
  stateless: "flag",
  maxSessions: "count",
  sessionIdleTimeout: "time",
  streamUpgradeDelay: "time",
  keepAliveInterval: "time",
  retry: "time",
  maxKeptEvents: "count",
  maxKeptBytes: "count",
  maxUnreadBytes: "count",
  clientAddressHeader: "text",
  auth: "object",
};

const SERVER_NAMES = optionNames<ServerSettings>(SERVER_SETTINGS);
/** Names of {@link UnixSettings}. */
export const UNIX_NAMES = optionNames<UnixSettings>({ mode: true, maxConnections: true });
/** Returns the settings of a Unix socket as the core reads them. */
export function unixOptions(settings: UnixSettings): string {
  return JSON.stringify({ mode: settings.mode, max_connections: settings.maxConnections });
}
/** Names of {@link HttpSettings}. */
export const HTTP_NAMES = optionNames<HttpSettings>(HTTP_SETTINGS);
const RATE_NAMES = optionNames<Rate>({ perSecond: true, burst: true });
const CACHE_NAMES = optionNames<CacheHint>({ ttlMs: true, cacheScope: true });

/** Converts milliseconds to the core's seconds. */
export function secondsFromMs(name: string, value: unknown): number {
  if (typeof value !== "number" || Number.isNaN(value) || value < 0) {
    throw new UsageError(`\`${name}\` must be a time in milliseconds, not ${shown(value)}`);
  }
  // JSON has no infinity.
  return Math.min(value / 1000, Number.MAX_SAFE_INTEGER);
}

/** Converts the timeout of a tool to the core's seconds. */
export function toolTimeout(tool: string, value: unknown): number {
  if (value === Infinity) {
    throw new UsageError(`${tool}: \`timeout\` must be a finite time; leave it out for no limit`);
  }
  return secondsFromMs("timeout", value);
}

/** Converts a rate limit for the core. */
export function rateOf(name: string, value: unknown): [perSecond: number, burst: number] {
  checkOptions(`\`${name}\``, value, RATE_NAMES);
  const { perSecond, burst } = value as Rate;
  return [count(`${name}.perSecond`, perSecond), count(`${name}.burst`, burst)];
}

/** Checks a whole number. */
export function count(name: string, value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) {
    throw new UsageError(`\`${name}\` must be a whole number, not ${shown(value)}`);
  }
  return value as number;
}

/** Returns a value for messages: a number, or the type of another value. */
export function shown(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint" ? String(value) : typeName(value);
}

/** Converts a setting for the core, and checks the form of its value. The core checks what it means. */
export function convertedSetting(name: string, kind: SettingKind, value: unknown): unknown {
  const expect = (fits: boolean, form: string) => {
    if (!fits) {
      throw new UsageError(`\`${name}\` must be ${form}, not ${shown(value)}`);
    }
    return value;
  };
  switch (kind) {
    case "time":
      return secondsFromMs(name, value);
    case "count":
      return count(name, value);
    case "rate":
      return rateOf(name, value);
    case "cache": {
      checkOptions(`\`${name}\``, value, CACHE_NAMES);
      const { ttlMs, cacheScope } = value as CacheHint;
      return [count(`${name}.ttlMs`, ttlMs), cacheScope === "public"];
    }
    case "number":
      return expect(typeof value === "number", "a number");
    case "flag":
      return expect(typeof value === "boolean", "a boolean");
    case "text":
      return expect(typeof value === "string", "a string");
    case "list":
      return expect(Array.isArray(value) && value.every((item) => typeof item === "string"), "an array of strings");
    case "object":
      return expect(typeof value === "object" && value !== null && !Array.isArray(value), "an object");
    case "paths": {
      const isPair = Array.isArray(value) && value.length === 2 && value.every((path) => typeof path === "string");
      return expect(isPair || value === false, 'two paths, such as ["/sse", "/messages"], or false');
    }
    case "path":
      return expect(typeof value === "string" || value === false, "a path or false");
  }
}

/** Converts the settings of a server to the core's JSON; `undefined` if there are none. */
export function serverOptions(settings: ServerSettings, extensions: readonly Extension[]): string | undefined {
  checkOptions("`settings`", settings, SERVER_NAMES);
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (value !== undefined) {
      options[snakeCase(name)] = convertedSetting(name, SERVER_SETTINGS[name as keyof ServerSettings], value);
    }
  }
  if (extensions.length > 0) {
    Object.assign(options, declared(extensions));
  }
  return Object.keys(options).length === 0 ? undefined : JSON.stringify(options);
}

/** Options that declare extensions: settings by identifier, identifiers by result type. */
function declared(extensions: readonly Extension[]): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  const resultTypes: Record<string, string> = {};
  for (const { identifier, options } of extensions) {
    const refuse = (reason: string) => new UsageError(`extension ${JSON.stringify(identifier)}: ${reason}`);
    if (Object.hasOwn(settings, identifier)) {
      throw refuse("already added to this server");
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

/** Converts the settings of HTTP, which may be among other options, to the core's JSON. */
export function httpOptions(settings: HttpSettings): string {
  checkOptions("the HTTP settings", settings, HTTP_NAMES);
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined) {
      continue;
    }
    if (name === "sse") {
      options[value === false ? "serve_sse" : "sse_paths"] = convertedSetting(name, "paths", value);
    } else if (name === "health" || name === "ready") {
      options[value === false ? `serve_${name}` : `${name}_path`] = convertedSetting(name, "path", value);
    } else if (name === "auth") {
      options[name] = resourceServerOptions(value as ResourceServerSettings);
    } else {
      options[snakeCase(name)] = convertedSetting(name, HTTP_SETTINGS[name as keyof HttpSettings], value);
    }
  }
  return JSON.stringify(options);
}
