// Servers behind authorization: accepted tokens, scopes, and the caller that a handler sees.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createSign, generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, Server, UsageError } from "mcpline";

const ISSUER = "https://auth.example.com";
const RESOURCE = "https://mcp.example.com/tools/mcp";
const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwks = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256", use: "sig" }] };
const auth = {
  resource: RESOURCE,
  issuers: [ISSUER],
  jwks,
  requiredScopes: ["use"],
  impliedScopes: { admin: ["use", "edit"] },
  clockSkew: 0,
};

function token(scope, more = {}) {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: ISSUER, aud: RESOURCE, sub: "alice", client_id: "host", exp: now + 600, scope, ...more };
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "ES256", kid: "k1", typ: "at+jwt" })}.${part(claims)}`;
  const signature = createSign("sha256").update(text).sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

function guarded() {
  const server = new Server({ name: "guarded", version: "1" });
  server.tool("whoami", {}, (_, ctx) => JSON.stringify(ctx.auth));
  server.tool("edit", { scopes: ["edit"] }, () => "edited");
  server.resource("note://private", { name: "private", scopes: ["edit"] }, () => "text");
  server.resource("note://{id}", { name: "notes", scopes: ["edit"] }, () => "text");
  server.prompt("draft", { scopes: ["edit"] }, () => "draft");
  server.onRequest("acme/edit", { scopes: ["edit"] }, (_, ctx) => ({ subject: ctx.auth.subject }));
  return server;
}

const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** Sends a request of 2026-07-28. */
async function ask(url, bearer, method, params = {}) {
  const name = params.name ?? params.uri;
  const response = await fetch(url, {
    method: "POST",
    headers: {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(name === undefined ? {} : { "mcp-name": name }),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } }),
  });
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate"),
    body: await response.json().catch(() => undefined),
  };
}

async function listening(t, settings = {}) {
  const server = guarded();
  const { url } = await server.listen({ auth, ...settings });
  t.after(() => server.close());
  return url;
}

test("a request without a valid token is answered with the required scopes and the authorization server", async (t) => {
  const url = await listening(t);
  const anonymous = await ask(url, undefined, "tools/list");
  assert.equal(anonymous.status, 401);
  const place = "https://mcp.example.com/.well-known/oauth-protected-resource/tools/mcp";
  assert.match(anonymous.challenge, new RegExp(`resource_metadata="${place}"`));
  assert.match(anonymous.challenge, /scope="use"/);
  assert.doesNotMatch(anonymous.challenge, /error=/);
  const past = token("use", { exp: 1 });
  for (const bad of [
    "nonsense",
    past,
    token("use", { aud: "https://other.example.com" }),
    token("use", { iss: "x" }),
  ]) {
    const refused = await ask(url, bad, "tools/list");
    assert.equal(refused.status, 401);
    assert.match(refused.challenge, /error="invalid_token"/);
  }
  const document = await fetch(new URL("/.well-known/oauth-protected-resource/tools/mcp", url));
  assert.equal(document.headers.get("access-control-allow-origin"), "*");
  const { resource, authorization_servers: servers, scopes_supported: scopes } = await document.json();
  assert.deepEqual([resource, servers, scopes], [RESOURCE, [ISSUER], ["use"]]);
});

test("a handler sees its caller but not the token", async (t) => {
  const url = await listening(t);
  const { body } = await ask(url, token("use"), "tools/call", { name: "whoami", arguments: {} });
  const { claims, ...caller } = JSON.parse(body.result.content[0].text);
  const expiresAt = new Date(claims.exp * 1000).toISOString();
  assert.deepEqual(caller, {
    issuer: ISSUER,
    subject: "alice",
    clientId: "host",
    audience: [RESOURCE],
    scopes: ["use"],
    expiresAt,
  });
});

test("a handler requires scopes that depend on the arguments", async (t) => {
  const server = guarded();
  server.tool("open", { input: { type: "object", properties: { door: { type: "string" } } } }, ({ door }, ctx) => {
    ctx.requireScopes("use", `doors:${door}`);
    return "open";
  });
  server.tool("wrong", {}, (_, ctx) => ctx.requireScopes(["use"]));
  server.route("/door", { scopes: ["use"] }, (_, ctx) => {
    ctx.requireScopes("doors:back");
    return new Response("open");
  });
  const { url } = await server.listen({ auth });
  t.after(() => server.close());
  const params = { name: "open", arguments: { door: "back" } };
  const refused = await ask(url, token("use"), "tools/call", params);
  assert.equal(refused.status, 403);
  assert.match(refused.challenge, /error="insufficient_scope"/);
  assert.match(refused.challenge, /scope="[^"]*\bdoors:back\b/);
  const allowed = await ask(url, token("use doors:back"), "tools/call", params);
  assert.equal(allowed.body.result.content[0].text, "open");
  const { body } = await ask(url, token("use"), "tools/call", { name: "wrong", arguments: {} });
  assert.equal(body.result.isError, true, JSON.stringify(body));
  for (const [scope, status] of [
    ["use", 403],
    ["use doors:back", 200],
  ]) {
    const door = new URL("/door", url);
    const response = await fetch(door, { headers: { authorization: `Bearer ${token(scope)}` } });
    assert.equal(response.status, status, await response.text());
  }
  const anonymous = await Client.memory(server);
  t.after(() => anonymous.close());
  const opened = await anonymous.callTool("open", { door: "back" });
  assert.equal(opened.content[0].text, "open");
});

test("features without the required scopes are hidden, and calling them names the missing scopes", async (t) => {
  const url = await listening(t);
  for (const [scope, seen] of [
    ["use", 0],
    ["use edit", 1],
    ["admin", 1],
  ]) {
    const bearer = token(scope);
    const lists = [
      ["tools/list", "tools", seen + 1],
      ["resources/list", "resources", seen],
      ["resources/templates/list", "resourceTemplates", seen],
      ["prompts/list", "prompts", seen],
    ];
    for (const [method, member, count] of lists) {
      const { body } = await ask(url, bearer, method);
      assert.equal(body.result[member].length, count, `${method} with ${scope}`);
      assert.equal(body.result.cacheScope, "private");
    }
    for (const [method, params] of [
      ["tools/call", { name: "edit", arguments: {} }],
      ["resources/read", { uri: "note://private" }],
      ["resources/read", { uri: "note://7" }],
      ["prompts/get", { name: "draft" }],
      ["acme/edit", {}],
    ]) {
      const { status, challenge } = await ask(url, bearer, method, params);
      assert.equal(status, seen === 1 ? 200 : 403, `${method} with ${scope}`);
      if (status === 403) {
        assert.match(challenge, /error="insufficient_scope"/);
        assert.match(challenge, /scope="[^"]*\bedit\b/);
      }
    }
  }
});

test("a program mounted under a prefix serves the metadata at the path that they name", async (t) => {
  const server = guarded();
  const app = server.httpApp({ auth });
  assert.equal(app.wellKnown.path, "/.well-known/oauth-protected-resource/tools/mcp");
  const http = createServer((request, response) => {
    if (request.url === app.wellKnown.path) {
      app.metadata(request, response);
    } else {
      app.handler(request, response);
    }
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    await server.close();
    http.close();
  });
  const origin = `http://127.0.0.1:${String(http.address().port)}`;
  assert.equal((await ask(`${origin}/tools/mcp`, undefined, "tools/list")).status, 401);
  assert.equal((await ask(`${origin}/tools/mcp`, token("use"), "tools/list")).status, 200);
  const document = await (await fetch(origin + app.wellKnown.path)).json();
  assert.deepEqual(document, app.wellKnown.document);
  assert.deepEqual(await app.metadataResponse().json(), document);
  const preflight = { method: "OPTIONS", headers: { "access-control-request-method": "GET" } };
  for (const response of [
    await fetch(origin + app.wellKnown.path, preflight),
    app.metadataResponse(new Request(origin + app.wellKnown.path, preflight)),
  ]) {
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
    assert.equal(response.headers.get("access-control-allow-methods"), "GET");
    assert.equal(response.headers.get("access-control-allow-headers"), "*");
  }
  const head = await fetch(origin + app.wellKnown.path, { method: "HEAD" });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
  const deleted = await fetch(origin + app.wellKnown.path, { method: "DELETE" });
  assert.deepEqual([deleted.status, deleted.headers.get("allow")], [405, "GET, HEAD, OPTIONS"]);

  const refused = await app.fetch(
    new Request(`${origin}/tools/mcp`, {
      method: "POST",
      headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    }),
  );
  assert.equal(refused.status, 401);
  assert.match(refused.headers.get("www-authenticate"), /^Bearer /);
});

