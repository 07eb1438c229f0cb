/** Whose tokens a server accepts (`basic/authorization`), and who calls. */

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
export function resourceServerOptions(settings: ResourceServerSettings): Record<string, unknown> {
  return converted(settings, (name, value) => {
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
