// A popular authorization server, oidc-provider, in a realistic setup: only the options that MCP needs are set, and its
// user consents to everything immediately.
//
// `provider.mjs` prints one line of JSON, {"issuer": URL, "key": PEM}, and ends when its standard input ends; the key
// is that of the client `signer`. Tests control it at /control: the counts of requests, the settings, and the
// revocation of issued data.

import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { exportJWK, exportPKCS8, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

const settings = {
  // The token format of resource servers.
  format: "jwt",
  // Lifetime of access tokens in seconds.
  lifetime: 3600,
  scopes: "read write",
  // Documents at https URLs of other parties, by URL, which are not fetched.
  documents: {},
};
const counts = {};
const kept = new Map();

/** Stores everything in memory, where a test can remove it. */
class Kept {
  constructor(kind) {
    this.kind = kind;
  }

  key(id) {
    return `${this.kind}:${id}`;
  }

  async upsert(id, payload) {
    kept.set(this.key(id), payload);
  }

  async find(id) {
    return kept.get(this.key(id));
  }

  async findByUid(uid) {
    return this.first((payload) => payload.uid === uid);
  }

  async findByUserCode(code) {
    return this.first((payload) => payload.userCode === code);
  }

  first(fits) {
    for (const [key, payload] of kept) {
      if (key.startsWith(`${this.kind}:`) && fits(payload)) return payload;
    }
    return undefined;
  }

  async consume(id) {
    const payload = kept.get(this.key(id));
    if (payload) payload.consumed = Math.floor(Date.now() / 1000);
  }

  async destroy(id) {
    kept.delete(this.key(id));
  }

  async revokeByGrantId(grant) {
    for (const [key, payload] of kept) if (payload.grantId === grant) kept.delete(key);
  }
}

async function start() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  const key = { ...(await exportJWK(privateKey)), use: "sig", alg: "ES256", kid: randomUUID() };
  const signer = await generateKeyPair("ES256", { extractable: true });

  const provider = new Provider(issuer, {
    adapter: Kept,
    clients: [
      {
        client_id: "resource-server",
        client_secret: "a secret of the resource server's, long enough",
        redirect_uris: [],
        response_types: [],
        grant_types: [],
      },
      ...["client_secret_basic", "client_secret_post"].map((method) => ({
        client_id: method,
        client_secret: "a secret: 100% & + more, to be encoded",
        redirect_uris: ["http://127.0.0.1:1/callback"],
        grant_types: ["authorization_code", "refresh_token", "client_credentials"],
        application_type: "native",
        token_endpoint_auth_method: method,
      })),
      {
        client_id: "signer",
        redirect_uris: [],
        response_types: [],
        grant_types: ["client_credentials"],
        token_endpoint_auth_method: "private_key_jwt",
        jwks: { keys: [{ ...(await exportJWK(signer.publicKey)), use: "sig", alg: "ES256", kid: "the-key" }] },
      },
    ],
    cookies: { keys: [randomUUID()] },
    enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      registration: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
      dPoP: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // A refresh without a `resource` is for the resource that the user consented to.
        useGrantedResource: async () => true,
        getResourceServerInfo: async (_context, resource) => ({
          audience: resource,
          scope: settings.scopes,
          accessTokenTTL: settings.lifetime,
          accessTokenFormat: settings.format,
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    jwks: { keys: [key] },
    pkce: { required: () => true },
    fetch: async (url) => {
      const document = settings.documents[url];
      return document ? Response.json(document) : new Response("", { status: 404 });
    },
    findAccount: async (_context, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  });
  if (process.env.MCPLINE_OIDC_ERRORS) {
    for (const event of ["authorization.error", "grant.error", "registration_create.error", "server_error", "introspection.error"]) {
      provider.on(event, (_context, error) => console.error(event, error.message, error.error_description, error.error_detail));
    }
  }

  const answer = provider.callback();
  server.on("request", (request, response) => {
    const { pathname } = new URL(request.url, issuer);
    if (pathname.startsWith("/control/")) return void control(pathname, request, response);
    const counted = pathname.startsWith("/interaction/") ? "/interaction" : pathname;
    counts[counted] = (counts[counted] ?? 0) + 1;
    if (counted === "/interaction") return void consent(provider, request, response);
    answer(request, response);
  });
  console.log(JSON.stringify({ issuer, key: await exportPKCS8(signer.privateKey) }));
  process.stdin.on("end", () => process.exit(0)).resume();
}

/** Logs the user in and consents to everything. */
async function consent(provider, request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId: "alice" } });
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
  if (missingOIDCClaims) grant.addOIDCClaims(missingOIDCClaims);
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(" "));
  }
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

async function control(pathname, request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : {};
  let said = counts;
  switch (pathname) {
    case "/control/settings":
      Object.assign(settings, body);
      break;
    case "/control/forget":
      // Removes all data of these kinds: AccessToken, RefreshToken, Grant, …
      for (const key of [...kept.keys()]) if (body.kinds.includes(key.split(":")[0])) kept.delete(key);
      break;
    case "/control/kept":
      said = [...kept.keys()].filter((key) => key.startsWith(`${body.kind}:`)).length;
      break;
    case "/control/counts":
      break;
    default:
      response.writeHead(404).end();
      return;
  }
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(said));
}

await start();
