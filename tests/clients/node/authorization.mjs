// The authorization scenarios (`auth/…`).

import { AuthorizationFailedError, OAuth } from "mcpline";

/** The redirect URI. Nothing listens there: the user agent reads the parameters from the redirect. */
const REDIRECT = "http://localhost:3000/callback";
/** The client's metadata document, which the suite's authorization server knows. */
const DOCUMENT = "https://conformance-test.local/client-metadata.json";

/** Requests the URL at the authorization server, which consents immediately, and returns the target of its redirect. */
async function consent(url) {
  const answer = await fetch(url, { redirect: "manual" });
  const location = answer.headers.get("location");
  if (location === null) {
    throw new Error("nobody was redirected");
  }
  return location;
}

const context = () => JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);

/** Returns the credentials in the scenario's context. */
function credentials() {
  const { client_id: clientId, issuer, client_secret: secret, private_key_pem: privateKey, ...more } = context();
  return { clientId, issuer, secret, privateKey, algorithm: more.signing_algorithm };
}

/** Returns the scenario's identity provider. */
function enterprise() {
  const { idp_token_endpoint: tokenEndpoint, idp_client_id: clientId, idp_id_token: idToken } = context();
  return { tokenEndpoint, clientId, idToken: () => idToken };
}

const same = (names, value) => Object.fromEntries(names.map((name) => [name, value]));

/** Additional OAuth settings, for the scenarios in which everything works. */
const working = {
  ...same(
    [
      "metadata-default",
      "metadata-var1",
      "metadata-var2",
      "metadata-var3",
      "scope-from-www-authenticate",
      "scope-from-scopes-supported",
      "scope-omitted-when-undefined",
      "scope-step-up",
      "token-endpoint-auth-basic",
      "token-endpoint-auth-post",
      "token-endpoint-auth-none",
      "offline-access-scope",
      "offline-access-not-supported",
      "authorization-server-migration",
      "iss-supported",
      "iss-not-advertised",
      "2025-03-26-oauth-metadata-backcompat",
      "2025-03-26-oauth-endpoint-fallback",
    ],
    () => ({}),
  ),
  "basic-cimd": () => ({ clientIdMetadataUrl: DOCUMENT }),
  "pre-registration": () => ({ credentials: credentials() }),
  ...same(["dpop", "dpop-nonce"], () => ({ dpop: true })),
  ...same(["client-credentials-basic", "client-credentials-jwt"], () => ({
    credentials: credentials(),
    clientCredentials: true,
  })),
  "enterprise-managed-authorization": () => ({ credentials: credentials(), enterprise: enterprise() }),
  "wif-jwt-bearer": () => ({ credentials: credentials(), workloadIdentity: () => context().valid_jwt }),
};

/** Expected error codes, for the other scenarios. */
const refused = {
  "scope-retry-limit": "insufficient_scope",
  "resource-mismatch": "resource_mismatch",
  "metadata-issuer-mismatch": "metadata_issuer_mismatch",
  ...same(
    ["iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized"],
    "authorization_response_mismatch",
  ),
};

function oauth(options) {
  return new OAuth({
    clientName: "everything-client",
    userAgent: { redirectUri: REDIRECT, open: consent },
    ...options,
  });
}

/** Returns the scenarios by name; `host` connects to a URL. */
export function scenarios(host) {
  const all = {};
  for (const [name, options] of Object.entries(working)) {
    all[`auth/${name}`] = async (url) => {
      const client = await host(url, { auth: oauth(options()) });
      try {
        await client.listTools();
        await client.callTool("test-tool", {});
      } finally {
        await client.close();
      }
    };
  }
  for (const [name, reason] of Object.entries(refused)) {
    all[`auth/${name}`] = async (url) => {
      try {
        const client = await host(url, { auth: oauth({}) });
        await client.listTools();
      } catch (error) {
        if (error instanceof AuthorizationFailedError && error.reason === reason) {
          return;
        }
        throw error;
      }
      throw new Error(`not refused for ${reason}`);
    };
  }
  return all;
}
