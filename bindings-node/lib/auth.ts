/** Authorization of callers (`basic/authorization`). */

import { types } from "node:util";

import { errorText, warn } from "./client/host.js";
import { jsonOf } from "./content.js";
import { UsageError } from "./errors.js";
import { trustedRoots } from "./extra_roots.js";
import { hub, listen, nextNumber, unlisten } from "./hub.js";
import { native, type NativeVerifier } from "./native.js";
import { checkOptions } from "./option_checks.js";
import { optionNames, snakeCase } from "./option_names.js";
import { secondsFromMs } from "./settings.js";

/**
 * Authentication of callers by access tokens. Durations are in milliseconds.
 *
 * ```ts
 * await server.listen({ auth: { resource: "https://mcp.example.com/mcp", issuers: ["https://auth.example.com"] } });
 * ```
 *
 * Tokens are read from the `Authorization` header only. A token is accepted if its signature or its introspection is
 * valid, and if it is meant for this server and has not expired. Handlers read the caller from {@link Context.auth};
 * they never see the token.
 */
export interface ResourceServerSettings {
  /** Public URL of the server, such as `https://mcp.example.com/mcp`. Required unless `verify` alone is given. */
  resource?: string;
  /**
   * Authorization servers whose signed tokens are accepted. With exactly one, clients of 2025-03-26 find it through the
   * origin of `resource`.
   */
  issuers?: readonly string[];
  /** URL of the signing keys. Default: read from the metadata of the issuer. */
  jwksUrl?: string;
  /** The signing keys, as a JSON Web Key Set. */
  jwks?: { readonly keys: readonly object[] };
  /** Introspection of opaque tokens. */
  introspection?: IntrospectionSettings;
  /**
   * Checks every token instead of the options above. Called with the token; returns the caller, or `null` for an
   * invalid token. If it throws, the error is emitted as a warning of the process, and the request fails with HTTP 503.
   * Time limit: 30 s. Without `authorizationServers`, the tokens are keys of your own: no metadata is published, and
   * clients do not try to sign in.
   */
  verify?: (token: string) => VerifiedCaller | null | Promise<VerifiedCaller | null>;
  /** Authorization servers for clients to use, in addition to `issuers`. At least one must be known, except for keys of your own. */
  authorizationServers?: readonly string[];
  /** Accepted audiences of tokens. Default: `resource`. */
  audiences?: readonly string[];
  /** Scopes that every request needs. Tools, resources and prompts can require `scopes` of their own. */
  requiredScopes?: readonly string[];
  /** Scopes that clients request at first. Default: `requiredScopes`. */
  supportedScopes?: readonly string[];
  /** Scopes that include others: `{ "files:write": ["files:read"] }`. */
  impliedScopes?: Record<string, readonly string[]>;
  /** Accepted signature algorithms. Default: RS256, ES256, PS256 and EdDSA. */
  algorithms?: readonly string[];
  /** Tolerated difference between clocks. Default: 60,000. */
  clockSkew?: number;
  /**
   * Accept only tokens that are bound to a key (DPoP, RFC 9449). Such tokens always need their proof, also if this is
   * off. Default: `false`.
   */
  demandProofOfPossession?: boolean;
  /** URL of the resource metadata. Default: the well-known URL of `resource` (RFC 9728). */
  metadataUrl?: string;
  /** Display name of the resource, for the metadata. */
  name?: string;
  /** URL of a page for developers, for the metadata. */
  documentation?: string;
  /** Proxy for requests to authorization servers; see {@link HttpClientOptions.proxy}. */
  proxy?: string;
  /** CA certificates in PEM that are trusted in addition to those of the system and of `NODE_EXTRA_CA_CERTS`. */
  tlsRoots?: string;
  /** Trust only `tlsRoots`, not the CA certificates of the system and of `NODE_EXTRA_CA_CERTS`. Default: `false`. */
  onlyTlsRoots?: boolean;
}

/** Token introspection at an authorization server (RFC 7662), for opaque tokens. Durations are in milliseconds. */
export interface IntrospectionSettings {
  /** URL of the introspection endpoint. */
  endpoint: string;
  /** Client identifier for authentication at the endpoint, with `clientSecret`. */
  clientId?: string;
  /** Client secret. */
  clientSecret?: string;
  /** Bearer token for authentication at the endpoint, instead of `clientId`. */
  token?: string;
  /** Cache lifetime of a response. Default: 60,000. A revoked token is accepted for as long. */
  keepFor?: number;
  /**
   * Set this if the endpoint reports only tokens for this server as active. Otherwise its response must name the
   * audience. Default: `false`.
   */
  knowsAudience?: boolean;
}

/** A caller, as authenticated by `verify` or by a custom transport. */
export type VerifiedCaller = Partial<Caller>;

/** An authenticated caller. Does not contain the token. */
export interface Caller {
  /** The authorization server that issued the token. */
  issuer: string | undefined;
  /** The caller (`sub`); unique per issuer. */
  subject: string | undefined;
  /** The OAuth client that acts for the subject. */
  clientId: string | undefined;
  /** The audiences of the token (`aud`). */
  audience: string[];
  /** The granted scopes. */
  scopes: string[];
  /** Expiry of the token. */
  expiresAt: Date | undefined;
  /** All claims of the token, or all members of the introspection response. */
  claims: Record<string, unknown>;
}

