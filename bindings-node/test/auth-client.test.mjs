// Clients that need tokens: their own, or by OAuth from an authorization server in this file.

import assert from "node:assert/strict";
import { createHash, createSign, generateKeyPairSync, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { AuthorizationFailedError, Client, OAuth, Server, UsageError } from "mcpline";

const REDIRECT = "http://127.0.0.1:1/callback";
const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwks = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256", use: "sig" }] };

function sign(claims) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "ES256", kid: "k1", typ: "at+jwt" })}.${part(claims)}`;
  const signature = createSign("sha256").update(text).sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

/** An authorization server whose user consents to everything, and a server that requires its tokens. */
async function world(t) {
  const seen = { registrations: 0, authorizations: [], grants: [] };
  const codes = new Map();
  const refreshTokens = new Map();
  let issuer;
  const token = (resource, scope) => {
    const now = Math.floor(Date.now() / 1000);
    return sign({ iss: issuer, aud: resource, sub: "alice", client_id: "c", exp: now + 600, scope, jti: randomUUID() });
  };
  const issue = (resource, scope) => {
    const refresh = randomUUID();
    refreshTokens.set(refresh, { resource, scope });
    return {
      access_token: token(resource, scope),
      token_type: "Bearer",
      expires_in: 600,
      refresh_token: refresh,
      scope,
    };
  };
  const http = createServer((request, response) => {
    const url = new URL(request.url, issuer);
    const json = (status, value) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const form = new URLSearchParams(body);
      switch (url.pathname) {
        case "/.well-known/oauth-authorization-server":
          json(200, {
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            registration_endpoint: `${issuer}/register`,
            code_challenge_methods_supported: ["S256"],
            token_endpoint_auth_methods_supported: ["none"],
            authorization_response_iss_parameter_supported: true,
          });
          break;
        case "/register":
          seen.registrations += 1;
          json(201, { client_id: "c", redirect_uris: JSON.parse(body).redirect_uris });
          break;
        case "/authorize": {
          const query = url.searchParams;
          seen.authorizations.push(query.get("scope"));
          const code = randomUUID();
          codes.set(code, query);
          const back = new URL(query.get("redirect_uri"));
          back.searchParams.set("code", code);
          back.searchParams.set("state", query.get("state"));
          back.searchParams.set("iss", issuer);
          response.writeHead(302, { location: back.href }).end();
          break;
        }
        case "/token": {
          seen.grants.push(form.get("grant_type"));
          if (form.get("grant_type") === "refresh_token") {
            const known = refreshTokens.get(form.get("refresh_token"));
            refreshTokens.delete(form.get("refresh_token"));
            json(known ? 200 : 400, known ? issue(known.resource, known.scope) : { error: "invalid_grant" });
            break;
          }
          const query = codes.get(form.get("code"));
          codes.delete(form.get("code"));
          const challenge = createHash("sha256")
            .update(form.get("code_verifier") ?? "")
            .digest("base64url");
          if (query?.get("code_challenge") === challenge && query.get("resource") === form.get("resource")) {
            json(200, issue(form.get("resource"), query.get("scope")));
          } else {
            json(400, { error: "invalid_grant" });
          }
          break;
        }
        default:
          json(404, {});
      }
    });
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${String(http.address().port)}`;

  // Mounted, so that the address is known before the server is configured with it.
  const guarding = createServer();
  await new Promise((resolve) => guarding.listen(0, "127.0.0.1", resolve));
  const resource = `http://127.0.0.1:${String(guarding.address().port)}/mcp`;
  const server = new Server({ name: "guarded", version: "1" });
  server.tool("whoami", {}, (_, ctx) => ctx.auth.subject);
  server.tool("edit", { scopes: ["edit"] }, () => "edited");
  const app = server.httpApp({ auth: { resource, issuers: [issuer], jwks, requiredScopes: ["use"] } });
  guarding.on("request", (request, response) => {
    if (request.url === app.wellKnown.path) {
      app.metadata(request, response);
    } else {
      app.handler(request, response);
    }
  });
  t.after(async () => {
    await server.close();
    for (const listening of [guarding, http]) {
      listening.close();
      listening.closeAllConnections();
    }
  });
  const user = {
    redirectUri: REDIRECT,
    open: async (url) => (await fetch(url, { redirect: "manual" })).headers.get("location"),
  };
  return { resource, issuer, seen, user, token: (scope) => token(resource, scope), refreshTokens };
}

async function whoami(client) {
  return (await client.callTool("whoami", {})).content[0].text;
}

test("a user signs in once, again when a tool needs more scopes, and not for a second client", async (t) => {
  const { resource, seen, user } = await world(t);
  const oauth = new OAuth({ clientName: "a test", userAgent: user });
  const client = await Client.connect(resource, { auth: oauth });
  assert.equal(await whoami(client), "alice");
  assert.equal((await client.callTool("edit", {})).content[0].text, "edited");
  const second = await Client.connect(resource, { auth: oauth });
  assert.equal(await whoami(second), "alice");
  assert.deepEqual(seen.authorizations, ["use", "use edit"]);
  assert.equal(seen.registrations, 2, "what was registered for one scope is registered again for two");
  await client.close();
  await second.close();
});