test("clients of 2025-03-26 find the issuer through the origin of the resource", async (t) => {
  const publisher = createServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ issuer, authorization_endpoint: `${issuer}/login`, token_endpoint: `${issuer}/token` }),
    );
  });
  await new Promise((resolve) => publisher.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${String(publisher.address().port)}`;
  const server = guarded();
  const app = server.httpApp({ auth: { ...auth, issuers: [issuer] } });
  const http = createServer(app.handler);
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    await server.close();
    http.close();
    publisher.close();
  });
  const origin = `http://127.0.0.1:${String(http.address().port)}`;
  for (const get of [(request) => fetch(request), (request) => app.fetch(request)]) {
    const document = await get(new Request(`${origin}/.well-known/oauth-authorization-server`));
    assert.equal((await document.json()).issuer, issuer);
    assert.equal(document.headers.get("access-control-allow-origin"), "*");
    const sentOn = await get(new Request(`${origin}/authorize?state=s`, { redirect: "manual" }));
    assert.equal(sentOn.status, 302);
    assert.ok(sentOn.headers.get("location").startsWith(`${issuer}/login?state=s&resource=https`));
    const token = await get(new Request(`${origin}/token`, { method: "POST", body: "code=c", redirect: "manual" }));
    assert.equal(token.status, 307);
    assert.equal(token.headers.get("location"), `${issuer}/token`);
  }
});

