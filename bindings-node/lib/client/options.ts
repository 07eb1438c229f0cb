/** Options of clients and of their requests, and their conversion to the core's names and units. */

import { principalJson, type VerifiedCaller } from "../auth.js";
import type { BuiltInMiddleware } from "../built_in_middleware.js";
import { UsageError } from "../errors.js";
import { headerPairs } from "../headers.js";
import type { ClientCapabilities, Implementation, LogLevel, Meta, Revision } from "../protocol.js";
import { trustedRoots } from "../extra_roots.js";
import {
  BOOLEAN,
  checkOptions,
  checkValues,
  type Expected,
  FUNCTION,
  isLogger,
  isObject,
  OBJECT,
  STRING,
  typeName,
} from "../option_checks.js";
import { optionNames, snakeCase } from "../option_names.js";
import { convertedSetting, secondsFromMs, type SettingKind } from "../settings.js";
import type { Auth, AuthSetup } from "./auth.js";
import type { BuiltInClientMiddleware } from "./built_in_middleware.js";
import type { Handlers } from "./host.js";
import type { ClientMiddleware } from "./middleware.js";

/** Settings of a client. Durations are in milliseconds. */
export interface ClientSettings {
  /** Protocol revisions that the client may use. Default: all. */
  revisions?: readonly Revision[];
  /**
   * Kind of opening to try first; the other one is tried only if it fails. `"legacy"` sends `initialize` first
   * (revisions up to 2025-11-25), `"modern"` expects a server of 2026-07-28. Default: probe with `server/discover`.
   */
  era?: "legacy" | "modern";
  /**
   * Time to wait for the answer to the first message before the server is treated as one of an earlier revision.
   * Default: 3,000.
   */
  probeTimeout?: number;
  /**
   * Time to wait for each further answer while a connection is opened, and for opening a socket or a channel of a
   * custom transport. Default: 30,000.
   */
  openTimeout?: number;
  /** Time to wait for the result of a request; each progress notification restarts it. Default: 60,000. */
  timeout?: number;
  /** Maximum total time to wait for the result of a request, regardless of progress. Default: 3,600,000. */
  totalTimeout?: number;
  /**
   * Time without messages after which the client pings the server (revisions up to 2025-11-25; 2026-07-28 has no
   * `ping`). Default: no pings. An unanswered ping is logged and treated as a lost connection: requests in flight fail
   * with `ConnectionLostError`.
   */
  pingInterval?: number;
  /** Time to wait for the answer to such a ping. Default: 30,000. */
  pingTimeout?: number;
  /** Maximum number of times that a server may request input during one request. Default: 10. */
  maxInputRounds?: number;
  /**
   * Maximum total size of the pages of one list, in bytes. Default: 32 MiB. A longer list fails with
   * `InvalidResponseError`.
   */
  maxListBytes?: number;
  /**
   * Maximum length of a message from a server over stdio or a Unix socket, in bytes. Default: 16 MiB. A longer message is
   * skipped with a warning, and a request that it answers times out.
   */
  maxLineBytes?: number;
  /** Validate structured content against the output schema of its tool. Default: `true`. */
  checkOutput?: boolean;
  /**
   * Trust the annotations of the server's tools. If `true`, a tool call whose connection was lost is sent again if the
   * tool is annotated as read-only or idempotent; otherwise only with `reissue: "always"`. Default: `false`.
   */
  trustToolAnnotations?: boolean;
  /**
   * Send requests even if the server has not declared the capability that they need. Default: `false`; such requests
   * fail with `NotSupportedError`. Needed for servers of the official Python SDK before version 2, which declare
   * `"subscribe": false` even if they handle `resources/subscribe`.
   */
  allowUndeclaredCapabilities?: boolean;
  /** Cache lists and resource contents for the time that the server allows (2026-07-28). Default: `true`. */
  cache?: boolean;
  /**
   * Maximum number of consecutive connections that are lost before they answered anything. Default: 5. 0 disables
   * reconnection.
   */
  reconnectAttempts?: number;
  /** Delay before the second consecutive attempt to reconnect; it doubles with each further attempt. Default: 200. */
  reconnectDelay?: number;
  /** Maximum delay between attempts to reconnect. Default: 10,000. */
  reconnectMaxDelay?: number;
  /**
   * Subscribe to change notifications (`subscriptions/listen`, 2026-07-28) while a handler of notifications exists.
   * Default: `true`. Servers of earlier revisions send them without a subscription.
   */
  listen?: boolean;
  /**
   * Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions for MCP; see
   * {@link Client.metrics}. Default: `false`, because each request then costs some allocations and a short lock, and because the
   * metrics contain the names of tools and prompts.
   */
  metrics?: boolean;
  /**
   * Record the arguments and results of tool calls in spans (`gen_ai.tool.call.arguments` and, for calls that succeed,
   * `gen_ai.tool.call.result`), each as JSON of at most 8 KiB. Default: `false`, because they may be confidential. Obvious
   * secrets are replaced.
   */
  spanContents?: boolean;
  /**
   * File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty path turns it
   * off. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For development and bug
   * reports: the file contains user data. It is renamed to `….1` when it would exceed 100 MiB.
   */
  trafficFile?: string;
}

