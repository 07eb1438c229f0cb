// CA certificates that clients trust. The certificate of the server is signed by `tls/ca.pem`, which no system knows.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, Server } from "mcpline";

import { Child } from "./peer.mjs";

const file = (name) => fileURLToPath(new URL(`tls/${name}`, import.meta.url));
const CA = file("ca.pem");

/** Serves over HTTPS, and returns the URL. */
async function serve(t) {
  const server = new Server({ name: "tls", version: "1" });
  const certificate = { cert: readFileSync(file("server.pem")), key: readFileSync(file("server.key")) };
  const outer = createServer(certificate, server.handler).listen(0, "127.0.0.1");
  await once(outer, "listening");
  t.after(() => {
    outer.closeAllConnections();
    outer.close();
  });
  return `https://localhost:${outer.address().port}/mcp`;
}

test("a certificate of a private CA is trusted with tlsRoots", async (t) => {
  const url = await serve(t);
  const client = await Client.connect(url, { tlsRoots: readFileSync(CA, "utf8") });
  assert.equal(client.serverInfo.name, "tls");
  await client.close();
  await assert.rejects(Client.connect(url), { name: "ServerUnreachableError" });
});

/** Connects in a process with these variables and options, and returns the outcome. */
async function connect(url, env, options = {}) {
  const child = new Child(
    `
    import { Client } from "mcpline";
    const [url, options] = ${JSON.stringify([url, options])};
    const outcome = await Client.connect(url, options).then((client) => client.serverInfo.name, (error) => error.name);
    console.log(JSON.stringify(outcome));
    process.exit();
  `,
    { env },
  );
  const outcome = await child.receive();
  await child.ended;
  return { outcome, stderr: child.stderr };
}

test("the CA certificates of NODE_EXTRA_CA_CERTS are trusted", async (t) => {
  const url = await serve(t);
  const env = { NODE_EXTRA_CA_CERTS: CA };
  assert.equal((await connect(url, env)).outcome, "tls");
  assert.equal((await connect(url, {})).outcome, "ServerUnreachableError");
  const tlsRoots = readFileSync(file("server.pem"), "utf8");
  assert.equal((await connect(url, env, { tlsRoots })).outcome, "tls");
  assert.equal((await connect(url, env, { tlsRoots, onlyTheseRoots: true })).outcome, "ServerUnreachableError");
});

test("a file of NODE_EXTRA_CA_CERTS that cannot be read is a warning", async (t) => {
  const url = await serve(t);
  const { outcome, stderr } = await connect(url, { NODE_EXTRA_CA_CERTS: file("missing.pem") });
  assert.equal(outcome, "ServerUnreachableError");
  assert.match(stderr, /McplineWarning: NODE_EXTRA_CA_CERTS is ignored: .*missing\.pem/);
});
