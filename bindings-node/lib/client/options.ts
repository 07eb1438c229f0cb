/** What a client is made with, and what a request is sent with: as users say it, and as the core reads it. */

import { UsageError } from "../errors.js";
import type { ClientCapabilities, Implementation, LogLevel, Meta, Revision } from "../protocol.js";
import { seconds, snakeCase } from "../settings.js";
import type { Auth, Authorization } from "./auth.js";
import type { Handlers } from "./host.js";

/** Settings of a client. What is absent keeps its default. Times are in ms. */
export interface ClientSettings {
  /** The revisions that may be spoken; all five by default. */
  revisions?: readonly Revision[];
  /**
   * The era to try first; the other one is tried only if that fails. `"legacy"` sends `initialize` first, as the revisions
   * up to 2025-11-25 demand; `"modern"` expects 2026-07-28. By default `server/discover` probes.
   */
  era?: "legacy" | "modern";
  /** How long the first message may stay unanswered before the server is taken for an older one. 3,000 by default. */
  probeTimeout?: number;
  /**
   * How long each answer that follows may take while the conversation is opened, and before that the opening of a socket or of
   * a transport's channel. 30,000 by default.
   */
  openTimeout?: number;
  /** How long a request waits without a sign of life; progress is one. 60,000 by default. */
  timeout?: number;
  /** How long a request waits in all, whatever progress is reported. 3,600,000 by default. */
  totalTimeout?: number;
  /**
   * After how much silence the server is pinged (2024-11-05 to 2025-11-25; there is no `ping` on 2026-07-28); never by
   * default. A ping without an answer is logged, and ends the connection as if it had been lost: requests in flight are
   * rejected with `ConnectionLostError`.
   */
  pingInterval?: number;
  /** How long the answer to such a ping may take. 30,000 by default. */
  pingTimeout?: number;
  /** How often a server may ask for input in the course of one request. 10 by default. */
  maxRounds?: number;
  /** How many bytes the pages of one list may have together. 32 MiB by default. */
  maxListBytes?: number;
  /** Whether structured content is held against the output schema of its tool. It is by default. */
  checkOutput?: boolean;
  /**
   * Whether what the server's tools say of themselves is believed (their annotations). Off by default: a tool call that was
   * lost is sent again only with `reissue: "always"`. If on, also where the tool says that it changes nothing, or nothing
   * more the second time.
   */
  trusted?: boolean;
  /**
   * Whether requests are sent that need a capability which the server has not declared. Off by default: they are rejected
   * with `NotSupportedError`. Known to declare less than they have: servers of the official Python SDK before
   * version 2, which say `"subscribe": false` though they may have a handler of `resources/subscribe`.
   */
  allowUndeclaredCapabilities?: boolean;
  /** Whether lists and reads are kept for as long as their server says (2026-07-28). They are by default. */
  cache?: boolean;
  /**
   * How often in a row a connection may be lost before it answered anything. 5 by default; 0 means that what is lost
   * stays lost.
   */
  reconnectAttempts?: number;
  /** How long to wait before the second attempt of a row; doubled before each further one. 200 by default. */
  reconnectDelay?: number;
  /** The longest wait. 10,000 by default. */
  reconnectMaxDelay?: number;
  /**
   * Whether to ask for changes on 2026-07-28 while somebody hears notifications. By default; servers before tell them
   * unasked.
   */
  listen?: boolean;
}

/** What every client can be told: who the host is, its handlers, and settings. */
export interface ClientOptions extends ClientSettings, Handlers {
  /** The host's name, as servers get to see it. */
  name?: string;
  /** The host's version. */
  version?: string;
  /** The host's name for people. */
  title?: string;
  /** Whatever else the host says of itself. */
  info?: Omit<Implementation, "name" | "version" | "title">;
  /** What is declared beyond what handlers declare, or in its place: `{ sampling: { tools: {} } }`. */
  capabilities?: ClientCapabilities;
  /** Gives up connecting. */
  signal?: AbortSignal;
}

