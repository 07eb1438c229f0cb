// A mounted server serves the paths of its options and no others, relative to the prefix of its mount.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";

import { Server } from "../dist/index.mjs";

const server = new Server({ name: "mounted", version: "1" });
const listening = [];
after(async () => {
  await server.close();
  listening.forEach((outer) => outer.close());
});

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};
const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };

async function origin(listener) {
  const outer = createServer(listener).listen(0, "127.0.0.1");
  listening.push(outer);
  await once(outer, "listening");
  return `http://127.0.0.1:${outer.address().port}`;
}

async function expect(at, served, others) {
  for (const [paths, status] of [
    [served, 200],
    [others, 404],
  ]) {
    for (const path of paths) {
      const response = await fetch(at + path, { method: "POST", headers, body: JSON.stringify(initialize) });
      await response.text();
      assert.equal(response.status, status, path);
    }
  }
}

test("handler: only the configured paths are served", async () => {
  await expect(
    await origin(server.handler),
    ["/mcp", "/mcp/", "/mcp?a=b"],
    ["/", "/admin", "/admin/mcp", "/mcp/admin"],
  );
  const own = server.httpApp({ path: "/only/here" });
  await expect(await origin(own.handler), ["/only/here"], ["/", "/admin", "/mcp", "/here"]);
});

// What the routers of Express (`baseUrl`, `route`) and Connect (`originalUrl` alone) do to a request.
for (const [router, change] of [
  ["Express", (request) => ({ baseUrl: "/tools", originalUrl: request.url })],
  ["Connect", (request) => ({ originalUrl: request.url })],
]) {
  test(`handler: paths are relative to the prefix that ${router} has removed`, async () => {
    const at = await origin((request, response) => {
      Object.assign(request, change(request));
      const rest = request.url.slice("/tools".length);
      request.url = rest.startsWith("/") ? rest : `/${rest}`;
      server.handler(request, response);
    });
    await expect(at, ["/tools", "/tools/", "/tools?a=b", "/tools/mcp"], ["/tools/admin", "/tools/x/mcp"]);
  });
}

test("handler: a route of Express for exactly one path is an endpoint", async () => {
  const routed = (path) => (request, response) => {
    Object.assign(request, { baseUrl: "", originalUrl: request.url, route: { path } });
    server.handler(request, response);
  };
  await expect(await origin(routed("/api/tools")), ["/api/tools", "/api/tools?a=b", "/mcp"], ["/api"]);
  await expect(await origin(routed(["/a", "/b"])), ["/a", "/b"], ["/c"]);
  await expect(await origin(routed("/{*any}")), ["/mcp"], ["/api/tools"]);
});

test("fetch: only the configured paths are served", async () => {
  const status = async (app, path) => {
    const request = new Request(`http://localhost${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(initialize),
    });
    return (await app.fetch(request)).status;
  };
  for (const [app, served, others] of [
    [server, ["/mcp", "/mcp/"], ["/", "/admin", "/api/mcp"]],
    [server.httpApp({ path: "/api/mcp" }), ["/api/mcp"], ["/mcp", "/api"]],
    [server.httpApp({ path: "/" }), ["/"], ["/mcp"]],
  ]) {
    for (const path of served) {
      assert.equal(await status(app, path), 200, path);
    }
    for (const path of others) {
      assert.equal(await status(app, path), 404, path);
    }
  }
});

test("handler and fetch answer the preflight requests of allowed origins", async () => {
  const page = "https://app.example.com";
  const app = server.httpApp({ allowedOrigins: [page] });
  const at = await origin(app.handler);
  const asked = { origin: page, "access-control-request-method": "POST", "access-control-request-headers": "x-a" };
  const preflight = { method: "OPTIONS", headers: asked };
  // `fetch` of Node is no browser: it sends these headers, and no preflight of its own.
  for (const response of [
    await fetch(`${at}/mcp`, preflight),
    await app.fetch(new Request("http://localhost/mcp", preflight)),
  ]) {
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("access-control-allow-origin"), page);
    assert.equal(response.headers.get("access-control-allow-headers"), "x-a");
    assert.equal(response.headers.get("connection"), response.url === "" ? null : "keep-alive");
    assert.ok(variesByOrigin(response));
  }
  const other = { ...asked, origin: "https://other.example.com" };
  const refused = await fetch(`${at}/mcp`, { method: "OPTIONS", headers: other });
  assert.equal(refused.status, 403);
  assert.equal(refused.headers.get("access-control-allow-origin"), null);
  assert.ok(variesByOrigin(refused));
});

test("responses depend on the origin only if there are allowed origins", async () => {
  const page = "https://app.example.com";
  const app = server.httpApp({ allowedOrigins: [page] });
  const at = await origin(app.handler);
  const body = JSON.stringify(initialize);
  for (const [from, status, allowed] of [
    [{ origin: page }, 200, page],
    [{ origin: "https://other.example.com" }, 403, null],
    // A cache must not give this response to a page either.
    [{}, 200, null],
  ]) {
    const post = { method: "POST", headers: { ...headers, ...from }, body };
    for (const response of [
      await fetch(`${at}/mcp`, post),
      await app.fetch(new Request("http://localhost/mcp", post)),
    ]) {
      assert.equal(response.status, status);
      assert.equal(response.headers.get("access-control-allow-origin"), allowed);
      assert.ok(variesByOrigin(response));
      await response.text();
    }
  }
  const plain = await origin(server.handler);
  const response = await fetch(`${plain}/mcp`, { method: "POST", headers, body });
  assert.equal(response.status, 200);
  assert.equal(variesByOrigin(response), false);
  await response.text();
});

function variesByOrigin(response) {
  const names = (response.headers.get("vary") ?? "").toLowerCase().split(",");
  return names.some((name) => name.trim() === "origin");
}
