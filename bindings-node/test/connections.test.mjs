// Connections of clients: their events, the server's process, callers and headers in memory, configuration files.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { Client, RpcError, Server, ServerExitedError, UsageError } from "mcpline";

import { makeServer } from "./client-peer.mjs";

const PROGRAM = fileURLToPath(new URL("client-program.mjs", import.meta.url));
const textOf = ({ content }) => content[0].text;

test("a handler follows the connection and the process of the server", async () => {
  const events = [];
  const client = await Client.spawn(process.execPath, [PROGRAM], { onConnection: (event) => events.push(event) });
  const first = client.pid;
  assert.equal(textOf(await client.callTool("pid")), String(first));
  let waiting;
  // A call that is not sent yet would go to the restarted server.
  await new Promise((started) => (waiting = client.callTool("waits", {}, { onProgress: started })));
  process.kill(first, "SIGKILL");
  await assert.rejects(waiting, ServerExitedError);
  assert.equal(client.pid, undefined);
  const second = Number(textOf(await client.callTool("pid")));
  assert.notEqual(second, first);
  assert.equal(client.pid, second);
  await client.close();
  assert.equal(client.pid, undefined);
  assert.deepEqual(
    events.map(({ state }) => state),
    ["connected", "lost", "retrying", "restored", "closed"],
  );
  const { error } = events[1];
  assert.ok(error instanceof ServerExitedError);
  assert.equal(error.exit, "signal: 9 (SIGKILL)");
  assert.deepEqual(
    events.filter((event) => "error" in event),
    [events[1]],
  );
});

test("a handler is called when the client gives up", async () => {
  const events = [];
  const options = { onConnection: (event) => events.push(event), reconnectAttempts: 0 };
  const client = await Client.spawn(process.execPath, [PROGRAM], options);
  let waiting;
  await new Promise((started) => (waiting = client.callTool("waits", {}, { onProgress: started })));
  process.kill(client.pid, "SIGKILL");
  await assert.rejects(waiting, ServerExitedError);
  await client.close();
  assert.deepEqual(
    events.map(({ state }) => state),
    ["connected", "lost", "given_up", "closed"],
  );
  assert.ok(events[2].error instanceof ServerExitedError);
});

test("a server in the same process has no process id", async () => {
  const states = [];
  const client = await Client.memory(makeServer(), { onConnection: async ({ state }) => states.push(state) });
  assert.equal(client.pid, undefined);
  await client.close();
  assert.deepEqual(states, ["connected", "closed"]);
});

test("a client in memory has a caller and headers", async (t) => {
  const server = new Server({ name: "s", version: "1" });
  server.tool("who", {}, (_, ctx) => `${ctx.auth?.subject} ${ctx.headers?.get("x-tenant")}`);
  server.tool("write", { scopes: ["files:write"] }, () => "written");
  server.tool("audience", {}, (_, ctx) => ctx.auth?.audience.join(" ") ?? "");
  const connected = async (options) => {
    const client = await Client.memory(server, options);
    t.after(() => client.close());
    return client;
  };
  const principal = { subject: "alice", scopes: ["files:write"], audience: ["https://a.example", "b"] };
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const alice = await connected({ principal, headers: { "X-Tenant": "acme" }, revisions: [revision] });
    assert.equal(textOf(await alice.callTool("who")), "alice acme");
    assert.equal(textOf(await alice.callTool("write")), "written");
    assert.equal(textOf(await alice.callTool("audience")), "https://a.example b");
    const bob = await connected({ principal: { subject: "bob" }, revisions: [revision] });
    assert.deepEqual(
      (await bob.listTools()).map(({ name }) => name),
      ["who", "audience"],
    );
    assert.equal(textOf(await bob.callTool("who")), "bob undefined");
    await assert.rejects(bob.callTool("write"), (error) => error instanceof RpcError && error.code === -31001);
  }
  const anonymous = await connected({ headers: [["x-tenant", "acme"]] });
  assert.equal(textOf(await anonymous.callTool("who")), "undefined acme");
  assert.equal(textOf(await anonymous.callTool("write")), "written");
  await assert.rejects(connected({ headers: { "a b": "c" } }), UsageError);
  await assert.rejects(connected({ principal: "alice" }), new UsageError("`principal` must be an object, not string"));
});

test("a configuration file has programs and URLs", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "mcpline-config-"));
  after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "mcp.json");
  const listening = await makeServer().listen();
  t.after(() => listening.close());
  process.env.MCPLINE_TEST_PROGRAM = PROGRAM;
  const servers = {
    program: {
      command: process.execPath,
      args: ["${MCPLINE_TEST_PROGRAM}"],
      cwd: directory,
      env: { PEER_SAYS: "hello" },
    },
    url: {
      type: "http",
      url: "${NOT_SET_HERE:-" + listening.url + "}",
      headers: { "X-A": "${env:MCPLINE_TEST_PROGRAM}" },
    },
  };
  writeFileSync(file, `{ /* several */ "mcpServers": ${JSON.stringify(servers)}, }`);
  const lines = [];
  const program = await Client.fromConfig(file, "program", { stderr: (line) => lines.push(line) });
  assert.equal(textOf(await program.callTool("pid")), String(program.pid));
  await program.close();
  assert.deepEqual(lines, ["hello"]);
  const url = await Client.fromConfig(pathToFileURL(file), "url");
  assert.equal(textOf(await url.callTool("echo", { text: "hi" })), "hi");
  await url.close();
  await assert.rejects(Client.fromConfig(file), /has several servers, name one of them: "program", "url"/);
  await assert.rejects(Client.fromConfig(file, "url", { exitTimeout: 1 }), /unknown option `exitTimeout`/);
  await assert.rejects(Client.fromConfig(join(directory, "none.json")), UsageError);
});
