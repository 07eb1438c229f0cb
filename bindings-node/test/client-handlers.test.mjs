// Handlers of clients: input requests, notifications, and handlers that fail.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, RpcError, Server, ToolCallRefusedError } from "mcpline";

import { native } from "../dist/internals.js";
import { LEGACY, MODERN, reach, settable } from "./client-peer.mjs";

const textOf = ({ content }) => content[0].text;

for (const revision of [LEGACY, MODERN]) {
  for (const way of ["memory", "http"]) {
    test(`handlers answer input requests: ${way}, ${revision}`, async (t) => {
      const elicitations = [];
      const client = await reach(t, way, {
        revision,
        elicit: (params) => {
          elicitations.push(params);
          return params.mode === "url" ? "decline" : { action: "accept", content: { city: "Bergen" } };
        },
        sample: async ({ messages }) => `You said: ${messages[0].content.text}`,
        roots: ["file:///home", new URL("file:///tmp"), { uri: "/etc", name: "settings" }, "/x/../a path"],
      });
      assert.deepEqual(JSON.parse(textOf(await client.callTool("elicits"))), {
        action: "accept",
        content: { city: "Bergen" },
      });
      assert.equal(elicitations[0].mode, "form");
      assert.equal(elicitations[0].message, "Where?");
      assert.ok(elicitations[0].requestedSchema.properties.city);
      assert.equal(textOf(await client.callTool("visits")), "decline");
      assert.equal(elicitations[1].url, "https://example.com");
      assert.equal(JSON.parse(textOf(await client.callTool("samples"))).text, "You said: Hi");
      const roots = JSON.parse(textOf(await client.callTool("lists-roots")));
      assert.deepEqual(roots, [
        { uri: "file:///home" },
        { uri: "file:///tmp" },
        { uri: "file:///etc", name: "settings" },
        { uri: "file:///a%20path" },
      ]);
    });

    test(`omitted fields of an accepted form get their defaults: ${way}, ${revision}`, async (t) => {
      const client = await reach(t, way, { revision, elicit: () => "accept" });
      const { content } = JSON.parse(textOf(await client.callTool("elicits")));
      assert.deepEqual(content, { city: "Oslo" });
    });

    test(`notifications and log messages reach the handlers: ${way}, ${revision}`, async (t) => {
      const methods = [];
      const [changed, tools] = settable();
      const [updated, resource] = settable();
      const [logged, log] = settable();
      const client = await reach(t, way, {
        revision,
        onNotification: ({ method }) => methods.push(method),
        onToolsChanged: tools,
        onResourceUpdated: resource,
        onLog: log,
      });
      await client.subscribe("test://a");
      await client.callTool("logs", {}, { logLevel: "debug" });
      assert.deepEqual((await logged).data, { at: "work" });
      assert.equal((await logged).logger, "peer");
      assert.equal((await logged).level, "info");
      await client.callTool("changes");
      await changed;
      assert.equal(await updated, "test://a");
      assert.ok(methods.includes("notifications/tools/list_changed"));
    });

    test(`notifications can be iterated over from any time on: ${way}, ${revision}`, async (t) => {
      const client = await reach(t, way, { revision });
      const notifications = client.notifications();
      const wanted = revision === MODERN ? "notifications/subscriptions/acknowledged" : undefined;
      if (wanted !== undefined) {
        assert.equal((await notifications.next()).value.method, wanted);
      }
      await client.callTool("changes");
      for await (const { method } of notifications) {
        if (method === "notifications/tools/list_changed") {
          break;
        }
      }
      assert.deepEqual(await notifications.next(), { done: true, value: undefined });
    });
  }
}

test("a log handler alone receives log messages once, with an iterator beside it", async (t) => {
  const logs = [];
  const client = await reach(t, "memory", { revision: LEGACY, onLog: ({ data }) => logs.push(data) });
  const notifications = client.notifications();
  await client.setLogLevel("debug");
  await client.callTool("logs");
  assert.equal((await notifications.next()).value.method, "notifications/message");
  assert.deepEqual(logs, [{ at: "work" }]);
});

test("a client gets logs at the level of the server until it sets its own", async (t) => {
  const server = new Server({ name: "logs", version: "1", settings: { clientLogLevel: "error" } });
  server.tool("logs", {}, (_, ctx) => {
    ctx.info("info");
    ctx.error("error");
    return "logged";
  });
  const client = await Client.memory(server, { revisions: [LEGACY] });
  t.after(() => client.close());
  const notifications = client.notifications();
  const next = async () => (await notifications.next()).value.params.data;
  await client.callTool("logs");
  assert.equal(await next(), "error");
  await client.setLogLevel("info");
  await client.callTool("logs");
  assert.deepEqual([await next(), await next()], ["info", "error"]);
  const loud = () => new Server({ name: "logs", version: "1", settings: { clientLogLevel: "loud" } });
  assert.throws(loud, /clientLogLevel|client_log_level/);
});

