// `onRequestEnd` of servers and clients: one record for each request.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { test } from "node:test";

import { Client, Server, ToolError, toolPolicy } from "mcpline";

import { called } from "./peer.mjs";

/** Waits until there are this many records. Fails after a minute with those that there are. */
async function until(records, count) {
  for (const end = Date.now() + 60_000; records.length < count;) {
    assert.ok(Date.now() < end, JSON.stringify(records));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function recorded() {
  const records = [];
  const server = new Server({ name: "recorded", version: "1", onRequestEnd: (record) => records.push(record) });
  server.tool("ok", {}, () => "done");
  server.tool("fails", {}, () => {
    throw new ToolError("no");
  });
  server.tool("hangs", {}, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)));
  return { records, server };
}

test("every request is recorded with its outcome, duration and client", async () => {
  const { records, server } = recorded();
  const client = await Client.memory(server, { name: "tester", revisions: ["2025-11-25"] });
  await client.callTool("ok");
  await client.callTool("fails");
  await assert.rejects(client.callTool("missing"));
  const controller = new AbortController();
  const hanging = client.callTool("hangs", {}, { signal: controller.signal });
  setTimeout(() => controller.abort(), 20);
  await assert.rejects(hanging);
  await until(records, 5);
  await client.close();
  const seen = records.map(({ method, name, outcome, code }) => [method, name, outcome, code]);
  assert.deepEqual(seen, [
    ["initialize", "", "ok", undefined],
    ["tools/call", "ok", "ok", undefined],
    ["tools/call", "fails", "tool_error", undefined],
    ["tools/call", "missing", "error", -32602],
    ["tools/call", "hangs", "cancelled", undefined],
  ]);
  assert.ok(records.every(({ duration }) => duration >= 0 && duration < 60_000));
  assert.ok(records.every(({ client: name, session }) => name === "tester" && session === undefined));
});

test("records have the caller and the trace", async () => {
  const { records, server } = recorded();
  const principal = { issuer: "https://issuer.example", subject: "alice", clientId: "app" };
  const client = await Client.memory(server, { principal, revisions: ["2025-11-25"] });
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  await client.callTool("ok", {}, { meta: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` } });
  await until(records, 2);
  await client.close();
  const seen = records.map(({ issuer, subject, clientId, traceId: trace }) => [issuer, subject, clientId, trace]);
  assert.deepEqual(seen, [
    ["https://issuer.example", "alice", "app", undefined],
    ["https://issuer.example", "alice", "app", traceId],
  ]);
  assert.ok(!("number" in records[0]));
});

test("requests of a mounted server are recorded, in the context in which the server was created", async () => {
  const storage = new AsyncLocalStorage();
  const seen = [];
  const server = storage.run("created", () => {
    const onRequestEnd = ({ method, client }) => seen.push([method, client, storage.getStore()]);
    return new Server({ name: "recorded", version: "1", onRequestEnd });
  });
  server.tool("ok", {}, () => "done");
  await storage.run("called", () => called(server.fetch, "ok"));
  await until(seen, 1);
  assert.deepEqual(seen, [["tools/call", "peer", "created"]]);
});

test("what onRequestEnd throws is a warning", async () => {
  const onRequestEnd = () => {
    throw new Error("log is full");
  };
  const server = new Server({ name: "recorded", version: "1", onRequestEnd });
  server.tool("ok", {}, () => "done");
  const warned = once(process, "warning");
  await called(server.fetch, "ok");
  const [warning] = await warned;
  assert.match(warning.message, /`onRequestEnd` failed for tools\/call: .*log is full/);
});

test("onRequestEnd must be a function", () => {
  const make = () => new Server({ name: "recorded", version: "1", onRequestEnd: console });
  assert.throws(make, { kind: "usage_error", message: /`onRequestEnd` of the server must be a function, not object/ });
});

/** Options of a client that keeps the records of its requests. */
function recording(revision) {
  const records = [];
  return { records, options: { revisions: [revision], onRequestEnd: (record) => records.push(record) } };
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`every request of a client is recorded with its outcome (${revision})`, async () => {
    const { server } = recorded();
    server.tool("asks", {}, async (_, ctx) => `${(await ctx.listRoots()).length} roots`);
    const { records, options } = recording(revision);
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const client = await Client.memory(server, {
      ...options,
      roots: ["/tmp"],
      middleware: [toolPolicy({ denied: ["denied"] })],
    });
    await client.callTool("ok", {}, { meta: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` } });
    await client.callTool("fails");
    await assert.rejects(client.callTool("missing"));
    await assert.rejects(client.callTool("denied"));
    await assert.rejects(client.callTool("hangs", {}, { timeout: 20 }));
    await client.callTool("asks");
    const controller = new AbortController();
    // A call that is given up before the client has begun it has no record.
    server.tool("begins", {}, (_, ctx) => {
      controller.abort();
      return new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    });
    await assert.rejects(client.callTool("begins", {}, { signal: controller.signal }));
    await until(records, 8);
    await client.close();
    const seen = records.map((record) => [record.direction, record.method, record.name, record.outcome]);
    assert.deepEqual(seen, [
      ["sent", "tools/call", "ok", "ok"],
      ["sent", "tools/call", "fails", "tool_error"],
      ["sent", "tools/call", "missing", "error"],
      ["sent", "tools/call", "denied", "error"],
      ["sent", "tools/call", "hangs", "error"],
      ["received", "roots/list", "", "ok"],
      ["sent", "tools/call", "asks", "ok"],
      ["sent", "tools/call", "begins", "cancelled"],
    ]);
    const errors = records.slice(2, 5).map(({ errorKind, code }) => [errorKind, code]);
    const [rpc, refused, timedOut] = ["rpc_error", "tool_call_refused", "request_timed_out"];
    assert.deepEqual(errors, [
      [rpc, -32602],
      [refused, undefined],
      [timedOut, undefined],
    ]);
    assert.ok(records.every(({ duration }) => duration >= 0 && duration < 60_000));
    assert.ok(records.every(({ server: name, address }) => name === "recorded" && address === undefined));
    assert.equal(records[0].traceId, traceId);
    assert.equal(records[1].traceId, undefined);
    assert.equal(records[0].errorKind, undefined);
  });
}

