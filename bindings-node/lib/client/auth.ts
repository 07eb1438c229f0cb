/** How a client is authorized: by a token of the host's own, or by OAuth (`basic/authorization`). */

import { UsageError } from "../errors.js";
import { seconds, snakeCase } from "../settings.js";

type Awaitable<T> = T | Promise<T>;

/** A token, and for how long it is good, in ms; for ever if nobody knows. */
export interface Token {
  token: string;
  expiresIn?: number;
}

/** Why a token is wanted. */
export interface TokenWanted {
  /** The URL of the server that it is for. */
  server: string;
  /** Whether the server refused the one that was given before. */
  refused: boolean;
  /** The scopes that the server demands, separated by spaces, if it named any. */
  scopes: string;
}

/**
 * Where a client's tokens come from: a token, a function that gives one (at first, when it lapses, and when the server
 * refuses it), or {@link OAuth}.
 */
export type Auth = string | ((wanted: TokenWanted) => Awaitable<string | Token>) | OAuth;

/** What an authorization server knows a client by already. */
export interface Credentials {
  /** The client's identifier. */
  clientId: string;
  /**
   * Who gave it, character by character; it is shown to nobody else. Without it, it is shown to the authorization server
   * that the server names first.
   */
  issuer?: string;
  /** The client's password. */
  secret?: string;
  /** The client's private key, in PEM, in place of a password. */
  privateKey?: string;
  /** What it signs with, such as `ES256`; by default the usual for such a key. */
  algorithm?: string;
  /** What the authorization server calls the key, if it has several. */
  keyId?: string;
  /** How the client proves who it is; by default what the authorization server takes. */
  auth?: "none" | "client_secret_basic" | "client_secret_post" | "private_key_jwt";
}

/** An enterprise's identity provider, which decides in the user's place (enterprise-managed authorization). */
export interface Enterprise {
  /** The identity provider's. */
  tokenEndpoint: string;
  /** What it knows the client by. */
  clientId: string;
  /** The client's password there. */
  secret?: string;
  /** Gives the ID token of the user's sign-on, each time that one is needed. */
  idToken: (audience: string) => Awaitable<string>;
}

/** Sends the user to the system's browser, and takes what comes back on a port of this machine. */
export interface Loopback {
  kind: "loopback";
  /** The redirect URI, where the authorization server takes no other: `http://127.0.0.1` or `http://localhost`. */
  redirectUri?: string;
  /** How long the user has, in ms; 5 minutes by default. */
  timeout?: number;
  /** Opens a URL in place of the system's browser; `false` for no browser. */
  browser?: ((url: string) => unknown) | false;
  /** Is told the URL, and what was in the way, where no browser was opened. By default both go to stderr. */
  onUnopened?: (url: string, reason: string) => unknown;
}

/** Asks a user at a terminal: shows the URL on stderr, and reads what the browser ended up at. */
export interface Terminal {
  kind: "terminal";
  /** Where users are redirected to: `https`, or `http` on their machine; by default a place of it where nothing listens. */
  redirectUri?: string;
  /** How long the user has, in ms; 5 minutes by default. */
  timeout?: number;
}

/** The host's own way to send a user somewhere. */
export interface OwnUserAgent {
  kind?: "own";
  /** Where users are sent back to: `https`, or `http` on their machine. */
  redirectUri: string;
  /** Sends the user to a URL; gives the URL that the user was redirected to, with its query. */
  open: (url: string) => Awaitable<string>;
}

/**
 * Where tokens and registrations are kept. Values are secret. Clients of this thread that have the same store renew a token
 * once; so that other processes don't renew it too, it may have `lock`, whose result lets go of the lock.
 */
export interface TokenStore {
  load(key: string): Awaitable<Uint8Array | null | undefined>;
  save(key: string, value: Uint8Array): Awaitable<void>;
  remove(key: string): Awaitable<void>;
  lock?(key: string): Awaitable<() => unknown>;
}