interface CallerJson {
  issuer: string | null;
  subject: string | null;
  client_id: string | null;
  audience: string[];
  scopes: string[];
  expires_at: number | null;
  claims: Record<string, unknown>;
}

const SETTINGS = optionNames<ResourceServerSettings>({
  resource: true,
  issuers: true,
  jwksUrl: true,
  jwks: true,
  introspection: true,
  verify: true,
  authorizationServers: true,
  audiences: true,
  requiredScopes: true,
  supportedScopes: true,
  impliedScopes: true,
  algorithms: true,
  clockSkew: true,
  demandProofOfPossession: true,
  metadataUrl: true,
  name: true,
  documentation: true,
  proxy: true,
  tlsRoots: true,
  onlyTlsRoots: true,
});
const INTROSPECTION = optionNames<IntrospectionSettings>({
  endpoint: true,
  clientId: true,
  clientSecret: true,
  token: true,
  keepFor: true,
  knowsAudience: true,
});
const CALLER = optionNames<VerifiedCaller>({
  issuer: true,
  subject: true,
  clientId: true,
  audience: true,
  scopes: true,
  expiresAt: true,
  claims: true,
});

/** Converts the settings of a resource server to the core's options. */
export function resourceServerOptions(given: ResourceServerSettings): Record<string, unknown> {
  checkOptions("`auth`", given, SETTINGS);
  const { verify, ...settings } = { ...given, ...trustedRoots(given) };
  if (settings.introspection !== undefined) {
    checkOptions("`auth.introspection`", settings.introspection, INTROSPECTION);
  }
  const verifies = verify === undefined ? {} : { verifies: true };
  return converted({ ...settings, ...verifies }, (name, value) => {
    if (name === "introspection") {
      return converted(value as IntrospectionSettings, (name, value) =>
        name === "keepFor" ? secondsFromMs("introspection.keepFor", value) : value,
      );
    }
    return name === "clockSkew" ? secondsFromMs("clockSkew", value) : value;
  });
}

function converted(settings: object, convert: (name: string, value: unknown) => unknown): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (value !== undefined) {
      options[snakeCase(name)] = convert(name, value);
    }
  }
  return options;
}

/** The verifier of tokens of a server, until `end` is called. */
export interface VerifierRegistration {
  readonly native: NativeVerifier | undefined;
  readonly end: () => void;
}

/** Registers the `verify` function of the settings, if there is one. */
export function registerVerifier(settings: ResourceServerSettings | undefined): VerifierRegistration {
  const verify = settings?.verify;
  if (verify === undefined) {
    return { native: undefined, end: () => undefined };
  }
  const number = nextNumber();
  const verifier = new native.Verifier(hub, number);
  const check = async (request: number, token: string) => {
    try {
      const said = await verify(token);
      if (said === null) {
        verifier.refuse(request);
      } else {
        verifier.accept(request, verifiedJson(said));
      }
    } catch (error) {
      warn("the verifier of tokens failed", error);
      verifier.fail(request);
    }
  };
  listen(number, { onEvent: (_about, request, json) => void check(request, JSON.parse(json) as string) });
  return {
    native: verifier,
    end: () => {
      unlisten(number);
    },
  };
}

/**
 * Encodes a caller that the program has authenticated for the core.
 *
 * @param option The option that names the caller, for messages.
 * @throws UsageError if it cannot be encoded, or is `null`: a client without a principal may do everything.
 */
export function principalJson(principal: unknown, option: string): string {
  if (typeof principal !== "object" || principal === null) {
    throw new UsageError(`\`${option}\` must be an object, not ${principal === null ? "null" : typeof principal}`);
  }
  checkOptions(`\`${option}\``, principal, CALLER);
  try {
    return verifiedJson(principal);
  } catch (error) {
    throw new UsageError(`\`${option}\`: ${errorText(error)}`, { cause: error });
  }
}

/** Encodes a caller for the core. */
function verifiedJson({ clientId, expiresAt, ...said }: VerifiedCaller): string {
  if (expiresAt !== undefined && !(types.isDate(expiresAt) && Number.isFinite(expiresAt.getTime()))) {
    // An invalid date would never expire.
    throw new TypeError("`expiresAt` must be a valid Date");
  }
  return jsonOf({
    ...said,
    ...(clientId === undefined ? {} : { client_id: clientId }),
    ...(expiresAt === undefined ? {} : { expires_at: Math.floor(expiresAt.getTime() / 1000) }),
  });
}

/** Decodes a caller that the core sent. */
export function callerOf(json: string): Caller {
  const caller = JSON.parse(json) as CallerJson;
  return {
    issuer: caller.issuer ?? undefined,
    subject: caller.subject ?? undefined,
    clientId: caller.client_id ?? undefined,
    audience: caller.audience,
    scopes: caller.scopes,
    expiresAt: caller.expires_at === null ? undefined : new Date(caller.expires_at * 1000),
    claims: caller.claims,
  };
}
