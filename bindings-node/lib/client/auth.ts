/** Authorization of a client, by bearer token or OAuth (`basic/authorization`). */

import { UsageError } from "../errors.js";
import { closestName } from "../option_checks.js";
import { registerNames, snakeCase } from "../option_names.js";
import { secondsFromMs } from "../settings.js";

type Awaitable<T> = T | Promise<T>;

/** An access token. */
export interface Token {
  /** The token. */
  token: string;
  /** Remaining lifetime in milliseconds; absent if unknown. */
  expiresIn?: number;
}

/** A request for an access token. */
export interface TokenRequest {
  /** URL of the server that the token is for. */
  server: string;
  /** Whether the server rejected the previous token. */
  refused: boolean;
  /** Scopes that the server requires, separated by spaces; empty if it named none. */
  scopes: string;
}

/**
 * Source of a client's access tokens: a token, a function that returns one, or {@link OAuth}.
 *
 * The function is called for the first request, when the token expires, and when the server rejects it.
 */
export type Auth = string | ((wanted: TokenRequest) => Awaitable<string | Token>) | OAuth;

/** Credentials of a client that is already registered at an authorization server. */
export interface Credentials {
  /** Client identifier. */
  clientId: string;
  /**
   * The authorization server that issued the credentials; compared character by character. They are sent to no other
   * one. If omitted, they are sent to the first authorization server that the MCP server names.
   */
  issuer?: string;
  /** Client secret. */
  secret?: string;
  /** Private key in PEM, instead of a secret. */
  privateKey?: string;
  /** Signature algorithm of the private key, such as `ES256`. Default: the usual one for the type of key. */
  algorithm?: string;
  /** Identifier of the key at the authorization server (`kid`), if it knows several. */
  keyId?: string;
  /** Client authentication method. Default: one that the authorization server supports. */
  auth?: "none" | "client_secret_basic" | "client_secret_post" | "private_key_jwt";
}

/** Identity provider of an enterprise, for enterprise-managed authorization. */
export interface Enterprise {
  /** Token endpoint of the identity provider. */
  tokenEndpoint: string;
  /** Client identifier at the identity provider. */
  clientId: string;
  /** Client secret at the identity provider. */
  secret?: string;
  /** Returns the ID token of the user's single sign-on. Called each time that one is needed. */
  idToken: (audience: string) => Awaitable<string>;
}

/** Sign-in with the system's browser and a redirect to a local port. */
export interface Loopback {
  kind: "loopback";
  /**
   * Redirect URI, if the authorization server accepts only one: `http://127.0.0.1` or `http://localhost`, with or
   * without a port.
   */
  redirectUri?: string;
  /** Time that the user has to sign in, in milliseconds. Default: 300,000. */
  timeout?: number;
  /** Opens a URL instead of the system's browser; `false` opens none. */
  browser?: ((url: string) => unknown) | false;
  /** Called with the URL and the reason if no browser was opened. Default: print both to stderr. */
  onUnopened?: (url: string, reason: string) => unknown;
}

/** Sign-in at a terminal: prints the URL to stderr and reads the URL that the browser was redirected to. */
export interface Terminal {
  kind: "terminal";
  /** Redirect URI: `https`, or `http` on the user's machine. Default: a local URL at which nothing listens. */
  redirectUri?: string;
  /** Time that the user has to sign in, in milliseconds. Default: 300,000. */
  timeout?: number;
}

/** Sign-in by a function of the host. */
export interface FunctionUserAgent {
  kind?: "function";
  /** Redirect URI: `https`, or `http` on the user's machine. */
  redirectUri: string;
  /** Sends the user to a URL, and returns the URL that the user was redirected to, with its query. */
  open: (url: string) => Awaitable<string>;
}

/**
 * Storage of tokens and client registrations. Values are secret.
 *
 * Clients in this thread that share a store refresh a token only once. To coordinate with other processes, a store may
 * also have `lock`.
 */
export interface TokenStore {
  /** Returns the value of a key; `null` or `undefined` if there is none. */
  load(key: string): Awaitable<Uint8Array | null | undefined>;
  /** Sets the value of a key. */
  save(key: string, value: Uint8Array): Awaitable<void>;
  /** Deletes a key, if it exists. */
  remove(key: string): Awaitable<void>;
  /** Locks a key during a refresh; returns a function that releases the lock. */
  lock?(key: string): Awaitable<() => unknown>;
}