/** What OAuth is told. */
export interface OAuthOptions {
  /** The name that users are shown when they are asked for consent. */
  clientName: string;
  /** How the user gets to the authorization server and back; a {@link Loopback} by default. `null`: there is nobody to ask. */
  userAgent?: Loopback | Terminal | OwnUserAgent | null;
  /**
   * Where tokens are kept: a directory that only its owner gets at, the system's keyring (where the package was built with
   * it, by `npm run build -- --keyring`), or a store of the host's; by default with the {@link OAuth}.
   */
  store?: { file: string } | { keyring: string } | TokenStore;
  /** What to ask for beside what the server demands, separated by spaces. */
  scopes?: string;
  /** What authorization servers know the client by already. */
  credentials?: Credentials | readonly Credentials[];
  /** The https URL, with a path, of the client's own metadata, which identifies it where that is supported. */
  clientIdMetadataUrl?: string;
  /** A page about the client. */
  clientUri?: string;
  /** A picture of it. */
  logoUri?: string;
  /** Who made it. */
  softwareId?: string;
  /** Which version it is. */
  softwareVersion?: string;
  /** Whether to ask on the client's own behalf, without a user. Needs `credentials`. */
  clientCredentials?: boolean;
  /** Gives a JWT of the platform that the client runs on, for the issuer that it is called with. */
  workloadIdentity?: (audience: string) => Awaitable<string>;
  /** Asks an enterprise's identity provider in the user's place. */
  enterprise?: Enterprise;
  /** Whose tokens these are, where users share a store. */
  account?: string;
  /** Whether tokens are bound to a key, so that whoever steals one can't use it (RFC 9449). They aren't by default. */
  dpop?: boolean;
  /** Whether a server at a public address may name authorization servers at private ones. It may not by default. */
  allowPrivateAddresses?: boolean;
  /** Whether an authorization server has to say that it supports PKCE. It has to by default; PKCE is used in any case. */
  requirePkce?: boolean;
}

/** Answers a question of the core's, with parameters and result as `foreign/auth` has them. */
type Answer = (params: Record<string, string>) => Awaitable<object>;

/** The plain members of {@link OAuthOptions}. */
const PLAIN = [
  "clientName",
  "scopes",
  "clientIdMetadataUrl",
  "clientUri",
  "logoUri",
  "softwareId",
  "softwareVersion",
  "account",
  "dpop",
  "allowPrivateAddresses",
  "requirePkce",
] as const;

const KNOWN = new Set<string>([
  ...PLAIN,
  "userAgent",
  "store",
  "credentials",
  "clientCredentials",
  "workloadIdentity",
  "enterprise",
]);

/**
 * OAuth, as the protocol has it: discovery, registration, the user's consent, renewal, step-up. Clients that are given the
 * same one share their tokens.
 *
 * ```ts
 * const oauth = new OAuth({ clientName: "Example host", store: { file: "/home/me/.config/example/tokens" } });
 * const client = await Client.connect("https://mcp.example.com/mcp", { auth: oauth });
 * ```
 */
export class OAuth {
  readonly #options: Record<string, unknown>;
  readonly #answers = new Map<string, Answer>();

  /** @throws UsageError if it is said in several ways on whose behalf to ask, or an option isn't there. */
  constructor(options: OAuthOptions) {
    for (const name of Object.keys(options)) {
      if (!KNOWN.has(name)) {
        throw new UsageError(`OAuth has no option ${JSON.stringify(name)}; there are ${[...KNOWN].sort().join(", ")}`);
      }
    }
    const written: Record<string, unknown> = {};
    for (const name of PLAIN) {
      if (options[name] !== undefined) {
        written[snakeCase(name)] = options[name];
      }
    }
    const { credentials = [] } = options;
    const all = Array.isArray(credentials) ? (credentials as Credentials[]) : [credentials as Credentials];
    written["credentials"] = all.map(spelt);
    const grant = this.#grant(options);
    if (grant !== undefined) {
      written["grant"] = grant;
    }
    const agent = this.#userAgent(options.userAgent);
    if (agent !== undefined) {
      written["user_agent"] = agent;
    }
    written["store"] = this.#store(options.store ?? new Memory());
    this.#options = written;
  }

