// Requests that no revision of the protocol defines, served by functions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, Server, UsageError } from "mcpline";
import * as z from "zod";

import { settable } from "./client-peer.mjs";
import { LIBRARIES, makeServer } from "./custom-methods-server.mjs";

const LEGACY = "2025-11-25";
const MODERN = "2026-07-28";
const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN];
const PROGRAM = fileURLToPath(new URL("custom-methods-server.mjs", import.meta.url));

const ways = {
  memory: (_, options) => Client.memory(makeServer(), options),
  http: async (t, options) => {
    const server = makeServer();
    t.after(() => server.close());
    return Client.connect((await server.listen()).url, options);
  },
  program: (_, options) => Client.spawn(process.execPath, [PROGRAM], options),
};

async function reach(t, way, revision, options = {}) {
  const timeouts = { openTimeout: 60_000, probeTimeout: 60_000 };
  const client = await ways[way](t, { ...timeouts, ...options, revisions: [revision] });
  t.after(() => client.close());
  return client;
}

for (const way of Object.keys(ways)) {
  for (const revision of REVISIONS) {
    test(`functions serve custom requests: ${way}, ${revision}`, { timeout: 60_000 }, async (t) => {
      const client = await reach(t, way, revision);
      for (const library of LIBRARIES) {
        const notifications = client.notifications();
        const reports = [];
        const onProgress = ({ progress, total }) => void reports.push([progress, total]);
        const params = { query: "tea", limit: 2 };
        const found = await client.request(`acme/search-${library}`, params, { onProgress });
        assert.deepEqual(found.hits, ["tea", "tea"]);
        assert.deepEqual(reports, [[1, 2]]);
        for await (const { method, params } of notifications) {
          if (method === "acme/searching") {
            assert.deepEqual(params, { query: "tea" });
            break;
          }
        }
        assert.deepEqual(await client.request(`acme/search-${library}`, { query: "" }).catch(fields), [
          -1,
          "empty",
          { place: "query" },
        ]);
        for (const misfit of [{ query: 7 }, { limit: 1 }, { query: "", limit: 1.5 }, undefined]) {
          const refused = client.request(`acme/search-${library}`, misfit);
          await assert.rejects(refused, { code: -32602 }, `${library}: ${JSON.stringify(misfit)}`);
        }
      }
      assert.deepEqual((await client.request("acme/raw", { a: 1, b: [2] })).b, [2]);
      assert.deepEqual((await client.request("acme/any", { b: "é" })).b, "é");
      assert.equal("hits" in (await client.request("acme/nothing")), false);
      await assert.rejects(client.request("acme/raw", { b: 1 }), { code: -32602 });
      await assert.rejects(client.request("acme/none", {}), { code: -32601 });
    });
  }

  for (const revision of [LEGACY, MODERN]) {
    test(`handlers of custom requests send input requests: ${way}, ${revision}`, async (t) => {
      const elicit = () => ({ action: "accept", content: { name: "Ada" } });
      const client = await reach(t, way, revision, { elicit });
      assert.equal((await client.request("acme/ask")).name, "Ada");
      assert.equal((await client.request("acme/returned")).name, "Ada");
    });

    test(`the cancellation of a custom request aborts its handler's signal: ${way}, ${revision}`, async (t) => {
      const client = await reach(t, way, revision);
      const [started, start] = settable();
      const giving = new AbortController();
      const waits = client.request("acme/wait", {}, { signal: giving.signal, onProgress: start });
      await started;
      giving.abort();
      await assert.rejects(waits, { name: "AbortError" });
      assert.equal((await client.request("acme/cancelled")).cancelled, true);
    });
  }
}

test("a result that is not an object is an error of the handler, and its details stay in the server", async (t) => {
  const client = await reach(t, "program", MODERN);
  for (const method of ["acme/list", "acme/text", "acme/function", "acme/throw"]) {
    const [code, message] = await client.request(method).catch(fields);
    assert.deepEqual([code, message], [-32603, `${method} failed`]);
  }
  const [code, message] = await client.request("acme/readable").catch(fields);
  assert.deepEqual([code, message], [-32603, "no such index"]);
});

test("params that only the schema library rejects have the code of invalid params", async (t) => {
  const client = await reach(t, "memory", MODERN);
  assert.equal((await client.request("acme/even", { count: 4 })).half, 2);
  const [code, message] = await client.request("acme/even", { count: 3 }).catch(fields);
  assert.deepEqual([code, message], [-32602, "params: at /count: even wanted"]);
});

test("only custom notifications are sent by name", { timeout: 60_000 }, async (t) => {
  const server = new Server({ name: "acme", version: "1" });
  server.onRequest("acme/notify", {}, ({ method, params }, ctx) => {
    assert.throws(() => ctx.notify(method, params), UsageError);
    return {};
  });
  let kept;
  server.onRequest("acme/keep", {}, (_, ctx) => {
    kept = ctx;
    ctx.notify("acme/bare");
  });
  const [bare, received] = settable();
  const onNotification = (notification) => notification.method === "acme/bare" && received(notification);
  const client = await Client.memory(server, { onNotification, revisions: [LEGACY] });
  t.after(() => client.close());
  for (const [method, params] of [
    ["notifications/message", {}],
    ["tools/call", {}],
    ["rpc.note", {}],
    ["", {}],
    ["acme/note", [1]],
    ["acme/note", "text"],
    ["acme/note", null],
  ]) {
    await client.request("acme/notify", { method, params });
  }
  await client.request("acme/keep");
  assert.deepEqual((await bare).params, {});
  kept.notify("acme/late");
});

test("methods of the protocol cannot have a custom handler", async (t) => {
  const server = makeServer();
  const refuses = (method, options, words) =>
    assert.throws(
      () => server.onRequest(method, options, () => ({})),
      (error) => error instanceof UsageError && error.message.includes(words),
      method,
    );
  refuses("", {}, "1 to 1024");
  refuses("tools/call", {}, "protocol defines it");
  refuses("prompts/get", {}, "protocol defines it");
  refuses("sampling/createMessage", {}, "protocol defines it");
  refuses("notifications/acme", {}, "notifications");
  refuses("rpc.discover", {}, "JSON-RPC");
  refuses("acme/any", {}, "handler already");
  refuses("acme/new", { params: { type: 7 } }, "unusable params schema");
  refuses("acme/new", { params: z.object({ big: z.bigint() }) }, "method `acme/new`: `params`");
  refuses("acme/new", { params: z.string() }, "schema of an object");
  refuses("acme/new", { scopes: ['a b"c'] }, "scope");
  const client = await Client.memory(server, { revisions: [LEGACY] });
  t.after(() => client.close());
  assert.equal(server.removeRequestHandler("acme/any"), true);
  assert.equal(server.removeRequestHandler("acme/any"), false);
  await assert.rejects(client.request("acme/any"), { code: -32601 });
  server.onRequest("acme/any", {}, () => ({ again: true }));
  assert.equal((await client.request("acme/any")).again, true);
});

test("a client does not serve the library's own methods", async () => {
  for (const method of ["auth/", "auth/consent", "host/toolCall", "host/tool_call"]) {
    const made = Client.memory(makeServer(), { onRequest: { [method]: () => ({}) } });
    await assert.rejects(
      made,
      (error) => error instanceof UsageError && error.message.includes("library's own"),
      method,
    );
  }
});

function fields({ code, rpcMessage, data }) {
  return data === undefined ? [code, rpcMessage] : [code, rpcMessage, data];
}