test("a client skips messages above its `maxLineBytes`", async (t) => {
  const server = new Server({ name: "logs", version: "1" });
  server.tool("logs", {}, (_, ctx) => {
    ctx.info("x".repeat(10_000));
    ctx.info("short");
    return "logged";
  });
  const folder = await mkdtemp(join(tmpdir(), "mcpline-"));
  t.after(() => rm(folder, { recursive: true }));
  const { path } = await server.listenUnix(join(folder, "socket"));
  t.after(() => server.close());
  const client = await Client.socket(path, { revisions: [LEGACY], maxLineBytes: 4096 });
  t.after(() => client.close());
  const notifications = client.notifications();
  await client.callTool("logs");
  assert.equal((await notifications.next()).value.params.data, "short");
});

test("an iterator keeps no more than 32 MiB of what it has not given", async (t) => {
  const size = 1024 * 1024;
  const flood = 40;
  const server = new Server({ name: "flood", version: "1" });
  server.tool("tells", {}, (_, ctx) => {
    ctx.info("x".repeat(size));
    return "told";
  });
  let received = 0;
  const [all, allHeard] = settable();
  const onLog = () => {
    received += 1;
    if (received === flood + 2) {
      allHeard();
    }
  };
  const client = await Client.memory(server, { revisions: [LEGACY], onLog });
  t.after(() => client.close());
  await client.setLogLevel("debug");
  const unread = client.notifications();
  const read = client.notifications();
  for (let call = 0; call < flood; call++) {
    await client.callTool("tells");
    assert.equal((await read.next()).value.params.data.length, size);
  }
  await client.callTool("tells");
  await client.callTool("tells");
  await all;

  let kept = 0;
  const drain = async () => {
    for await (const { params } of unread) {
      kept += params.data.length;
    }
  };
  const failed = assert.rejects(drain(), { name: "UsageError", message: /slower than the server/ });
  await Promise.all([failed, client.close()]);
  assert.ok(kept > 16 * size && kept <= 32 * size, `${kept} characters were kept`);
  assert.equal((await read.next()).value.params.data.length, size);
  assert.equal((await read.next()).value.params.data.length, size);
  assert.equal((await read.next()).done, true);
});

test("the end of the client ends its iterators", async (t) => {
  const client = await reach(t, "memory", { revision: LEGACY });
  const notifications = client.notifications();
  const next = notifications.next();
  await client.close();
  assert.equal((await next).done, true);
  assert.throws(() => client.notifications(), { kind: "closed" });
});

test("a refused sampling request has its own error code", async (t) => {
  const server = new Server({ name: "asker", version: "1" });
  const messages = [{ role: "user", content: { type: "text", text: "Hi" } }];
  server.tool("samples", {}, (_, ctx) =>
    ctx.sample({ messages, maxTokens: 5 }).then(
      () => "answered",
      ({ source }) => `${source.code}: ${source.message}`,
    ),
  );
  const legacy = await Client.memory(server, { revisions: [LEGACY], sample: () => null });
  t.after(() => legacy.close());
  assert.equal(textOf(await legacy.callTool("samples")), "-1: the user refused");
  const modern = await Client.memory(server, { revisions: [MODERN], sample: () => null });
  t.after(() => modern.close());
  await assert.rejects(modern.callTool("samples"), (error) => {
    assert.equal(error.kind, "input_request_failed");
    assert.match(error.message, /-1/);
    return true;
  });
});

test("content that breaks the schema of its form is reported and not sent", async (t) => {
  const elicit = () => ({ action: "accept", content: { city: 7 } });
  const [warned, warn] = settable();
  process.once("warning", warn);
  const legacy = await reach(t, "memory", { revision: LEGACY, elicit });
  const result = await legacy.callTool("elicits");
  assert.equal(result.isError, true);
  assert.match(textOf(result), /\/city/);
  assert.match((await warned).message, /elicitation\/create.*\/city/);
  const modern = await reach(t, "memory", { revision: MODERN, elicit });
  await assert.rejects(modern.callTool("elicits"), { kind: "input_request_failed", message: /\/city/ });
});

test("an error of a handler tells the server nothing of its internals, unless it says so", async (t) => {
  const server = new Server({ name: "asker", version: "1" });
  server.tool("asks", {}, async (_, ctx) => {
    try {
      return (await ctx.elicit("?", { type: "object", properties: {} })).action;
    } catch (error) {
      const { code, message, data } = error.source;
      return `${code}: ${message} ${JSON.stringify(data)}`;
    }
  });
  let fail;
  const options = { revisions: [LEGACY], elicit: () => fail() };
  const client = await Client.memory(server, options);
  t.after(() => client.close());
  const [warned, warn] = settable();
  process.once("warning", warn);
  fail = () => {
    throw new Error("the password is swordfish");
  };
  assert.equal(textOf(await client.callTool("asks")), "-32603: the client's handler failed undefined");
  assert.match((await warned).message, /swordfish/);
  fail = async () => {
    throw new RpcError(-32001, "not today", { until: "Monday" });
  };
  assert.equal(textOf(await client.callTool("asks")), '-32001: not today {"until":"Monday"}');
  const [again, warnAgain] = settable();
  process.once("warning", warnAgain);
  fail = () => "maybe";
  assert.equal(textOf(await client.callTool("asks")), "-32603: the client's handler failed undefined");
  assert.match((await again).message, /accept, decline or cancel/);
});

