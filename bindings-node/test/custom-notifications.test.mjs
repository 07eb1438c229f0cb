// Custom notifications of clients, and custom requests of servers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, RpcError, Server, UsageError } from "mcpline";
import * as z from "zod";

const LEGACY = "2025-11-25";
const MODERN = "2026-07-28";
const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN];

const ways = {
  memory: (_, server, options) => Client.memory(server, options),
  http: async (t, server, options) => {
    t.after(() => server.close());
    return Client.connect((await server.listen()).url, options);
  },
};

async function reach(t, way, server, options) {
  const client = await ways[way](t, server, { openTimeout: 60_000, probeTimeout: 60_000, ...options });
  t.after(() => client.close());
  return client;
}

/** A queue that one side fills and the other awaits. Awaiting keeps the process alive; a server in it does not. */
function queue() {
  const waiting = [];
  const given = [];
  return {
    put(value) {
      const take = waiting.shift();
      if (take === undefined) {
        given.push(value);
      } else {
        take(value);
      }
    },
    async next() {
      if (given.length > 0) {
        return given.shift();
      }
      const awake = setInterval(() => {}, 60_000);
      const value = await new Promise((resolve) => waiting.push(resolve));
      clearInterval(awake);
      return value;
    },
    get length() {
      return given.length;
    },
  };
}

for (const way of Object.keys(ways)) {
  for (const revision of REVISIONS) {
    test(`functions handle custom notifications: ${way}, ${revision}`, { timeout: 60_000 }, async (t) => {
      const handled = queue();
      const server = new Server({ name: "acme", version: "1" });
      server.onNotification("acme/note", { params: z.object({ number: z.int() }) }, ({ number }, ctx) => {
        handled.put([number, ctx.revision]);
      });
      server.onNotification("acme/any", {}, async (params) => handled.put(params));
      const client = await reach(t, way, server, { revisions: [revision] });
      await client.notify("acme/note", { number: 1 });
      assert.deepEqual(await handled.next(), [1, revision]);
      await client.notify("acme/note", { number: "one" });
      await client.notify("acme/none", {});
      await client.notify("acme/any", { a: "é", _meta: { "acme.example/a": 1 } });
      assert.deepEqual(await handled.next(), { a: "é" });
      assert.equal(handled.length, 0);
    });

    test(`clients serve custom requests: ${way}, ${revision}`, { timeout: 60_000 }, async (t) => {
      const server = new Server({ name: "acme", version: "1" });
      server.tool("choose", {}, async ({ method }, ctx) => {
        assert.throws(() => ctx.notify("tools/call"), UsageError);
        await assert.rejects(ctx.sendRequest("tools/call"), UsageError);
        await assert.rejects(ctx.sendRequest("acme/pick", ["no object"]), UsageError);
        const picked = await ctx.sendRequest(method ?? "acme/pick", { from: [1, 2, 3] });
        return String(picked.picked);
      });
      const onRequest = {
        "acme/pick": async ({ from }, { signal }) => ({ picked: signal.aborted ? 0 : from.at(-1) }),
        "acme/text": () => "no object",
        "acme/refuse": () => {
          throw new RpcError(-7, "not now");
        },
      };
      const client = await reach(t, way, server, { onRequest, revisions: [revision] });
      assert.equal((await client.callTool("choose", {})).content[0].text, "3");
      for (const method of ["acme/none", "acme/text", "acme/refuse"]) {
        const failed = await client.callTool("choose", { method }).then(
          (result) => result.isError,
          (error) => error.name === "InputRequestFailedError",
        );
        assert.equal(failed, true, method);
      }
    });
  }
}

test("a notification handler can send input requests where there is a session", { timeout: 60_000 }, async (t) => {
  for (const revision of [LEGACY, MODERN]) {
    const answers = queue();
    const server = new Server({ name: "acme", version: "1" });
    server.onNotification("acme/note", {}, async (_, ctx) => {
      answers.put(await ctx.listRoots().catch((error) => error));
    });
    const client = await reach(t, "memory", server, { roots: ["/a"], revisions: [revision] });
    await client.notify("acme/note");
    const answer = await answers.next();
    if (revision === LEGACY) {
      assert.equal(answer[0].uri, "file:///a");
    } else {
      assert.ok(answer instanceof UsageError, String(answer));
    }
  }
});

test("the end of a session aborts the handler of a notification", { timeout: 60_000 }, async (t) => {
  const steps = queue();
  const server = new Server({ name: "acme", version: "1" });
  server.onNotification("acme/wait", {}, (_, ctx) => {
    steps.put("started");
    return new Promise((resolve) => {
      ctx.signal.addEventListener("abort", () => {
        steps.put("aborted");
        resolve();
      });
    });
  });
  const client = await reach(t, "memory", server, { revisions: [LEGACY] });
  await client.notify("acme/wait");
  assert.equal(await steps.next(), "started");
  await client.close();
  assert.equal(await steps.next(), "aborted");
});

test("methods of the protocol cannot have custom handlers", async (t) => {
  const server = new Server({ name: "acme", version: "1" });
  server.onNotification("notifications/acme/changed", {}, () => {});
  for (const method of ["", "tools/call", "notifications/initialized", "notifications/acme/changed", "rpc.a"]) {
    assert.throws(() => server.onNotification(method, {}, () => {}), UsageError, method);
  }
  assert.equal(server.removeNotificationHandler("notifications/acme/changed"), true);
  assert.equal(server.removeNotificationHandler("notifications/acme/changed"), false);
  for (const method of ["", "tools/call", "notifications/acme", "rpc.a"]) {
    await assert.rejects(reach(t, "memory", server, { onRequest: { [method]: () => ({}) } }), UsageError, method);
  }
});
