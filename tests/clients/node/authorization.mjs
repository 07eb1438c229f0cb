// The scenarios about authorization (`auth/…`).

import { AuthorizationFailedError, OAuth } from "mcpline";

/** Where the user is sent back to. Nobody listens there: the user agent reads it off the redirect. */
const REDIRECT = "http://localhost:3000/callback";
/** The document that the suite's authorization server knows us by. */
const DOCUMENT = "https://conformance-test.local/client-metadata.json";

/** Goes to the authorization server, which consents at once, and comes back with where it sends the user. */
async function consent(url) {
  const answer = await fetch(url, { redirect: "manual" });
  const location = answer.headers.get("location");
  if (location === null) {
    throw new Error("nobody was redirected");
  }
  return location;
}

const context = () => JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);

/** What the scenario says that its authorization server knows the client by. */
function credentials() {
  const { client_id: clientId, issuer, client_secret: secret, private_key_pem: privateKey, ...more } = context();
  return { clientId, issuer, secret, privateKey, algorithm: more.signing_algorithm };
}

/** The identity provider that the scenario has. */
function enterprise() {
  const { idp_token_endpoint: tokenEndpoint, idp_client_id: clientId, idp_id_token: idToken } = context();
  return { tokenEndpoint, clientId, idToken: () => idToken };
}

const same = (names, value) => Object.fromEntries(names.map((name) => [name, value]));

/** What a client is told beside, by the scenarios in which everything works. */
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

/** Why nothing works, in the other scenarios. */
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

/** The scenarios by their names; `host` connects to a URL. */
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
