// The request context of handlers.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { Client, ClosedError, Server, NotSupportedError, UsageError } from "mcpline";

import { Child, called, MODERN, posted } from "./peer.mjs";

const input = { type: "object" };
const said = (text) => [{ type: "text", text }];

test("a handler sees its request and its client", async () => {
  const server = new Server({ name: "info", version: "1" });
  let seen;
  server.tool("info", { input }, (_, ctx) => {
    seen = {
      revision: ctx.revision,
      transport: ctx.transport,
      client: ctx.client,
      capabilities: ctx.clientCapabilities,
      id: ctx.requestId,
      session: ctx.sessionId,
      header: ctx.headers.get("x-test"),
      meta: ctx.meta["example.com/a"],
      same: ctx.server === server,
      method: ctx.request.method,
      cancelled: ctx.cancelled,
    };
    return "";
  });
  const init = posted("tools/call", { name: "info", arguments: {} }, { id: "seven", capabilities: { sampling: {} } });
  const body = JSON.parse(init.body);
  body.params._meta["example.com/a"] = 1;
  const headers = { ...init.headers, "x-test": "hé".normalize() };
  await server.fetch(new Request("http://localhost/mcp", { ...init, headers, body: JSON.stringify(body) }));
  assert.deepEqual(seen, {
    revision: MODERN,
    transport: "http",
    client: { name: "peer", version: "1" },
    capabilities: { sampling: {} },
    id: "seven",
    session: undefined,
    header: "hé",
    meta: 1,
    same: true,
    method: "POST",
    cancelled: false,
  });
});

test("a handler sees the name of its tool or prompt, or the URI of its resource", async (t) => {
  const mounted = new Server({ name: "mounted", version: "1" });
  const server = new Server({ name: "names", version: "1" });
  const seen = [];
  const see = (ctx) => {
    seen.push([ctx.toolName, ctx.promptName, ctx.uri]);
    return "";
  };
  mounted.tool("tool", {}, (_, ctx) => see(ctx));
  mounted.prompt("prompt", {}, (_, ctx) => see(ctx));
  server.resource("test://fixed", { name: "fixed" }, (_, ctx) => see(ctx));
  server.resource("test://by/{name}", { name: "by-name" }, (_, ctx) => see(ctx));
  server.onRequest("acme/names", {}, (_, ctx) => ({ names: see(ctx) }));
  server.mount(mounted, { prefix: "inner" });
  const client = await Client.memory(server);
  t.after(() => client.close());
  await client.callTool("inner_tool");
  await client.getPrompt("inner_prompt");
  await client.readResource("test://fixed");
  await client.readResource("test://by/a%20b");
  await client.request("acme/names", {});
  assert.deepEqual(seen, [
    ["inner_tool", undefined, undefined],
    [undefined, "inner_prompt", undefined],
    [undefined, undefined, "test://fixed"],
    [undefined, undefined, "test://by/a%20b"],
    [undefined, undefined, undefined],
  ]);
});

test("progress and log messages come before the result", async () => {
  const server = new Server({ name: "reports", version: "1" });
  server.tool("work", { input }, async (_, ctx) => {
    ctx.progress(1, 2, "half");
    ctx.warning({ disk: "full" }, "disks");
    ctx.progress(2, 2);
    return "done";
  });
  const init = posted("tools/call", { name: "work", arguments: {} });
  const body = JSON.parse(init.body);
  body.params._meta.progressToken = "t";
  body.params._meta["io.modelcontextprotocol/logLevel"] = "info";
  const response = await server.fetch(new Request("http://localhost/mcp", { ...init, body: JSON.stringify(body) }));
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data:"));
  const messages = lines.map((line) => JSON.parse(line.slice(5)));
  assert.deepEqual(
    messages.map(({ method, params, result }) => [method, params ?? result.content]),
    [
      ["notifications/progress", { progressToken: "t", progress: 1, total: 2, message: "half" }],
      ["notifications/message", { level: "warning", logger: "disks", data: { disk: "full" } }],
      ["notifications/progress", { progressToken: "t", progress: 2, total: 2 }],
      [undefined, said("done")],
    ],
  );
});

test("a handler that requests input waits for the client's next request (2026-07-28)", async () => {
  const server = new Server({ name: "asking", version: "1" });
  const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  server.tool("greet", { input }, async (_, ctx) => {
    const answer = await ctx.elicit("Who?", schema, { key: "who" });
    return answer.action === "accept" ? `hello ${answer.content.name}` : answer.action;
  });
  const capabilities = { elicitation: {} };
  for (const [answer, text] of [
    [{ action: "accept", content: { name: "Ada" } }, "hello Ada"],
    [{ action: "decline" }, "decline"],
  ]) {
    const result = await called(server.fetch, "greet", {}, { capabilities });
    assert.equal(result.inputRequests.who.method, "elicitation/create");
    const params = { inputResponses: { who: answer }, requestState: result.requestState };
    assert.deepEqual((await called(server.fetch, "greet", {}, { capabilities, params })).content, said(text));
  }
});

