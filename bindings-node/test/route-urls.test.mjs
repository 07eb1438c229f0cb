// The URLs of requests to routes: their scheme is that of the connection, as far as it is known.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createSecureServer } from "node:http2";
import https from "node:https";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import fastify from "fastify";
import { Server } from "mcpline";

const file = (name) => fileURLToPath(new URL(`tls/${name}`, import.meta.url));
const [cert, key, ca] = ["server.pem", "server.key", "ca.pem"].map((name) => readFileSync(file(name), "utf8"));

/** A server with a route that returns the URL of its request. */
function make(t) {
  const server = new Server({ name: "urls", version: "1", settings: { startupMessage: false } });
  server.route("/url", (request) => request.url);
  t.after(() => server.close());
  return server;
}

/** Starts an outer server, and returns its host. */
async function hostOf(t, outer) {
  outer.listen(0, "127.0.0.1");
  await once(outer, "listening");
  t.after(() => {
    outer.closeAllConnections?.();
    outer.close();
  });
  return `localhost:${outer.address().port}`;
}

/** Requests a URL over TLS, and returns the text. */
async function secureText(url) {
  const [response] = await once(https.get(url, { ca, agent: false }), "response");
  return new Response(response).text();
}

const textAt = async (url, options) => (await fetch(url, options)).text();

test("the URL of a request has the scheme of the built-in server", async (t) => {
  const server = make(t);
  const secure = await server.listen({ tls: { certificate: cert, key } });
  const url = `https://localhost:${secure.port}/url?a=b`;
  assert.equal(await secureText(url), url);
  const plain = await server.listen();
  const plainUrl = `http://localhost:${plain.port}/url`;
  assert.equal(await textAt(plainUrl), plainUrl);
  await secure.close();
  assert.equal(await textAt(plainUrl), plainUrl);
});

test("the URL of a request has the scheme of the outer server", async (t) => {
  const server = make(t);
  const plain = await hostOf(t, createServer(server.handler));
  assert.equal(await textAt(`http://${plain}/url`), `http://${plain}/url`);
  const secure = await hostOf(t, https.createServer({ cert, key }, server.handler));
  assert.equal(await secureText(`https://${secure}/url`), `https://${secure}/url`);
  const http2 = await hostOf(t, createSecureServer({ cert, key }, server.handler));
  const session = connect(`https://${http2}`, { ca });
  t.after(() => session.close());
  const stream = session.request({ ":path": "/url" }).setEncoding("utf8");
  let text = "";
  for await (const piece of stream) {
    text += piece;
  }
  assert.equal(text, `https://${http2}/url`);
});

test("the URL of a request has the scheme of the request that is passed to fetch", async (t) => {
  const { fetch } = make(t);
  for (const url of ["http://localhost/url", "https://localhost/url"]) {
    assert.equal(await (await fetch(new Request(url))).text(), url);
  }
});

test("the URL of a request has the scheme that frameworks know from trusted proxies", async (t) => {
  const server = make(t);
  for (const [trustProxy, scheme] of [
    [true, "https"],
    [false, "http"],
  ]) {
    const app = fastify({ trustProxy });
    app.all("/*", (request, reply) => server.handler(request, reply));
    await app.listen({ port: 0, host: "127.0.0.1" });
    t.after(() => app.close());
    const host = `127.0.0.1:${app.server.address().port}`;
    const headers = { "x-forwarded-proto": "https" };
    assert.equal(await textAt(`http://${host}/url`, { headers }), `${scheme}://${host}/url`);
  }
});