/** Options of {@link OAuth}. */
export interface OAuthOptions {
  /** Name of the client, shown to users on the consent page. */
  clientName: string;
  /** How users sign in. Default: {@link Loopback}. `null` if no user is present. */
  userAgent?: Loopback | Terminal | FunctionUserAgent | null;
  /**
   * Storage of tokens and registrations: a directory that only its owner can access; the system's keyring, by service
   * name (only in builds with `npm run build -- --keyring`); or a store of the host. Default: in memory, in the {@link
   * OAuth} object.
   */
  store?: { file: string } | { keyring: string } | TokenStore;
  /** Scopes to request in addition to those that the server requires, separated by spaces. */
  scopes?: string;
  /** Credentials for authorization servers at which the client is already registered. */
  credentials?: Credentials | readonly Credentials[];
  /**
   * `https` URL, with a path, of the client's metadata document, used as client identifier where the authorization
   * server supports it.
   */
  clientIdMetadataUrl?: string;
  /** Home page of the client, for its registration. */
  clientUri?: string;
  /** Logo of the client, for its registration. */
  logoUri?: string;
  /** Identifier of the software, for its registration (RFC 7591). */
  softwareId?: string;
  /** Version of the software, for its registration. */
  softwareVersion?: string;
  /** Request tokens for the client itself, without a user. Needs `credentials`. Default: `false`. */
  clientCredentials?: boolean;
  /** Returns a JWT of the platform that the client runs on. Called with the issuer that it is for. */
  workloadIdentity?: (audience: string) => Awaitable<string>;
  /** Request tokens through an enterprise's identity provider. */
  enterprise?: Enterprise;
  /** Name of the user, if several users share a store. */
  account?: string;
  /** Bind tokens to a key, so that a stolen token is useless (RFC 9449). Default: `false`. */
  dpop?: boolean;
  /** Let servers at public addresses name authorization servers at private addresses. Default: `false`. */
  allowPrivateAddresses?: boolean;
  /** Require that the authorization server advertises PKCE. PKCE is used in any case. Default: `true`. */
  requirePkce?: boolean;
}

/** Answers a request of the core's authorization; parameters and result are those of `foreign/auth`. */
type RequestHandler = (params: Record<string, string>) => Awaitable<object>;

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
registerNames([...KNOWN]);

/**
 * OAuth authorization (`basic/authorization`): discovery, registration, sign-in, refresh and step-up.
 *
 * ```ts
 * const oauth = new OAuth({ clientName: "Example host", store: { file: "/home/me/.config/example/tokens" } });
 * const client = await Client.connect("https://mcp.example.com/mcp", { auth: oauth });
 * ```
 *
 * Clients that are given the same object share their tokens. The first connection opens the authorization server in the
 * user's browser; after that tokens are refreshed without the user.
 */
export class OAuth {
  readonly #options: Record<string, unknown>;
  readonly #answers = new Map<string, RequestHandler>();

  /**
   * @throws UsageError if more than one of `clientCredentials`, `workloadIdentity` and `enterprise` is given, or an
   *   option is unknown.
   */
  constructor(options: OAuthOptions) {
    for (const name of Object.keys(options)) {
      if (!KNOWN.has(name)) {
        const closest = closestName(name, [...KNOWN]);
        const rest =
          closest === undefined ? `the options are ${[...KNOWN].sort().join(", ")}` : `did you mean \`${closest}\`?`;
        throw new UsageError(`OAuth has no option ${JSON.stringify(name)}; ${rest}`);
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
    written["credentials"] = all.map(snakeCaseMembers);
    const grant = this.#grant(options);
    if (grant !== undefined) {
      written["grant"] = grant;
    }
    const agent = this.#userAgent(options.userAgent);
    if (agent !== undefined) {
      written["user_agent"] = agent;
    }
    written["store"] = this.#store(options.store ?? new MemoryStore());
    this.#options = written;
  }

  /** The options for the core. @internal */
  get written(): object {
    return { oauth: this.#options };
  }

  /** The functions that answer requests of the core, by method. @internal */
  get answers(): ReadonlyMap<string, RequestHandler> {
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
      grants.push({ enterprise: snakeCaseMembers(rest) });
      this.#answers.set("auth/id_token", async ({ audience = "" }) => ({ id_token: await idToken(audience) }));
    }
    if (grants.length > 1) {
      throw new UsageError("set only one of `clientCredentials`, `workloadIdentity` and `enterprise`");
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
      ...(timeout === undefined ? {} : { timeout: secondsFromMs("userAgent.timeout", timeout) }),
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
class MemoryStore implements TokenStore {
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

/** Identifiers of stores: clients with the same store share its refreshes. */
const groups = new WeakMap<TokenStore, string>();
let lastGroup = 0;
/** Makes the identifiers of stores unique per thread. */
const thread = `${String(process.pid)}-${Math.random().toString(36).slice(2)}`;

function groupOf(store: TokenStore): string {
  let group = groups.get(store);
  if (group === undefined) {
    group = `node-${thread}-${String(++lastGroup)}`;
    groups.set(store, group);
  }
  return group;
}

/** Converts the names of an object's members to the core's. */
function snakeCaseMembers(given: object): Record<string, unknown> {
  const members = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(members.map(([name, value]) => [snakeCase(name), value as unknown]));
}

/** Authorization of a client: the options for the core, and the functions that answer its requests. */
export interface AuthSetup {
  written: object;
  answers: ReadonlyMap<string, RequestHandler>;
}

/** Reads the option `auth`. */
export function authorizationOf(auth: Auth): AuthSetup {
  if (typeof auth === "string") {
    return { written: { bearer: auth }, answers: new Map() };
  }
  if (typeof auth === "function") {
    const give: RequestHandler = async (wanted) => {
      const given = await auth(wanted as unknown as TokenRequest);
      if (typeof given === "string") {
        return { token: given };
      }
      const { token, expiresIn } = given;
      return { token, ...(expiresIn === undefined ? {} : { expires_in: secondsFromMs("expiresIn", expiresIn) }) };
    };
    return { written: { source: {} }, answers: new Map([["auth/token", give]]) };
  }
  if (!(auth instanceof OAuth)) {
    throw new UsageError("auth is a token, a function that gives one, or an OAuth");
  }
  return auth;
}