test("concurrent input requests share one round", async () => {
  const server = new Server({ name: "asking", version: "1" });
  server.tool("both", { input }, async (_, ctx) => {
    const sampled = { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 5 };
    const [roots, answer] = await Promise.all([ctx.listRoots({ key: "r" }), ctx.sample(sampled, { key: "s" })]);
    return `${roots[0].uri} ${answer.content.text}`;
  });
  const capabilities = { roots: {}, sampling: {} };
  const result = await called(server.fetch, "both", {}, { capabilities });
  assert.deepEqual(Object.keys(result.inputRequests).sort(), ["r", "s"]);
  const inputResponses = {
    r: { roots: [{ uri: "file:///a" }] },
    s: { role: "assistant", content: { type: "text", text: "!" }, model: "m" },
  };
  const params = { inputResponses, requestState: result.requestState };
  assert.deepEqual((await called(server.fetch, "both", {}, { capabilities, params })).content, said("file:///a !"));
});

test("an unsupported input request is a typed error", async () => {
  const server = new Server({ name: "asking", version: "1" });
  let failure;
  server.tool("ask", { input }, async (_, ctx) => {
    failure = await ctx.elicit("?").catch((error) => error);
    throw failure;
  });
  await assert.rejects(called(server.fetch, "ask"), { code: -32021 });
  assert.ok(failure instanceof NotSupportedError);
  assert.equal(failure.kind, "not_supported");
  assert.deepEqual(failure.required, { elicitation: {} });
});

test("a context is unusable after its call", async () => {
  const server = new Server({ name: "late", version: "1" });
  let kept;
  server.tool("keep", { input }, (_, ctx) => {
    kept = ctx;
    return "";
  });
  await called(server.fetch, "keep");
  kept.progress(1);
  kept.info("sent after the call");
  assert.equal(kept.cancelled, true);
  await assert.rejects(kept.listRoots(), ClosedError);
  assert.throws(() => kept.revision, ClosedError);
});

test("an unknown log level is a usage error", async () => {
  const server = new Server({ name: "levels", version: "1" });
  let failure;
  server.tool("log", { input }, (_, ctx) => {
    try {
      ctx.log("loud", "x");
    } catch (error) {
      failure = error;
    }
    return "";
  });
  await called(server.fetch, "log");
  assert.ok(failure instanceof UsageError);
});

const asking = `
  import { Server } from "mcpline";
  const server = new Server({ name: "child", version: "1" });
  const input = { type: "object" };
  server.tool("ask", { input }, async (_, ctx) => {
    const answer = await ctx.elicit("Who?", { type: "object", properties: { name: { type: "string" } } });
    return JSON.stringify(answer);
  });
  server.tool("wait", { input }, (_, ctx) => new Promise((resolve) => {
    ctx.progress(0);
    ctx.signal.addEventListener("abort", () => { console.error("aborted: " + ctx.signal.reason.kind); resolve("late"); });
  }));
  await server.run();
`;

test("over a pipe an input request is a JSON-RPC request, and cancelling a call aborts its signal", async () => {
  const child = new Child(asking);
  after(() => child.process.kill("SIGKILL"));
  await child.open({ elicitation: {} });
  child.call(1, "ask");
  const request = await child.receive();
  assert.equal(request.method, "elicitation/create");
  child.send({ id: request.id, result: { action: "accept", content: { name: "Ada" } } });
  const answer = await child.receive();
  assert.deepEqual(answer.result.content, said('{"action":"accept","content":{"name":"Ada"}}'));
  child.send({ id: 2, method: "tools/call", params: { name: "wait", arguments: {}, _meta: { progressToken: 1 } } });
  assert.equal((await child.receive()).method, "notifications/progress");
  child.send({ method: "notifications/cancelled", params: { requestId: 2 } });
  child.send({ id: 3, method: "ping" });
  assert.equal((await child.receive()).id, 3, "a cancelled request has no answer");
  child.process.stdin.end();
  assert.deepEqual(await child.ended, { code: 0, signal: null });
  assert.match(child.stderr, /aborted: request_cancelled/);
});

test("input requests can be sent outside of any call", { timeout: 60_000 }, async (t) => {
  // A client in memory does not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  t.after(() => {
    clearInterval(alive);
  });
  const server = new Server({ name: "events", version: "1" });
  const events = [];
  let wake;
  const next = async () => {
    while (events.length === 0) {
      await new Promise((resolve) => (wake = resolve));
    }
    return events.shift();
  };
  const record = async (event, ctx) => {
    events.push([event, (await ctx.listRoots()).map(({ uri }) => uri)]);
    wake?.();
  };
  server.onInitialized((ctx) => record("initialized", ctx));
  server.onRootsChanged((ctx) => record("changed", ctx));
  const roots = ["file:///one"];
  const client = await Client.memory(server, { revisions: ["2025-11-25"], roots: () => roots });
  assert.deepEqual(await next(), ["initialized", ["file:///one"]]);
  roots.push("file:///two");
  await client.rootsChanged();
  assert.deepEqual(await next(), ["changed", ["file:///one", "file:///two"]]);
  await client.close();
});