/** What a client of a URL can be told. Times are in ms. */
export interface HttpClientOptions extends ClientOptions {
  /** Where the tokens come from that the server wants: a token, a function that gives one, or `OAuth`. */
  auth?: Auth;
  /** Headers for every request, such as `Authorization`. */
  headers?: Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
  /**
   * `http://`, `socks5://` or `socks5h://`, with credentials where it wants them; `direct` for none. By default what
   * `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
   */
  proxy?: string;
  /** Certificates, PEM, that are trusted beside those of the system: for servers with a certificate of one's own. */
  tlsRoots?: string;
  /** Whether `tlsRoots` are trusted instead of those of the system. */
  onlyTheseRoots?: boolean;
  /** How long it may take to reach the server: name, connection, proxy and TLS together. 10,000 by default. */
  connectTimeout?: number;
  /** How many redirects one request may follow. 5 by default. */
  maxRedirects?: number;
  /** How often in a row it is tried in vain to resume the stream of a call before the call fails. 5 by default. */
  resumeAttempts?: number;
  /** The wait before the second of these attempts; it doubles with each further one. 500 by default. */
  resumeDelay?: number;
  /** The longest of these waits. 30,000 by default. */
  resumeMaxDelay?: number;
  /** The longest answer in bytes, and the longest event of a stream. 16 MiB by default. */
  bodyLimit?: number;
}

