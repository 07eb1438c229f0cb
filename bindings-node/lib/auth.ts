/** Whose tokens a server accepts (`basic/authorization`), and who calls. */

import { types } from "node:util";

import { errorText, warn } from "./client/host.js";
import { jsonOf } from "./content.js";
import { UsageError } from "./errors.js";
import { hub, listen, nextNumber, unlisten } from "./hub.js";
import { native, type NativeVerifier } from "./native.js";
import type { JsonSchema } from "./protocol.js";
import { seconds, snakeCase } from "./settings.js";

/**
 * Whose tokens a server accepts. JWTs are verified here, with the keys of their issuers; times are in ms.
 *
 * ```ts
 * await server.listen({ auth: { resource: "https://mcp.example.com/mcp", issuers: ["https://auth.example.com"] } });
 * ```
 */
export interface ResourceServerSettings {
  /** The URL that clients connect to: what tokens have to be for, and what the metadata name (RFC 9728). */
  resource: string;
  /** The authorization servers; the keys of each are found by its metadata. */
  issuers?: readonly string[];
  /** Where the keys are, in place of what metadata say. */
  jwksUrl?: string;
  /** The keys themselves: a JSON Web Key Set. */
  jwks?: JsonSchema;
  /** Where opaque tokens are looked up (RFC 7662). */
  introspection?: IntrospectionSettings;
  /**
   * Checks every token in place of all that: gives what the token says, or `null` if it isn't good. What it throws is reported
   * as a warning of the process; the request is answered 503 then, for nobody knows whether the token is good.
   */
  verify?: (token: string) => Verified | null | Promise<Verified | null>;
  /** What the metadata tell of authorization servers, if not `issuers`. */
  authorizationServers?: readonly string[];
  /** Values of `aud` that are accepted besides the resource. */
  audiences?: readonly string[];
  /** The scopes without which no request is served. */
  requiredScopes?: readonly string[];
  /** The scopes that the metadata name; the required ones, if nothing is said. */
  supportedScopes?: readonly string[];
  /** What scopes imply: `{ admin: ["read", "write"] }`. */
  impliedScopes?: Record<string, readonly string[]>;
  /** The algorithms that tokens may be signed with, such as `ES256`. */
  algorithms?: readonly string[];
  /** By how much clocks may differ, in ms. */
  clockSkew?: number;
  /** Whether every token has to be bound to a key of the client's (RFC 9449). */
  demandProofOfPossession?: boolean;
  /** Where the metadata are, if not at their well-known place. */
  metadataUrl?: string;
  /** What people call the resource. */
  name?: string;
  /** A page for developers. */
  documentation?: string;
  /** The proxy by which keys are fetched: a URL, or `direct`; what the environment says. */
  proxy?: string;
  /** Certificates that are trusted as well when keys are fetched, PEM. */
  tlsRoots?: string;
  /** Whether only those are. */
  onlyTheseRoots?: boolean;
}

/** How opaque tokens are looked up (RFC 7662). */
export interface IntrospectionSettings {
  /** Where. */
  endpoint: string;
  /** As whom, with `clientSecret`. */
  clientId?: string;
  clientSecret?: string;
  /** Or with this token. */
  token?: string;
  /** For how long an answer is believed, in ms. */
  keepFor?: number;
  /** Whether the endpoint calls only those tokens active that are for this server. */
  knowsAudience?: boolean;
}

/** What a token, or a transport, says of a caller. */
export type Verified = Partial<Omit<Caller, "audience">>;

/** Who calls. */
export interface Caller {
  /** Who issued the token. */
  issuer: string | undefined;
  /** The user, as the issuer names them. */
  subject: string | undefined;
  /** The client. */
  clientId: string | undefined;
  /** What the token is for. */
  audience: string[];
  /** What the caller may do. */
  scopes: string[];
  /** When the token expires. */
  expiresAt: Date | undefined;
  /** Everything that the token, or its introspection, says. */
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

/** Settings of a resource server as the core reads them. */
export function resourceServerOptions({ verify, ...settings }: ResourceServerSettings): Record<string, unknown> {
  const verifies = verify === undefined ? {} : { verifies: true };
  return converted({ ...settings, ...verifies }, (name, value) => {
    if (name === "introspection") {
      return converted(value as IntrospectionSettings, (name, value) =>
        name === "keepFor" ? seconds("introspection.keepFor", value) : value,
      );
    }
    return name === "clockSkew" ? seconds("clockSkew", value) : value;
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

/** What has a function check tokens, until it is let go of. */
export interface Verifying {
  readonly native: NativeVerifier | undefined;
  readonly end: () => void;
}

/** Has the function of these settings check tokens, if there is one. */
export function verifying(settings: ResourceServerSettings | undefined): Verifying {
  const verify = settings?.verify;
  if (verify === undefined) {
    return { native: undefined, end: () => undefined };
  }
  const number = nextNumber();
  const verifier = new native.Verifier(hub, number);
  const check = async (asked: number, token: string) => {
    try {
      const said = await verify(token);
      if (said === null) {
        verifier.refuse(asked);
      } else {
        verifier.accept(asked, verifiedJson(said));
      }
    } catch (error) {
      warn("the verifier of tokens failed", error);
      verifier.fail(asked);
    }
  };
  listen(number, { told: (_about, asked, json) => void check(asked, JSON.parse(json) as string) });
  return {
    native: verifier,
    end: () => {
      unlisten(number);
    },
  };
}

/**
 * The principal of a transport as JSON, in the core's spelling.
 *
 * @throws UsageError if it can't be written so; also if it is `null`, for a client without a principal may do everything.
 */
export function principalJson(principal: unknown): string {
  if (typeof principal !== "object" || principal === null) {
    throw new UsageError(`\`principal\` must be an object, not ${principal === null ? "null" : typeof principal}`);
  }
  try {
    return verifiedJson(principal);
  } catch (error) {
    throw new UsageError(`\`principal\`: ${errorText(error)}`, { cause: error });
  }
}

/** A caller as JSON, in the core's spelling. */
function verifiedJson({ clientId, expiresAt, ...said }: Verified): string {
  if (expiresAt !== undefined && !(types.isDate(expiresAt) && Number.isFinite(expiresAt.getTime()))) {
    // An invalid date would be one that never comes.
    throw new TypeError("`expiresAt` must be a valid Date");
  }
  return jsonOf({
    ...said,
    ...(clientId === undefined ? {} : { client_id: clientId }),
    ...(expiresAt === undefined ? {} : { expires_at: Math.floor(expiresAt.getTime() / 1000) }),
  });
}

/** A caller as the core tells of them. */
export function callerOf(json: string): Caller {
  const told = JSON.parse(json) as CallerJson;
  return {
    issuer: told.issuer ?? undefined,
    subject: told.subject ?? undefined,
    clientId: told.client_id ?? undefined,
    audience: told.audience,
    scopes: told.scopes,
    expiresAt: told.expires_at === null ? undefined : new Date(told.expires_at * 1000),
    claims: told.claims,
  };
}
