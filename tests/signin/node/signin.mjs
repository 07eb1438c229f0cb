/**
 * `node signin.mjs RELEASE URL [--without-metadata]`: an official client of that release signs in at a server, calls
 * `whoami` and prints its text. RELEASE is the name of a dependency in package.json.
 *
 * Without metadata, it uses the default paths of 2025-03-26.
 */

const [release, url, ...flags] = process.argv.slice(2);
const { Client } = await import(`${release}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${release}/client/streamableHttp.js`);
const auth = await import(`${release}/client/auth.js`);

const REDIRECT = "http://127.0.0.1:1/callback";
const MAX_REDIRECTS = 5;

/** Follows the redirects to the consent page, which consents immediately, and back; returns the code. */
async function consent(authorizationUrl) {
  let at = String(authorizationUrl);
  for (let hops = 0; hops < MAX_REDIRECTS; hops++) {
    const response = await fetch(at, { redirect: "manual" });
    at = response.headers.get("location") ?? "";
    if (at.startsWith(REDIRECT)) return new URL(at).searchParams.get("code");
    if (response.status !== 302) throw new Error(`${response.status} on the way to the code: ${await response.text()}`);
  }
  throw new Error("too many redirects");
}

class Provider {
  redirectUrl = REDIRECT;
  clientMetadata = {
    client_name: "signin",
    redirect_uris: [REDIRECT],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "client_secret_post",
  };
  clientInformation = () => this.information;
  saveClientInformation = (information) => void (this.information = information);
  tokens = () => this.kept;
  saveTokens = (tokens) => void (this.kept = tokens);
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  redirectToAuthorization = async (authorizationUrl) => {
    this.code = await consent(authorizationUrl);
  };
}

/** Acts like the client's own flow for servers without metadata. */
async function signInWithoutMetadata(provider) {
  const none = { metadata: undefined };
  const clientInformation = await auth.registerClient(url, { ...none, clientMetadata: provider.clientMetadata });
  provider.saveClientInformation(clientInformation);
  const started = await auth.startAuthorization(url, { ...none, clientInformation, redirectUrl: REDIRECT });
  const tokens = await auth.exchangeAuthorization(url, {
    ...none,
    clientInformation,
    authorizationCode: await consent(started.authorizationUrl),
    codeVerifier: started.codeVerifier,
    redirectUri: REDIRECT,
  });
  const renewed = await auth.refreshAuthorization(url, {
    ...none,
    clientInformation,
    refreshToken: tokens.refresh_token,
  });
  provider.saveTokens(renewed);
}

async function connect(provider) {
  const client = new Client({ name: "signin", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof auth.UnauthorizedError)) throw error;
    await transport.finishAuth(provider.code);
    return connect(provider);
  }
  return client;
}

const provider = new Provider();
if (flags.includes("--without-metadata")) await signInWithoutMetadata(provider);
const client = await connect(provider);
const result = await client.callTool({ name: "whoami", arguments: {} });
console.log(result.content[0].text);
await client.close();