test("a store of the host serves the next process, and expired tokens are refreshed without the user", async (t) => {
  const { resource, seen, user } = await world(t);
  const values = new Map();
  const locks = [];
  const store = () => ({
    load: async (key) => values.get(key) ?? null,
    save: async (key, value) => void values.set(key, Buffer.from(value)),
    remove: (key) => void values.delete(key),
    lock: (key) => {
      locks.push(`lock ${key}`);
      return () => locks.push(`unlock ${key}`);
    },
  });
  const connect = () =>
    Client.connect(resource, { auth: new OAuth({ clientName: "a test", userAgent: user, store: store() }) });
  await (await connect()).close();
  const key = `tokens ${resource}`;
  const kept = JSON.parse(values.get(key).toString());
  kept.tokens.expires_at = 1;
  values.set(key, Buffer.from(JSON.stringify(kept)));
  const client = await connect();
  assert.equal(await whoami(client), "alice");
  await client.close();
  assert.deepEqual(seen.grants, ["authorization_code", "refresh_token"]);
  assert.equal(seen.authorizations.length, 1);
  assert.deepEqual(locks, [`lock ${key}`, `unlock ${key}`]);
});

test("tokens in a folder are readable only by their owner", async (t) => {
  const { resource, seen, user } = await world(t);
  const folder = join(mkdtempSync(join(tmpdir(), "mcpline-")), "tokens");
  t.after(() => rmSync(join(folder, ".."), { recursive: true }));
  for (let round = 0; round < 2; round++) {
    const auth = new OAuth({ clientName: "a test", userAgent: user, store: { file: folder } });
    const client = await Client.connect(resource, { auth });
    assert.equal(await whoami(client), "alice");
    await client.close();
  }
  assert.equal(seen.authorizations.length, 1);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
});

test("a token of the host is sent unchanged, and a function is called again when a token is rejected", async (t) => {
  const { resource, token } = await world(t);
  const client = await Client.connect(resource, { auth: token("use") });
  assert.equal(await whoami(client), "alice");
  await client.close();
  const wanted = [];
  const second = await Client.connect(resource, {
    auth: (why) => {
      wanted.push(why);
      return why.refused ? { token: token("use"), expiresIn: 60_000 } : "stale";
    },
  });
  assert.equal(await whoami(second), "alice");
  await second.close();
  assert.deepEqual(wanted, [
    { server: resource, refused: false, scopes: "" },
    { server: resource, refused: true, scopes: "use" },
  ]);
});

test("a missing token is explained, with the host's message if the host failed", async (t) => {
  const { resource } = await world(t);
  const failing = async (options, reason, message) => {
    const connecting = Client.connect(resource, { auth: new OAuth({ clientName: "a test", ...options }) });
    await assert.rejects(connecting, (error) => {
      assert.ok(error instanceof AuthorizationFailedError, String(error));
      assert.equal(error.reason, reason);
      assert.match(error.message, message);
      return true;
    });
  };
  await failing({ userAgent: null }, "unattended", /no user agent/);
  const closed = () => Promise.reject(new Error("the window was closed"));
  await failing(
    { userAgent: { redirectUri: REDIRECT, open: closed } },
    "authorization_incomplete",
    /the window was closed/,
  );
  const elsewhere = () => `${REDIRECT}?code=stolen&state=guessed`;
  await failing({ userAgent: { redirectUri: REDIRECT, open: elsewhere } }, "authorization_response_mismatch", /state/);
  const store = { load: () => Promise.reject(new Error("no disk")), save() {}, remove() {} };
  await failing({ store }, "token_store_failed", /no disk/);
});

test("invalid options are rejected", async () => {
  const clientName = "a test";
  assert.throws(() => new OAuth({ clientName, clientCredentials: true, workloadIdentity: () => "x" }), UsageError);
  assert.throws(() => new OAuth({ clientName, clientNam: "typo" }), UsageError);
  const open = String;
  for (const [options, message] of [
    [{ userAgent: { redirectUri: "http://host.example/back", open } }, /host\.example/],
    [{ userAgent: { redirectUri: "com.example.app:/back", open } }, /com\.example\.app/],
    [{ userAgent: { kind: "terminal", redirectUri: "http://host.example/back" } }, /host\.example/],
    [{ clientIdMetadataUrl: "http://client.example/metadata.json" }, /must be https/],
    [{ clientIdMetadataUrl: "https://client.example" }, /must have a path/],
  ]) {
    const auth = new OAuth({ clientName, ...options });
    const refused = Client.connect("http://127.0.0.1:1/mcp", { auth });
    await assert.rejects(refused, (error) => error instanceof UsageError && message.test(error.message));
  }
  const connect = (auth) => Client.connect("http://127.0.0.1:1/mcp", { auth });
  await assert.rejects(connect(7), UsageError);
  await assert.rejects(
    connect(new OAuth({ clientName, credentials: { clientId: "c", privateKey: "no PEM" } })),
    UsageError,
  );
});