  /** As the core reads it. @internal */
  get written(): object {
    return { oauth: this.#options };
  }

  /** What answers the core. @internal */
  get answers(): ReadonlyMap<string, Answer> {
    return this.#answers;
  }

  #grant({ clientCredentials, workloadIdentity, enterprise }: OAuthOptions): unknown {
    const grants: unknown[] = [];
    if (clientCredentials === true) {
      grants.push("client_credentials");
    }
    if (workloadIdentity !== undefined) {
      grants.push("workload_identity");
      this.#answers.set("auth/assertion", async ({ audience = "" }) => ({
        assertion: await workloadIdentity(audience),
      }));
    }
    if (enterprise !== undefined) {
      const { idToken, ...rest } = enterprise;
      grants.push({ enterprise: spelt(rest) });
      this.#answers.set("auth/id_token", async ({ audience = "" }) => ({ id_token: await idToken(audience) }));
    }
    if (grants.length > 1) {
      throw new UsageError("tokens are asked for in one way: clientCredentials, workloadIdentity or enterprise");
    }
    return grants[0];
  }

  #userAgent(agent: OAuthOptions["userAgent"]): unknown {
    if (agent === null) {
      return undefined;
    }
    if (agent === undefined) {
      return { loopback: {} };
    }
    if ("open" in agent) {
      const { open } = agent;
      this.#answers.set("auth/open", async ({ url = "" }) => ({ url: await open(url) }));
      return { host: { redirect_uri: agent.redirectUri } };
    }
    const { redirectUri, timeout } = agent;
    const common = {
      ...(redirectUri === undefined ? {} : { redirect_uri: redirectUri }),
      ...(timeout === undefined ? {} : { timeout: seconds("userAgent.timeout", timeout) }),
    };
    if (agent.kind === "terminal") {
      return { terminal: common };
    }
    const { browser, onUnopened } = agent;
    if (typeof browser === "function") {
      this.#answers.set("auth/browser", async ({ url = "" }) => {
        await browser(url);
        return {};
      });
    }
    if (onUnopened !== undefined) {
      this.#answers.set("auth/unopened", async ({ url = "", reason = "" }) => {
        await onUnopened(url, reason);
        return {};
      });
    }
    const kind = browser === undefined ? "system" : browser === false ? "none" : "host";
    return { loopback: { ...common, browser: kind, unopened: onUnopened !== undefined } };
  }

  #store(store: NonNullable<OAuthOptions["store"]>): unknown {
    if ("file" in store) {
      return { file: store.file };
    }
    if ("keyring" in store) {
      return { keyring: store.keyring };
    }
    const locks = new Map<string, () => unknown>();
    let lastLock = 0;
    this.#answers.set("auth/store/load", async ({ key = "" }) => {
      const value = (await store.load(key)) ?? null;
      return { value: value === null ? null : Buffer.from(value).toString("base64") };
    });
    this.#answers.set("auth/store/save", async ({ key = "", value = "" }) => {
      await store.save(key, Buffer.from(value, "base64"));
      return {};
    });
    this.#answers.set("auth/store/remove", async ({ key = "" }) => {
      await store.remove(key);
      return {};
    });
    this.#answers.set("auth/store/lock", async ({ key = "" }) => {
      const release = await store.lock?.(key);
      const lock = String(++lastLock);
      if (release !== undefined) {
        locks.set(lock, release);
      }
      return { lock };
    });
    this.#answers.set("auth/store/unlock", async ({ lock = "" }) => {
      const release = locks.get(lock);
      locks.delete(lock);
      await release?.();
      return {};
    });
    return { host: { locks: store.lock !== undefined, group: groupOf(store) } };
  }
}

/** The default store. */
class Memory implements TokenStore {
  readonly #values = new Map<string, Uint8Array>();

  load(key: string): Uint8Array | undefined {
    return this.#values.get(key);
  }

  save(key: string, value: Uint8Array): void {
    this.#values.set(key, value);
  }

  remove(key: string): void {
    this.#values.delete(key);
  }
}

/** What stores have in common that are the same. */
const groups = new WeakMap<TokenStore, string>();
let lastGroup = 0;
/** Threads have stores of their own. */
const thread = `${String(process.pid)}-${Math.random().toString(36).slice(2)}`;

function groupOf(store: TokenStore): string {
  let group = groups.get(store);
  if (group === undefined) {
    group = `node-${thread}-${String(++lastGroup)}`;
    groups.set(store, group);
  }
  return group;
}

/** An object in the core's spelling. */
function spelt(given: object): Record<string, unknown> {
  const members = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(members.map(([name, value]) => [snakeCase(name), value as unknown]));
}

/** How a client is authorized: as the core reads it, and what answers the core. */
export interface Authorization {
  written: object;
  answers: ReadonlyMap<string, Answer>;
}

/** Reads what a client was given. */
export function authorizationOf(auth: Auth): Authorization {
  if (typeof auth === "string") {
    return { written: { bearer: auth }, answers: new Map() };
  }
  if (typeof auth === "function") {
    const give: Answer = async (wanted) => {
      const given = await auth(wanted as unknown as TokenWanted);
      if (typeof given === "string") {
        return { token: given };
      }
      const { token, expiresIn } = given;
      return { token, ...(expiresIn === undefined ? {} : { expires_in: seconds("expiresIn", expiresIn) }) };
    };
    return { written: { source: {} }, answers: new Map([["auth/token", give]]) };
  }
  if (!(auth instanceof OAuth)) {
    throw new UsageError("auth is a token, a function that gives one, or an OAuth");
  }
  return auth;
}