test("a failing notification handler is reported, and later ones run in order", async (t) => {
  const received = [];
  const [done, finish] = settable();
  const [warned, warn] = settable();
  process.once("warning", warn);
  const server = new Server({ name: "teller", version: "1" });
  server.tool("tells", {}, (_, ctx) => {
    for (let number = 0; number < 5; number++) {
      ctx.info(number);
    }
  });
  const client = await Client.memory(server, {
    onLog: async ({ data }) => {
      await new Promise((resolve) => setTimeout(resolve, 5 - data));
      received.push(data);
      if (data === 1) {
        throw new Error("deaf");
      }
      if (data === 4) {
        finish();
      }
    },
  });
  t.after(() => client.close());
  await client.callTool("tells", {}, { logLevel: "debug" });
  await done;
  assert.deepEqual(received, [0, 1, 2, 3, 4]);
  assert.match((await warned).message, /deaf/);
});

test("cancelling a call aborts the handler of its input request", async (t) => {
  const [requested, ask] = settable();
  const [cancelled, withdraw] = settable();
  const client = await reach(t, "memory", {
    revision: MODERN,
    elicit: (_, { signal }) => {
      ask();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          withdraw();
          reject(signal.reason);
        });
      });
    },
  });
  const giving = new AbortController();
  const call = client.callTool("elicits", {}, { signal: giving.signal });
  await requested;
  giving.abort();
  await assert.rejects(call, { name: "AbortError" });
  await cancelled;
});

test("a server that cancels an input request aborts its handler", async (t) => {
  const messages = [{ role: "user", content: { type: "text", text: "Hi" } }];
  for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY]) {
    const server = new Server({ name: "asker", version: "1", settings: { inputRequestIdleTimeout: 50 } });
    server.tool("asks", {}, async (_, ctx) => JSON.stringify(await ctx.sample({ messages, maxTokens: 5 })));
    const [withdrawn, withdraw] = settable();
    const client = await Client.memory(server, {
      revisions: [revision],
      sample: (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            withdraw();
            reject(signal.reason);
          });
        }),
    });
    t.after(() => client.close());
    assert.equal((await client.callTool("asks", {})).isError, true);
    await withdrawn;
  }
});

test("tool calls are approved and their outcomes reported", async (t) => {
  const calls = [];
  const outcomes = [];
  const client = await reach(t, "memory", {
    onToolCall: async (call) => {
      calls.push(call);
      if (call.arguments.text === "no") {
        throw new ToolCallRefusedError("the user declined");
      }
      if (call.arguments.text === "fail") {
        throw new TypeError("a defect of the host");
      }
    },
    onToolOutcome: (outcome) => void outcomes.push(outcome),
  });
  await client.listTools();
  assert.equal(textOf(await client.callTool("echo", { text: "a" })), "a");
  const refused = client.callTool("echo", { text: "no" });
  await assert.rejects(refused, { kind: "tool_call_refused", message: /refused: the user declined$/ });
  const warned = new Promise((resolve) => process.once("warning", resolve));
  await assert.rejects(client.callTool("echo", { text: "fail" }), { kind: "tool_call_refused" });
  assert.match((await warned).message, /a defect of the host/);
  assert.equal(calls[0].name, "echo");
  assert.equal(calls[0].annotations.readOnlyHint, true);
  assert.deepEqual(
    outcomes.map(({ call, result, error }) => [call.arguments.text, result?.content[0].text, error?.kind]),
    [
      ["a", "a", undefined],
      ["no", undefined, "tool_call_refused"],
      ["fail", undefined, "tool_call_refused"],
    ],
  );
  assert.deepEqual(
    outcomes.map(({ call }) => call.id),
    calls.map(({ id }) => id),
  );
});

test("invalid roots are rejected when they are set", async (t) => {
  const rows = JSON.parse(readFileSync(new URL("../../tests/roots/roots.json", import.meta.url), "utf8"));
  for (const [root, uri] of Object.entries(rows.accepted)) {
    assert.equal(native.rootUri(root), uri);
  }
  const url = "http://127.0.0.1:1/mcp";
  for (const root of [...Object.keys(rows.refused), new URL("http://evil"), { uri: "a/b" }]) {
    await assert.rejects(Client.connect(url, { roots: [root] }), { name: "UsageError", message: /^root / });
  }
  const warned = new Promise((resolve) => process.once("warning", resolve));
  const client = await reach(t, "memory", { revision: LEGACY, roots: () => ["http://evil"] });
  assert.equal((await client.callTool("lists-roots")).isError, true);
  assert.match((await warned).message, /http:\/\/evil/);
});