test("records of a client's requests come in the context in which it was created, and what their function throws is a warning", async () => {
  const storage = new AsyncLocalStorage();
  const { server } = recorded();
  let seen;
  const onRequestEnd = () => {
    seen = storage.getStore();
    throw new Error("log is full");
  };
  const client = await storage.run("created", () => Client.memory(server, { onRequestEnd }));
  const warned = once(process, "warning");
  await storage.run("called", () => client.callTool("ok"));
  const [warning] = await warned;
  assert.match(warning.message, /`onRequestEnd` failed for tools\/call: .*log is full/);
  assert.equal(seen, "created");
  await client.close();
});

test("onRequestEnd of a client must be a function", async () => {
  const { server } = recorded();
  await assert.rejects(Client.memory(server, { onRequestEnd: console }), {
    kind: "usage_error",
    message: /onRequestEnd/,
  });
});

test("a logger gets the records of servers and clients with a text", async () => {
  const lines = [];
  // Like that of pino.
  const logger = (from) => ({ info: (record, message) => lines.push([from, record.outcome, message]) });
  const server = new Server({ name: "recorded", version: "1", logger: logger("server") });
  server.tool("ok", {}, () => "done");
  const client = await Client.memory(server, { logger: logger("client"), revisions: ["2025-11-25"] });
  await client.callTool("ok");
  await assert.rejects(client.callTool("missing"));
  await until(lines, 5);
  await client.close();
  const seen = lines.map(([from, outcome, message]) => [from, outcome, message.replace(/[\d.]+ ms$/, "N ms")]);
  assert.deepEqual(
    seen.filter(([from]) => from === "server"),
    [
      ["server", "ok", "initialize: ok in N ms"],
      ["server", "ok", 'tools/call "ok": ok in N ms'],
      ["server", "error", 'tools/call "missing": error -32602 in N ms'],
    ],
  );
  assert.deepEqual(
    seen.filter(([from]) => from === "client"),
    [
      ["client", "ok", 'tools/call "ok": ok in N ms'],
      ["client", "error", 'tools/call "missing": error rpc_error -32602 in N ms'],
    ],
  );
});

test("a logger and a function get each record, and what one throws does not reach the other", async () => {
  const records = [];
  const failing = () => {
    throw new Error("full");
  };
  const warned = once(process, "warning");
  const onRequestEnd = (record) => records.push(record.method);
  const server = new Server({ name: "recorded", version: "1", onRequestEnd, logger: { info: failing } });
  const client = await Client.memory(server, { revisions: ["2025-11-25"] });
  await until(records, 1);
  await client.close();
  assert.deepEqual(records, ["initialize"]);
  assert.match((await warned)[0].message, /`logger` failed for initialize: .*full/);
});

test("a logger needs a method `info`", async () => {
  assert.throws(
    () => new Server({ name: "recorded", version: "1", logger: {} }),
    /`logger` of the server must be an object/,
  );
  const server = new Server({ name: "recorded", version: "1" });
  await assert.rejects(Client.memory(server, { logger: () => {} }), /`logger` must be an object with a method `info`/);
});