/** Options of every client: the host's identity, its handlers, and settings. */
export interface ClientOptions extends ClientSettings, Handlers {
  /** Name of the host, as sent to servers. Default: `mcpline`. */
  name?: string;
  /** Version of the host. Default: the version of this library. */
  version?: string;
  /** Display name of the host. */
  title?: string;
  /** Further members of `clientInfo`. */
  info?: Omit<Implementation, "name" | "version" | "title">;
  /** Capabilities in addition to, or in place of, those of the handlers: `{ sampling: { tools: {} } }`. */
  capabilities?: ClientCapabilities;
  /** Aborts the opening of the connection. */
  signal?: AbortSignal;
  /**
   * Whether requests have spans in the OpenTelemetry of the program, if it has set that up (a `TracerProvider` of
   * `@opentelemetry/api` 1.x), and carry their trace context in `_meta` to the server. Handlers of input requests run in spans as
   * well. Spans contain the names of methods, tools and prompts and the URIs of resources, but neither arguments nor results.
   * Default: `true`. Without OpenTelemetry a request costs one lookup of a property more.
   */
  tracing?: boolean;
  /**
   * Functions around the requests that the client sends, the outermost first, and then what the library provides:
   * {@link retry}, {@link circuitBreaker}, {@link toolPolicy}, {@link auditLog}, {@link redaction}.
   */
  middleware?: readonly (ClientMiddleware | BuiltInClientMiddleware | BuiltInMiddleware)[];
}

/** Options of a client over HTTP. Durations are in milliseconds. */
export interface HttpClientOptions extends ClientOptions {
  /** Source of access tokens: a token, a function that returns one, or {@link OAuth}. Default: none. */
  auth?: Auth;
  /** Headers to send with every request. */
  headers?: Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
  /**
   * URL of the proxy: `http://`, `socks5://` or `socks5h://`, with credentials if needed; `direct` for none. Default:
   * the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
   */
  proxy?: string;
  /**
   * CA certificates in PEM that are trusted in addition to those of the system and of the environment variable
   * `NODE_EXTRA_CA_CERTS`, for servers with certificates of a private CA.
   */
  tlsRoots?: string;
  /** Trust only `tlsRoots`, not the CA certificates of the system and of `NODE_EXTRA_CA_CERTS`. Default: `false`. */
  onlyTlsRoots?: boolean;
  /** Maximum time to reach the server: name resolution, connection, proxy and TLS together. Default: 10,000. */
  connectTimeout?: number;
  /** Maximum number of redirects that one request follows. Default: 5. */
  maxRedirects?: number;
  /** Maximum consecutive attempts to resume a call's stream before the call fails. Default: 5. */
  resumeAttempts?: number;
  /** Delay before the second of these attempts; it doubles with each further attempt. Default: 500. */
  resumeDelay?: number;
  /** Maximum delay between these attempts. Default: 30,000. */
  resumeMaxDelay?: number;
  /** Maximum size of a response, and of one event of a stream, in bytes. Default: 16 MiB. */
  maxBodyBytes?: number;
}