test("a server listens on the loopback address by default", async (t) => {
  const server = guarded();
  const { port } = await server.listen();
  t.after(() => server.close());
  const connects = (host) =>
    new Promise((resolve) => {
      const socket = connect({ host, port }, () => {
        socket.destroy();
        resolve(true);
      });
      socket.on("error", () => resolve(false));
    });
  assert.equal(await connects("127.0.0.1"), true);
  // Another address of this machine, at which a server that listens on all addresses would respond.
  assert.equal(await connects("127.0.0.2"), false);
});

test("a function can verify tokens instead of the settings", async (t) => {
  const tokens = [];
  const verify = async (bearer) => {
    tokens.push(bearer);
    if (bearer === "broken") {
      throw new Error("no database");
    }
    const expiresAt = new Date(Date.now() + 60_000);
    return bearer === "sesame" ? { subject: "alice", scopes: ["use"], expiresAt, claims: { team: "red" } } : null;
  };
  const own = { resource: RESOURCE, authorizationServers: [ISSUER], requiredScopes: ["use"], verify };
  const warnings = [];
  const onWarning = ({ message }) => warnings.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const url = await listening(t, { auth: own });
  const { body } = await ask(url, "sesame", "tools/call", { name: "whoami", arguments: {} });
  const { subject, claims, clientId } = JSON.parse(body.result.content[0].text);
  assert.deepEqual([subject, claims, clientId], ["alice", { team: "red" }, undefined]);
  const refused = await ask(url, "open", "tools/list");
  assert.equal(refused.status, 401);
  assert.match(refused.challenge, /error="invalid_token"/);
  assert.equal((await ask(url, "broken", "tools/list")).status, 503);
  assert.match(warnings.join(), /no database/);
  assert.deepEqual(new Set(tokens), new Set(["sesame", "open", "broken"]));
});

test("keys of one's own need no authorization server", async (t) => {
  const verify = (key) => (key === "sesame" ? { subject: "alice" } : null);
  const server = new Server({ name: "keys", version: "1" });
  server.tool("whoami", {}, (_, ctx) => String(ctx.auth.subject));
  t.after(() => server.close());
  assert.equal(server.httpApp({ auth: { verify } }).wellKnown, undefined);
  const { url } = await server.listen({ auth: { verify } });
  const { body } = await ask(url, "sesame", "tools/call", { name: "whoami", arguments: {} });
  assert.equal(body.result.content[0].text, "alice");
  const refused = await ask(url, "open", "tools/list");
  assert.equal(refused.status, 401);
  assert.doesNotMatch(refused.challenge, /resource_metadata/);
  assert.throws(() => server.httpApp({ auth: { issuers: [ISSUER] } }), /name the resource/);
});

test("without authorization there is no caller, and settings that could not work are refused", async (t) => {
  const server = new Server({ name: "open", version: "1" });
  server.tool("whoami", {}, (_, ctx) => String(ctx.auth));
  const app = server.httpApp();
  t.after(() => server.close());
  assert.equal(app.wellKnown, undefined);
  assert.equal(app.metadataResponse().status, 404);
  const { url } = await server.listen();
  const { body } = await ask(url, undefined, "tools/call", { name: "whoami", arguments: {} });
  assert.equal(body.result.content[0].text, "undefined");
  assert.throws(() => server.httpApp({ auth: { resource: "no URL", issuers: [ISSUER] } }), UsageError);
  assert.throws(() => server.httpApp({ auth: { ...auth, algorithms: ["none"] } }), UsageError);
  assert.throws(() => server.httpApp({ auth: { ...auth, clockSkew: "long" } }), UsageError);
});

test("rejected settings do not keep their verifier alive", () => {
  // In a separate process, which can trigger garbage collection.
  const program = `
    import assert from "node:assert/strict";
    import { Server } from "mcpline";
    const server = new Server({ name: "served", version: "1.0.0" });
    const auth = () => ({ resource: "no URL", authorizationServers: ["https://issuer.example"], verify: () => null });
    const apps = () => {
      const given = auth();
      assert.throws(() => server.httpApp({ auth: given }), { name: "UsageError" });
      return new WeakRef(given.verify);
    };
    const listens = async () => {
      const given = auth();
      await assert.rejects(server.listen({ auth: given }), { name: "UsageError" });
      return new WeakRef(given.verify);
    };
    const verifiers = [apps(), await listens()];
    await new Promise((resolve) => setImmediate(resolve));
    gc();
    assert.deepEqual(verifiers.map((verifier) => verifier.deref()), [undefined, undefined]);
    console.log("let go of");
  `;
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const options = ["--expose-gc", "--input-type=module", "--eval", program];
  const { status, stdout, stderr } = spawnSync(process.execPath, options, { cwd, encoding: "utf8", timeout: 60_000 });
  assert.deepEqual({ status, stdout }, { status: 0, stdout: "let go of\n" }, stderr);
});
