// Servers on Unix sockets.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Client, Server, TransportError, UsageError } from "mcpline";

import { Child } from "./peer.mjs";

const folder = mkdtempSync(join(tmpdir(), "mcpline-unix-"));
after(() => rmSync(folder, { recursive: true }));
let number = 0;
const newPath = () => join(folder, `${String(number++)}.sock`);
const textOf = ({ content }) => content[0].text;

const makeServer = (settings = { startupMessage: false }) => {
  const server = new Server({ name: "sockets", version: "1.0.0", settings });
  server.tool("hello", {}, () => "hello");
  return server;
};

test("clients of every revision are served at once", async () => {
  const path = newPath();
  const server = makeServer();
  const listening = await server.listenUnix(path);
  assert.equal(listening.path, path);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
  const clients = await Promise.all(revisions.map((revision) => Client.socket(path, { revisions: [revision] })));
  assert.deepEqual(
    clients.map(({ protocolVersion }) => protocolVersion),
    revisions,
  );
  const results = await Promise.all(clients.map((client) => client.callTool("hello")));
  assert.deepEqual(
    results.map(textOf),
    revisions.map(() => "hello"),
  );
  assert.equal(server.stats().connections, revisions.length);
  await listening.close();
  await listening.closed;
  assert.ok(!existsSync(path));
  await Promise.all(clients.map((client) => client.close()));
});

test("a signal ends the process with status 0 and removes the socket", async () => {
  const path = newPath();
  const child = new Child(`
    import { Server } from "mcpline";
    const server = new Server({ name: "sockets", version: "1.0.0" });
    server.tool("hello", {}, () => "hello");
    const { closed } = await server.closeOnSignals().listenUnix(${JSON.stringify(path)});
    console.log("ready");
    await closed;
  `);
  assert.equal(await child.line(), "ready");
  const client = await Client.socket(path);
  assert.equal(textOf(await client.callTool("hello")), "hello");
  child.process.kill("SIGTERM");
  await child.ended;
  assert.equal(child.process.exitCode, 0);
  assert.ok(!existsSync(path));
  assert.ok(child.stderr.startsWith(`sockets 1.0.0 serves MCP at unix:${path} (`), child.stderr);
  await client.close();
});

test("the mode of the socket and the number of connections can be set", async () => {
  const path = newPath();
  const server = makeServer();
  await server.listenUnix(path, { mode: 0o660, maxConnections: 1 });
  assert.equal(statSync(path).mode & 0o777, 0o660);
  const client = await Client.socket(path);
  await assert.rejects(Client.socket(path));
  assert.equal(textOf(await client.callTool("hello")), "hello");
  await client.close();
  await server.close();
});

test("a socket in use and another file are refused and kept", async () => {
  const path = newPath();
  const server = makeServer();
  await server.listenUnix(path);
  await assert.rejects(makeServer().listenUnix(path), (error) => {
    assert.ok(error instanceof TransportError);
    assert.ok(error.message.startsWith(`${path} is in use by another server`), error.message);
    return true;
  });
  await server.close();
  writeFileSync(path, "kept");
  await assert.rejects(makeServer().listenUnix(path), /not a socket/);
  assert.equal(readFileSync(path, "utf8"), "kept");
});

test("paths and settings are checked", async () => {
  const path = newPath();
  for (const [place, settings, expected] of [
    [`/tmp/${"n".repeat(120)}`, {}, /`path`: .* 107/],
    ["\0name", {}, /abstract/],
    [7, {}, /`path` must be a string/],
    [path, { mode: 660 }, /`mode`: 660 is not a file mode/],
    [path, { mode: 0o400 }, /`mode`: 0o400 .*own user/],
    [path, { maxConnections: 0 }, /`maxConnections`: 0/],
    [path, { modes: 0o600 }, /unknown option `modes`; did you mean `mode`\?/],
    [path, { maxConnections: "many" }, /maxConnections/],
  ]) {
    await assert.rejects(
      async () => makeServer().listenUnix(place, settings),
      (error) => error instanceof UsageError && expected.test(error.message),
      JSON.stringify([place, settings]),
    );
  }
  assert.ok(!existsSync(path));
});