/** What a client that starts its server can be told. Times are in ms. */
export interface ProgramOptions extends ClientOptions {
  /** Variables of its environment, beside those that are not secret by custom. */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * Whether it gets the whole environment, secrets included. By default it gets what is not secret by custom: `HOME`,
   * `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and the `LC_…`.
   */
  inheritEnv?: boolean;
  /** Its working directory. */
  cwd?: string;
  /**
   * Where its stderr goes. By default it is captured: its last lines are part of the error when it ends. A function hears
   * each line, too.
   */
  stderr?: "capture" | "inherit" | "ignore" | ((line: string) => void);
  /** How long it has to leave once its stdin is closed, and again after a SIGTERM. 2,000 by default. */
  grace?: number;
}

/** A report of progress. */
export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

/** What every request can be sent with. Times are in ms. */
export interface RequestOptions {
  /** Cancels the request, at the server too; it is rejected with the signal's reason. */
  signal?: AbortSignal;
  /** How long to wait without a sign of life; the client's `timeout` unless given. */
  timeout?: number;
  /** How long to wait in all; the client's `totalTimeout` unless given. */
  totalTimeout?: number;
  /** Hears of progress. What it returns is awaited, in order, before the request is resolved. */
  onProgress?: (report: Progress) => unknown;
  /** Members for `_meta`. */
  meta?: Meta;
  /** The least severe level of log messages wanted meanwhile (2026-07-28). */
  logLevel?: LogLevel;
  /**
   * Whether the request is sent again, at most twice, if the connection is lost before the answer came: `"if-safe"` (by
   * default: lists, reads and the like; of tools those whose annotations say that twice does no harm, if the server is
   * `trusted`), `"always"` or `"never"`.
   */
  reissue?: "if-safe" | "always" | "never";
  /** Whether the server is asked even if a result is kept (2026-07-28). */
  fresh?: boolean;
  /** Whether a result that asks for input is returned as it is, in place of having the handlers answer (2026-07-28). */
  byHand?: boolean;
}

/** What the fetching of a list can be told. */
export type ListOptions = Pick<RequestOptions, "signal" | "timeout" | "totalTimeout" | "meta" | "fresh">;

/** What a request without a result can be told. */
export type WaitOptions = Pick<RequestOptions, "signal" | "timeout" | "totalTimeout">;

type Given = Record<string, unknown>;

const TIMES = new Set([
  "probeTimeout",
  "openTimeout",
  "timeout",
  "totalTimeout",
  "pingInterval",
  "pingTimeout",
  "reconnectDelay",
  "reconnectMaxDelay",
  "connectTimeout",
  "resumeDelay",
  "resumeMaxDelay",
  "grace",
]);
const SETTINGS = [
  "revisions",
  "era",
  "probeTimeout",
  "openTimeout",
  "timeout",
  "totalTimeout",
  "pingInterval",
  "pingTimeout",
  "maxRounds",
  "maxListBytes",
  "checkOutput",
  "trusted",
  "allowUndeclaredCapabilities",
  "cache",
  "reconnectAttempts",
  "reconnectDelay",
  "reconnectMaxDelay",
  "listen",
];
const HOST = [
  "name",
  "version",
  "title",
  "info",
  "capabilities",
  "signal",
  "elicit",
  "sample",
  "roots",
  "onToolCall",
  "onToolOutcome",
  "onLog",
  "onNotification",
  "onRequest",
  "extensions",
  "onToolsChanged",
  "onResourcesChanged",
  "onPromptsChanged",
  "onResourceUpdated",
];
const HTTP = [
  "auth",
  "headers",
  "proxy",
  "tlsRoots",
  "onlyTheseRoots",
  "connectTimeout",
  "maxRedirects",
  "resumeAttempts",
  "resumeDelay",
  "resumeMaxDelay",
  "bodyLimit",
];
const PROGRAM = ["env", "inheritEnv", "cwd", "stderr", "grace"];

/** Takes the options of this list that are given, as the core reads them. */
function taken(given: Given, names: readonly string[]): Given {
  const options: Given = {};
  for (const name of names) {
    const value = given[name];
    if (value !== undefined) {
      options[snakeCase(name)] = TIMES.has(name) ? seconds(name, value) : value;
    }
  }
  return options;
}

/** Refuses options that such a client doesn't have: a typo must not be a default. */
function check(given: object, special: readonly string[]): void {
  const known = new Set([...HOST, ...SETTINGS, ...special]);
  for (const name of Object.keys(given)) {
    if (!known.has(name)) {
      const there = [...known].sort().join(", ");
      throw new UsageError(`such a client has no option ${JSON.stringify(name)}; there are ${there}`);
    }
  }
}

/** The settings of any client, checked, as the core reads them. */
export function settingsOf(options: ClientOptions, kind: "http" | "program" | "other"): string {
  check(options, kind === "http" ? HTTP : kind === "program" ? PROGRAM : []);
  return JSON.stringify(taken(options as Given, SETTINGS));
}

/** The settings of HTTP, as the core reads them. */
export function httpOf({ headers, auth: _, ...options }: HttpClientOptions, authorization?: Authorization): string {
  const pairs =
    headers === undefined ? [] : [...(Symbol.iterator in headers ? headers : Object.entries<string>(headers))];
  const auth = authorization === undefined ? {} : { auth: authorization.written };
  return JSON.stringify({ ...taken(options, HTTP), ...auth, headers: pairs });
}

/** A program, as the core reads it. */
export function programOf(program: string, args: readonly string[], options: ProgramOptions): string {
  const { env, stderr, ...rest } = options;
  return JSON.stringify({
    inherit_env: false,
    ...taken(rest, PROGRAM),
    program,
    arguments: args,
    env: env ?? {},
    stderr: stderr === "ignore" ? "null" : typeof stderr === "function" ? "capture" : (stderr ?? "capture"),
  });
}

/** What the core reads of a request's options; `undefined` if there is nothing. */
export function requestOf(options: RequestOptions): string | undefined {
  const { timeout, totalTimeout, meta, logLevel, reissue, fresh, byHand } = options;
  const read: Given = {};
  if (timeout !== undefined) {
    read["timeout"] = seconds("timeout", timeout);
  }
  if (totalTimeout !== undefined) {
    read["total_timeout"] = seconds("totalTimeout", totalTimeout);
  }
  if (meta !== undefined) {
    read["meta"] = meta;
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
  if (byHand === true) {
    read["by_hand"] = true;
  }
  for (const _ in read) {
    return JSON.stringify(read);
  }
  return undefined;
}