/** Options of a client that starts its server as a child process. Durations are in milliseconds. */
export interface ProgramOptions extends ClientOptions {
  /** Environment variables of the program, in addition to those that it gets by default (see `inheritEnv`). */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * Pass the whole environment to the program, including secrets. Default: `false`; the program gets only `HOME`,
   * `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and `LC_*`.
   */
  inheritEnv?: boolean;
  /** Working directory of the program. Default: that of this process. */
  cwd?: string;
  /**
   * Destination of the program's stderr. Default: `"capture"`; the last lines are part of the error if the program
   * exits. A function is called with each captured line.
   */
  stderr?: "capture" | "inherit" | "ignore" | ((line: string) => void);
  /** Time that the program has to exit after its stdin is closed, and again after SIGTERM. Default: 2,000. */
  exitTimeout?: number;
}

/** Options of a client of a server in the same process. */
export interface MemoryOptions extends ClientOptions {
  /**
   * The client's identity, as a token or a transport would authenticate it, for tests of scopes and of {@link
   * Context.auth}. Default: none; the client may use everything.
   */
  principal?: VerifiedCaller;
  /** HTTP headers that handlers find in {@link Context.headers}. The server itself does not read them. */
  headers?: Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
}

/**
 * Options of a client of a server in a configuration file: those of {@link Client.connect} for a server with a URL, those of
 * {@link Client.spawn} for one with a command.
 */
export interface ConfigOptions extends Omit<ProgramOptions, "env" | "cwd">, Omit<HttpClientOptions, "headers"> {}

/** A progress report (`basic/utilities/progress`). */
export interface Progress {
  /** Progress so far; increases with each report. */
  progress: number;
  /** Value of `progress` at the end, if known. */
  total?: number;
  /** Description of the current step. */
  message?: string;
}

/** Options of a request. Durations are in milliseconds. */
export interface RequestOptions {
  /** Cancels the request, also at the server. The request is rejected with the signal's reason. */
  signal?: AbortSignal;
  /** Time to wait for the result; each progress notification restarts it. Default: the client's `timeout`. */
  timeout?: number;
  /** Maximum total time to wait for the result, regardless of progress. Default: the client's `totalTimeout`. */
  totalTimeout?: number;
  /** Called with each progress report. A promise that it returns is awaited, in order, before the request resolves. */
  onProgress?: (report: Progress) => unknown;
  /** Members of the request's `_meta`. */
  meta?: Meta;
  /** Minimum level of the log messages sent during the request (2026-07-28). */
  logLevel?: LogLevel;
  /**
   * Whether to send the request again, at most twice, if the connection is lost before the response arrives.
   * `"if-safe"`, the default, repeats lists, reads and similar requests, and calls of tools that are annotated as
   * read-only or idempotent if `trustToolAnnotations` is on. `"always"` repeats any request, `"never"` none.
   */
  reissue?: "if-safe" | "always" | "never";
  /** Bypass the cache of results (2026-07-28). Default: `false`. */
  fresh?: boolean;
  /**
   * Return a result that requests input unchanged, instead of answering its input requests with the client's handlers
   * (2026-07-28). Default: `false`.
   */
  manualResults?: boolean;
}

/** Options of a list request. */
export type ListOptions = Pick<RequestOptions, "signal" | "timeout" | "totalTimeout" | "meta" | "fresh">;

/** Options of a request without a result. */
export type WaitOptions = Pick<RequestOptions, "signal" | "timeout" | "totalTimeout">;

type RawOptions = Record<string, unknown>;

const SETTINGS: Readonly<Record<keyof ClientSettings, SettingKind>> = {
  revisions: "list",
  era: "text",
  probeTimeout: "time",
  openTimeout: "time",
  timeout: "time",
  totalTimeout: "time",
  pingInterval: "time",
  pingTimeout: "time",
  maxInputRounds: "count",
  maxListBytes: "count",
  maxLineBytes: "count",
  checkOutput: "flag",
  trustToolAnnotations: "flag",
  allowUndeclaredCapabilities: "flag",
  cache: "flag",
  reconnectAttempts: "count",
  reconnectDelay: "time",
  reconnectMaxDelay: "time",
  listen: "flag",
  metrics: "flag",
  spanContents: "flag",
  trafficFile: "text",
};

type HttpOnly = Exclude<keyof HttpClientOptions, keyof ClientOptions>;
const HTTP: Readonly<Record<Exclude<HttpOnly, "auth" | "headers">, SettingKind>> = {
  proxy: "text",
  tlsRoots: "text",
  onlyTlsRoots: "flag",
  connectTimeout: "time",
  maxRedirects: "count",
  resumeAttempts: "count",
  resumeDelay: "time",
  resumeMaxDelay: "time",
  maxBodyBytes: "count",
};

type ProgramOnly = Exclude<keyof ProgramOptions, keyof ClientOptions>;
const PROGRAM: Readonly<Record<Exclude<ProgramOnly, "env" | "stderr">, SettingKind>> = {
  inheritEnv: "flag",
  cwd: "text",
  exitTimeout: "time",
};

/** A value that is checked where it is used. */
const ANY: Expected = ["anything", () => true];
const SIGNAL: Expected = [
  "an AbortSignal",
  (value) => isObject(value) && typeof (value as Partial<AbortSignal>).throwIfAborted === "function",
];
const ROOTS: Expected = [
  "an array of paths and URLs, or a function",
  (value) =>
    typeof value === "function" ||
    (Array.isArray(value) && value.every((each) => typeof each === "string" || isObject(each))),
];
const LOGGER: Expected = ["an object with a method `info`", isLogger];
const FUNCTIONS: Expected = [
  "an object of functions by method",
  (value) => isObject(value) && Object.values(value).every((each) => typeof each === "function"),
];

const HOST: Readonly<Record<Exclude<keyof ClientOptions, keyof ClientSettings>, Expected>> = {
  name: STRING,
  version: STRING,
  title: STRING,
  info: OBJECT,
  capabilities: OBJECT,
  signal: SIGNAL,
  tracing: BOOLEAN,
  middleware: ANY,
  elicit: FUNCTION,
  sample: FUNCTION,
  roots: ROOTS,
  onToolCall: FUNCTION,
  onToolOutcome: FUNCTION,
  onLog: FUNCTION,
  onNotification: FUNCTION,
  onConnection: FUNCTION,
  onRequestEnd: FUNCTION,
  logger: LOGGER,
  onRequest: FUNCTIONS,
  extensions: ["an array of extensions", (value) => Array.isArray(value) && value.every(isObject)],
  onToolsChanged: FUNCTION,
  onResourcesChanged: FUNCTION,
  onPromptsChanged: FUNCTION,
  onResourceUpdated: FUNCTION,
};

const COMMON = { ...HOST, ...SETTINGS };
/** Names of options, by kind of client. */
const NAMES = {
  http: optionNames<HttpClientOptions>({ ...COMMON, ...HTTP, auth: true, headers: true }),
  program: optionNames<ProgramOptions>({ ...COMMON, ...PROGRAM, env: true, stderr: true }),
  memory: optionNames<MemoryOptions>({ ...COMMON, principal: true, headers: true }),
  other: optionNames<ClientOptions>(COMMON),
};

/** Converts the options that have a kind to the core's names and units. */
function taken(given: object, kinds: Readonly<Record<string, SettingKind>>): RawOptions {
  const options: RawOptions = {};
  for (const [name, kind] of Object.entries(kinds)) {
    const value = (given as RawOptions)[name];
    if (value !== undefined) {
      options[snakeCase(name)] = convertedSetting(name, kind, value);
    }
  }
  return options;
}

/** Checks the options, and converts the settings of any client to the core's JSON. */
export function settingsOf(options: ClientOptions, kind: keyof typeof NAMES): string {
  checkOptions(CLIENT, options, NAMES[kind]);
  checkValues(CLIENT, options, HOST);
  return JSON.stringify(taken(options, SETTINGS));
}

/** What options belong to, for messages. */
const CLIENT = "the client";

/** Converts what handlers see of a client in the same process to the core's JSON. */
export function memoryOf({ principal, headers }: MemoryOptions): string {
  const identity = principal === undefined ? "" : `"principal":${principalJson(principal, "principal")}`;
  const pairs = headers === undefined ? "" : `"headers":${JSON.stringify(headerPairs(CLIENT, headers))}`;
  return `{${[identity, pairs].filter((member) => member !== "").join(",")}}`;
}

/** Converts the settings of HTTP to the core's JSON. */
export function httpOf({ headers, auth: _, ...options }: HttpClientOptions, authorization?: AuthSetup): string {
  const pairs = headers === undefined ? [] : headerPairs(CLIENT, headers);
  const auth = authorization === undefined ? {} : { auth: authorization.written };
  const trusted = { ...options, ...trustedRoots(options) };
  return JSON.stringify({ ...taken(trusted, HTTP), ...auth, headers: pairs });
}

/** Converts a program and its options to the core's JSON. */
export function programOf(program: string, args: readonly string[], options: ProgramOptions): string {
  const { env = {}, stderr, ...rest } = options;
  checkEnvironment(env);
  return JSON.stringify({
    inherit_env: false,
    ...taken(rest, PROGRAM),
    program,
    arguments: args,
    env,
    stderr: stderr === "ignore" ? "null" : typeof stderr === "function" ? "capture" : (stderr ?? "capture"),
  });
}

function checkEnvironment(env: unknown): void {
  checkValues(CLIENT, { env }, { env: OBJECT });
  for (const [name, value] of Object.entries(env as object) as [string, unknown][]) {
    if (value !== undefined && typeof value !== "string") {
      throw new UsageError(`${CLIENT}: \`${name}\` of \`env\` must be a string, not ${typeName(value)}`);
    }
  }
}

