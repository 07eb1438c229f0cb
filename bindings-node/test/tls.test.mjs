// CA certificates that clients trust. The certificate of the server is signed by `tls/ca.pem`, which no system knows.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import https, { createServer } from "node:https";
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
  assert.equal((await connect(url, env, { tlsRoots, onlyTlsRoots: true })).outcome, "ServerUnreachableError");
});

test("a file of NODE_EXTRA_CA_CERTS that cannot be read is a warning", async (t) => {
  const url = await serve(t);
  const { outcome, stderr } = await connect(url, { NODE_EXTRA_CA_CERTS: file("missing.pem") });
  assert.equal(outcome, "ServerUnreachableError");
  assert.match(stderr, /McplineWarning: NODE_EXTRA_CA_CERTS is ignored: .*missing\.pem/);
});

const get = (url, options) =>
  new Promise((resolve, reject) => {
    https
      .get(url, { agent: false, ...options }, (response) => {
        response.setEncoding("utf8");
        let text = "";
        response.on("data", (piece) => (text += piece));
        response.on("end", () => resolve([response.statusCode, text]));
      })
      .on("error", reject);
  });

for (const [form, read] of Object.entries({
  files: (name) => file(name),
  text: (name) => readFileSync(file(name), "utf8"),
  bytes: (name) => readFileSync(file(name)),
})) {
  test(`listen serves https with a certificate and a key as ${form}`, async () => {
    const server = new Server({ name: "tls", version: "1", settings: { startupMessage: false } });
    const listening = await server.listen({ tls: { certificate: read("server.pem"), key: read("server.key") } });
    assert.equal(listening.url, `https://127.0.0.1:${listening.port}/mcp`);
    const ca = readFileSync(CA, "utf8");
    for (const version of ["TLSv1.2", "TLSv1.3"]) {
      const options = { ca, minVersion: version, maxVersion: version };
      assert.deepEqual(await get(`https://localhost:${listening.port}/health`, options), [200, "ok"]);
    }
    await assert.rejects(get(`https://localhost:${listening.port}/health`), /certificate/);
    const client = await Client.connect(listening.url, { tlsRoots: ca });
    assert.equal(client.serverInfo.name, "tls");
    await client.close();
    const plain = await fetch(`http://127.0.0.1:${listening.port}/mcp`);
    assert.equal(plain.status, 400);
    assert.match(await plain.text(), /https:/);
    await listening.close();
  });
}

test("a certificate or key that cannot be used is refused", async () => {
  const server = new Server({ name: "tls", version: "1" });
  const [certificate, key] = [file("server.pem"), file("server.key")];
  const refusals = [
    [{ certificate: file("missing.pem"), key }, /`certificate`: cannot read .*missing\.pem: No such file/],
    [{ certificate, key: certificate }, /`key`: .*server\.pem contains no PEM private key/],
    [{ certificate: CA, key }, /`key`: .*server\.key is not the private key of the certificate/],
    [{ certificate, key: new Uint8Array(3) }, /`tls\.key`: the bytes contain no PEM/],
    [{ certificate, key: 1 }, /`tls\.key` must be a path, or PEM as text or bytes, not number/],
    [{ cert: certificate, key }, /unknown option `cert`/],
  ];
  for (const [tls, message] of refusals) {
    await assert.rejects(server.listen({ tls }), { kind: "usage_error", message });
  }
});