/** The options of a kind of request: what their values must be, and their names. */
export interface KnownOptions {
  readonly values: Readonly<Record<string, Expected>>;
  readonly names: readonly string[];
}

function known<T>(values: Readonly<Record<keyof T, Expected>>): KnownOptions {
  return { values, names: optionNames<T>(values) };
}

const WAIT: Record<keyof WaitOptions, Expected> = { signal: SIGNAL, timeout: ANY, totalTimeout: ANY };
const REQUEST: Record<keyof RequestOptions, Expected> = {
  ...WAIT,
  onProgress: FUNCTION,
  meta: OBJECT,
  logLevel: STRING,
  reissue: STRING,
  fresh: BOOLEAN,
  manualResults: BOOLEAN,
};
/** Options of requests. */
export const REQUEST_OPTIONS = {
  wait: known<WaitOptions>(WAIT),
  list: known<ListOptions>({ ...WAIT, meta: OBJECT, fresh: BOOLEAN }),
  request: known<RequestOptions>(REQUEST),
  call: known<RequestOptions & { schema?: unknown }>({ ...REQUEST, schema: ANY }),
  complete: known<RequestOptions & { context?: unknown }>({ ...REQUEST, context: OBJECT }),
};

/** Returns the error of options of a request that are unknown or have another form; `undefined` if they are valid. */
export function requestOptionsError(method: string, options: unknown, known: KnownOptions): Error | undefined {
  const where = `request \`${method}\``;
  try {
    checkOptions(where, options, known.names);
    checkValues(where, options as object, known.values);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** Converts the options of a request to the core's JSON; `undefined` if none is set. */
export function requestOf(options: RequestOptions, ownMeta?: object): string | undefined {
  const { timeout, totalTimeout, meta, logLevel, reissue, fresh, manualResults } = options;
  const read: RawOptions = {};
  if (timeout !== undefined) {
    read["timeout"] = secondsFromMs("timeout", timeout);
  }
  if (totalTimeout !== undefined) {
    read["total_timeout"] = secondsFromMs("totalTimeout", totalTimeout);
  }
  const sentMeta = ownMeta ?? meta;
  if (sentMeta !== undefined) {
    read["meta"] = sentMeta;
  }
  if (logLevel !== undefined) {
    read["log_level"] = logLevel;
  }
  if (reissue !== undefined) {
    read["reissue"] = reissue;
  }
  if (fresh === true) {
    read["fresh"] = true;
  }
  if (manualResults === true) {
    read["manual_results"] = true;
  }
  for (const _ in read) {
    return JSON.stringify(read);
  }
  return undefined;
}
