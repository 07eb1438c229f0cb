// Spans in the OpenTelemetry of the program: of requests at clients and servers, and of input requests.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { afterEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { context, propagation, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";

import {
  Client,
  elicitForm,
  InputRequired,
  liveSpans,
  redaction,
  RpcError,
  Server,
  ToolError,
  UsageError,
} from "../dist/internals.js";
import { called, Child, messageOf, posted } from "./peer.mjs";
import { idOf, inSpan, only, parentOf, setUp, tearDown, traceOf } from "./tracing.mjs";

const REVISIONS = ["2025-11-25", "2026-07-28"];
const { CLIENT, INTERNAL, SERVER } = SpanKind;
const { ERROR, UNSET } = SpanStatusCode;
const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b8-01";
/** What no span may contain. */
const SECRET = "s3cret";

let spans = setUp();

afterEach(() => {
  assert.equal(liveSpans.size, 0, "spans of requests are kept");
  const open = [...spans.open].map(({ name }) => name);
  spans.open.clear();
  spans.ended.length = 0;
  assert.deepEqual(open, []);
});

function make(options = {}) {
  const server = new Server({ name: "traced", version: "1", ...options });
  const input = { type: "object" };
  server.tool("echo", { input }, async ({ text }) => {
    await new Promise(setImmediate);
    return inSpan("inner", () => text ?? "");
  });
  server.tool("meta", {}, (_, ctx) => JSON.stringify(ctx.meta));
  server.tool("refuses", {}, () => {
    throw new ToolError("no");
  });
  server.tool("fails", {}, () => {
    throw new TypeError("broken");
  });
  server.tool("refused", {}, () => {
    throw new RpcError(-31999, "not now");
  });
  server.tool("hangs", {}, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)));
  server.resource("note://{id}", { name: "note" }, ({ id }) => id);
  server.prompt("review", { arguments: { id: { complete: ["7"] } } }, ({ id }) => `Review ${id}.`);
  return server;
}

async function connected(t, server, options) {
  const client = await Client.memory(server, options);
  t.after(() => client.close());
  // The handshake.
  await spans.take(1);
  return client;
}

function testRevisions(name, body) {
  for (const revision of REVISIONS) {
    test(`${name} (${revision})`, (t) => body(t, { revisions: [revision] }));
  }
}

/** Expects a warning of the process. */
function warned(t) {
  const texts = [];
  const listener = ({ message }) => texts.push(message);
  process.on("warning", listener);
  t.after(() => process.off("warning", listener));
  return texts;
}

testRevisions("a call is a client span, a server span, and spans of the handler", async (t, options) => {
  const client = await connected(t, make(), options);
  const result = await inSpan("outer", () => client.callTool("echo", { text: SECRET }));
  assert.equal(result.content[0].text, SECRET);
  const all = await spans.take(4);
  const outer = only(all, INTERNAL, "outer");
  const sent = only(all, CLIENT, "tools/call echo");
  const received = only(all, SERVER, "tools/call echo");
  const inner = only(all, INTERNAL, "inner");
  assert.deepEqual([sent, received, inner].map(parentOf), [outer, sent, received].map(idOf));
  assert.deepEqual(new Set(all.map(traceOf)), new Set([traceOf(outer)]));
  const attributes = {
    "mcp.method.name": "tools/call",
    "gen_ai.tool.name": "echo",
    "gen_ai.operation.name": "execute_tool",
    "mcp.protocol.version": options.revisions[0],
  };
  const { "jsonrpc.request.id": id, ...others } = received.attributes;
  assert.deepEqual(sent.attributes, received.attributes);
  assert.deepEqual(others, attributes);
  assert.match(id, /^\d+$/);
  for (const { status, instrumentationScope } of [sent, received]) {
    assert.deepEqual(status, { code: UNSET });
    assert.equal(instrumentationScope.name, "mcpline");
    assert.match(instrumentationScope.version, /^\d+\.\d+/);
  }
  const nanoseconds = ([seconds, rest]) => BigInt(seconds) * 1_000_000_000n + BigInt(rest);
  assert.ok(nanoseconds(received.startTime) <= nanoseconds(received.endTime));
  assert.ok(Math.abs(received.startTime[0] - Date.now() / 1000) < 60);
  const written = JSON.stringify(all.map(({ attributes, events, status, name }) => [attributes, events, status, name]));
  assert.ok(!written.includes(SECRET));
});

testRevisions("requests of all kinds have spans", async (t, options) => {
  const client = await connected(t, make(), options);
  await client.listTools();
  await client.listPrompts();
  await client.readResource("note://1");
  await client.getPrompt("review", { id: "1" });
  await client.complete({ prompt: "review" }, { name: "id", value: "" });
  const all = await spans.take(10);
  for (const [name, attribute, value] of [
    ["tools/list"],
    ["prompts/list"],
    ["resources/read", "mcp.resource.uri", "note://1"],
    ["prompts/get review", "gen_ai.prompt.name", "review"],
    ["completion/complete"],
  ]) {
    const sent = only(all, CLIENT, name);
    const received = only(all, SERVER, name);
    assert.equal(parentOf(received), idOf(sent));
    for (const { attributes } of [sent, received]) {
      assert.equal(attributes["mcp.method.name"], name.split(" ")[0]);
      assert.equal(attributes[attribute], value);
      assert.equal(attributes["gen_ai.operation.name"], undefined);
    }
  }
});

test("requests without a result have spans, and notifications have none", async (t) => {
  const client = await connected(t, make(), {
    revisions: ["2025-11-25"],
    capabilities: { roots: { listChanged: true } },
  });
  await client.ping();
  await client.rootsChanged();
  await client.subscribe("note://1");
  const all = await spans.take(4);
  assert.equal(parentOf(only(all, SERVER, "ping")), idOf(only(all, CLIENT, "ping")));
  const subscribed = only(all, CLIENT, "resources/subscribe");
  assert.equal(subscribed.attributes["mcp.resource.uri"], "note://1");
  assert.equal(parentOf(only(all, SERVER, "resources/subscribe")), idOf(subscribed));
});

testRevisions("failures have their type and text", async (t, options) => {
  const client = await connected(t, make(), options);
  warned(t);
  const failure = (code) => ({ "error.type": code, "rpc.response.status_code": code });
  const toolError = { "error.type": "tool_error" };
  for (const [tool, attributes, text, exceptions] of [
    ["missing", failure("-32602"), "Unknown tool: missing", 0],
    ["refused", failure("-31999"), "not now", 0],
    ["refuses", toolError, undefined, 0],
    ["fails", toolError, undefined, 1],
  ]) {
    await client.callTool(tool).catch(() => undefined);
    const all = await spans.take(2);
    const [sent, received] = [CLIENT, SERVER].map((kind) => only(all, kind, `tools/call ${tool}`));
    for (const span of [sent, received]) {
      const { "error.type": type, "rpc.response.status_code": code } = span.attributes;
      assert.deepEqual({ "error.type": type, ...(code && { "rpc.response.status_code": code }) }, attributes);
      assert.deepEqual(span.status, { code: ERROR, ...(text && { message: text }) });
    }
    assert.equal(sent.events.length, 0);
    const seen = received.events.map(({ name, attributes }) => [name, attributes["exception.message"]]);
    assert.deepEqual(seen, exceptions === 0 ? [] : [["exception", "broken"]]);
  }
});

testRevisions("a cancelled call ends both spans once", async (t, options) => {
  const client = await connected(t, make(), options);
  const controller = new AbortController();
  const hanging = client.callTool("hangs", {}, { signal: controller.signal });
  while (liveSpans.size === 0) {
    await new Promise(setImmediate);
  }
  controller.abort();
  await assert.rejects(hanging);
  const all = await spans.take(2);
  for (const kind of [CLIENT, SERVER]) {
    const span = only(all, kind, "tools/call hangs");
    assert.equal(span.attributes["error.type"], "cancelled");
    assert.equal(span.status.code, ERROR);
  }
  await assert.rejects(client.callTool("hangs", {}, { signal: controller.signal }));
  only(await spans.take(1), CLIENT, "tools/call hangs");
});

for (const [end, attribute] of [
  ["closing the client", "cancelled"],
  ["shutting down the server", undefined],
]) {
  test(`calls in flight end their spans: ${end}`, async (t) => {
    const server = make({ settings: { shutdownTimeout: 10 } });
    const listening = await server.listen();
    t.after(() => listening.close());
    const client = await Client.connect(listening.url);
    t.after(() => client.close());
    await spans.take(1);
    const hanging = Array.from({ length: 5 }, () => client.callTool("hangs").catch(() => undefined));
    while (liveSpans.size < 5) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await (attribute === "cancelled" ? client.close() : server.close());
    await Promise.all(hanging);
    const all = await spans.take(10);
    const received = all.filter(({ kind }) => kind === SERVER);
    assert.equal(received.length, 5);
    for (const { status, attributes } of received) {
      assert.equal(status.code, ERROR);
      assert.equal(attributes["error.type"], attribute ?? attributes["error.type"]);
    }
  });
}

test("middleware and handler run in the span of their request, which the first of them begins", async (t) => {
  const server = make();
  const active = [];
  const activeId = () => trace.getActiveSpan().spanContext().spanId;
  server.use(async (request, next) => {
    active.push(activeId());
    return inSpan("layer", () => next(request));
  });
  server.use(async (request, next) => {
    active.push(activeId());
    await next(request);
    // Twice: the handler runs again.
    return next(request);
  });
  const client = await connected(t, server, { revisions: ["2026-07-28"] });
  await client.callTool("echo");
  const all = await spans.take(5);
  const received = only(all, SERVER, "tools/call echo");
  const layer = only(all, INTERNAL, "layer");
  assert.equal(parentOf(layer), idOf(received));
  assert.deepEqual(active, [idOf(received), idOf(layer)]);
  const inner = all.filter(({ name }) => name === "inner");
  assert.deepEqual(inner.map(parentOf), [idOf(layer), idOf(layer)]);
  active.length = 0;
  await client.listTools();
  const listed = await spans.take(3);
  assert.equal(active[0], idOf(only(listed, SERVER, "tools/list")));
});

test("features of a mounted server are traced by the server that is served", async (t) => {
  const server = new Server({ name: "outer", version: "1" });
  server.mount(make({ tracing: false }), { prefix: "sub" });
  const client = await connected(t, server);
  await client.callTool("sub_echo");
  const all = await spans.take(3);
  assert.equal(parentOf(only(all, INTERNAL, "inner")), idOf(only(all, SERVER, "tools/call sub_echo")));
});

testRevisions("handlers find the baggage of the client", async (t, options) => {
  const server = make();
  server.tool("user", {}, async () => {
    await new Promise(setImmediate);
    return propagation.getActiveBaggage()?.getEntry("user")?.value ?? "none";
  });
  const client = await connected(t, server, options);
  const { context } = await import("@opentelemetry/api");
  const baggage = propagation.createBaggage({ user: { value: "ada" } });
  const result = await context.with(propagation.setBaggage(context.active(), baggage), () => client.callTool("user"));
  assert.equal(result.content[0].text, "ada");
  assert.equal((await client.callTool("user")).content[0].text, "none");
  await spans.take(4);
});

test("the trace context that the caller gives is sent as it is", async (t) => {
  const client = await connected(t, make(), { revisions: ["2025-11-25"] });
  const metaOf = ({ content }) => JSON.parse(content[0].text);
  const given = { traceparent: PARENT, tracestate: "a=b" };
  assert.deepEqual(metaOf(await client.callTool("meta", {}, { meta: given })), given);
  assert.equal(parentOf(only(await spans.take(2), SERVER, "tools/call meta")), PARENT.slice(36, 52));
  const call = (meta) => client.request("tools/call", { name: "meta", arguments: {}, _meta: meta });
  assert.deepEqual(metaOf(await call(given)), given);
  const { traceparent, ...others } = metaOf(await call({ "example.com/a": 1, baggage: "b=1" }));
  assert.match(traceparent, /^00-/);
  assert.deepEqual(others, { "example.com/a": 1, baggage: "b=1" });
  await spans.take(4);
});

/** A server whose tools send input requests. */
function asking() {
  const server = make();
  server.tool("elicits", {}, async (_, ctx) => (await ctx.elicit("Sure?")).action);
  server.tool("samples", {}, async (_, ctx) => (await ctx.sample({ messages: [], maxTokens: 1 })).content.text);
  server.tool("roots", {}, async (_, ctx) => JSON.stringify(await ctx.listRoots()));
  server.tool("picks", {}, async (_, ctx) => JSON.stringify(await ctx.sendRequest("acme/pick", { of: 2 })));
  return server;
}

testRevisions("input requests have spans at the server and at the client", async (t, options) => {
  const handlers = {
    elicit: () => inSpan("answering", () => "accept"),
    sample: () => "text",
    roots: () => [],
    // The handler of a custom request gets no `_meta`.
    onRequest: { "acme/pick": (params) => ({ given: Object.keys(params) }) },
  };
  const client = await connected(t, asking(), { ...options, ...handlers });
  for (const [tool, method] of [
    ["elicits", "elicitation/create"],
    ["samples", "sampling/createMessage"],
    ["roots", "roots/list"],
    ["picks", "acme/pick"],
  ]) {
    const result = await client.callTool(tool);
    assert.ok(!result.isError, JSON.stringify(result));
    if (tool === "picks") {
      assert.deepEqual(JSON.parse(result.content[0].text), { given: ["of"] });
    }
    const all = await spans.take(4);
    const [sent, received] = [CLIENT, SERVER].map((kind) => only(all, kind, method));
    // On 2026-07-28 the call is a second request, with the answer.
    const calls = all.filter(({ kind, name }) => kind === SERVER && name === `tools/call ${tool}`);
    assert.ok(calls.map(idOf).includes(parentOf(sent)));
    assert.equal(parentOf(received), idOf(sent));
    assert.deepEqual(new Set(all.map(traceOf)).size, 1);
    const version = options.revisions[0];
    const { "jsonrpc.request.id": id, ...others } = received.attributes;
    // On 2026-07-28 an input request has no id.
    assert.equal(id !== undefined, version !== "2026-07-28");
    for (const attributes of [sent.attributes, others]) {
      assert.deepEqual(attributes, { "mcp.method.name": method, "mcp.protocol.version": version });
    }
    if (tool === "elicits") {
      assert.equal(parentOf(only(all, INTERNAL, "answering")), idOf(received));
    }
  }
});

testRevisions("failed input requests end their spans with the error", async (t, options) => {
  warned(t);
  for (const [failure, type, message, exceptions] of [
    [new RpcError(-31998, "busy"), "-31998", "busy", []],
    [new TypeError("bug"), "TypeError", undefined, ["exception"]],
  ]) {
    const elicit = () => {
      throw failure;
    };
    const client = await connected(t, asking(), { ...options, elicit });
    await client.callTool("elicits").catch(() => undefined);
    // On 2026-07-28 the handler waits for an answer until the client is gone.
    await client.close();
    const received = only(await spans.take(4), SERVER, "elicitation/create");
    assert.equal(received.attributes["error.type"], type);
    assert.deepEqual(received.status, { code: ERROR, ...(message && { message }) });
    assert.deepEqual(
      received.events.map(({ name }) => name),
      exceptions,
    );
  }
});

test("an input request that is cancelled ends its span, although its handler goes on", async (t) => {
  let asked;
  const elicit = () => new Promise((resolve) => (asked = resolve));
  const client = await connected(t, asking(), { revisions: ["2025-11-25"], elicit });
  const controller = new AbortController();
  const calling = client.callTool("elicits", {}, { signal: controller.signal });
  while (asked === undefined) {
    await new Promise(setImmediate);
  }
  controller.abort();
  await assert.rejects(calling);
  const all = await spans.take(4);
  assert.equal(only(all, SERVER, "elicitation/create").attributes["error.type"], "cancelled");
  assert.equal(only(all, CLIENT, "elicitation/create").attributes["error.type"], "cancelled");
  asked("accept");
});

test("an answer is accepted by another process, whose handler has another trace context (2026-07-28)", async () => {
  const settings = { stateKeys: [Buffer.alloc(32, 7).toString("base64")] };
  const processes = Array.from({ length: 2 }, () => {
    const server = make({ settings });
    server.tool("elicits", {}, async (_, ctx) => (await ctx.elicit("Sure?")).action);
    return server;
  });
  const capabilities = { elicitation: {} };
  const first = await called(processes[0].fetch, "elicits", {}, { capabilities });
  const [[key, request]] = Object.entries(first.inputRequests);
  assert.match(request.params._meta.traceparent, /^00-/);
  const params = { inputResponses: { [key]: { action: "decline" } }, requestState: first.requestState };
  const second = await called(processes[1].fetch, "elicits", {}, { capabilities, params });
  assert.equal(second.content[0].text, "decline");
  // The handler of the first process waits until its server is closed.
  await processes[0].close();
  await spans.take(4);
});

test("input requests that a handler returns are not traced", async (t) => {
  const server = make();
  server.tool("returns", {}, (_, ctx) =>
    ctx.inputResponses === undefined ? new InputRequired({ a: elicitForm("?") }) : "done",
  );
  const client = await connected(t, server, { revisions: ["2026-07-28"], elicit: () => "accept" });
  await client.callTool("returns");
  const all = await spans.take(4);
  assert.equal(parentOf(only(all, SERVER, "elicitation/create")), undefined);
});

/** Serves a server within an HTTP server that has a span for each request, as an instrumentation makes it. */
async function mounted(t, server, form, isTraced = true) {
  const http = trace.getTracer("http");
  const pass = {
    handler: (request, response) => server.handler(request, response),
    fetch: async (request, response) => {
      const pieces = [];
      for await (const piece of request) {
        pieces.push(piece);
      }
      const { method, headers } = request;
      const body = Buffer.concat(pieces);
      const answer = await server.fetch(new Request("http://localhost/mcp", { method, headers, body }));
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    },
  }[form];
  const outer = createServer((request, response) => {
    if (!isTraced) {
      void pass(request, response);
      return;
    }
    http.startActiveSpan("POST", { kind: SERVER, attributes: { form } }, (span) => {
      response.on("finish", () => span.end());
      void pass(request, response);
    });
  }).listen(0, "127.0.0.1");
  await once(outer, "listening");
  t.after(() => {
    outer.closeAllConnections();
    outer.close();
  });
  const url = `http://127.0.0.1:${outer.address().port}/mcp`;
  return async (method, params, { traceparent, header } = {}) => {
    const init = posted(method, params);
    const body = JSON.parse(init.body);
    Object.assign(body.params._meta, traceparent && { traceparent });
    const headers = { ...init.headers, ...(header && { traceparent: header }) };
    return messageOf(await fetch(url, { ...init, headers, body: JSON.stringify(body) }));
  };
}

for (const form of ["handler", "fetch"]) {
  test(`a span of the outer HTTP server is the parent, or a link: ${form}`, async (t) => {
    const send = await mounted(t, make(), form);
    for (const [method, params, name] of [
      ["tools/call", { name: "meta", arguments: {} }, "tools/call meta"],
      ["tools/list", {}, "tools/list"],
    ]) {
      for (const header of [undefined, OTHER]) {
        await send(method, params, { header });
        const all = await spans.take(2);
        const [outer, received] = [only(all, SERVER, "POST"), only(all, SERVER, name)];
        assert.equal(parentOf(received), idOf(outer));
        assert.deepEqual(received.links, []);
        assert.equal(received.attributes["network.transport"], "tcp");
        assert.equal(received.attributes["network.protocol.name"], "http");
        // A `Request` does not contain the version of HTTP.
        assert.equal(received.attributes["network.protocol.version"], form === "fetch" ? undefined : "1.1");
      }
      await send(method, params, { traceparent: PARENT, header: OTHER });
      const all = await spans.take(2);
      const [outer, received] = [only(all, SERVER, "POST"), only(all, SERVER, name)];
      assert.equal(parentOf(received), PARENT.slice(36, 52));
      assert.deepEqual(
        received.links.map(({ context }) => context.spanId),
        [idOf(outer)],
      );
    }
  });

  test(`without a span of the outer HTTP server, the headers name the parent: ${form}`, async (t) => {
    const send = await mounted(t, make(), form, false);
    await send("tools/list", {}, { header: OTHER });
    assert.equal(parentOf((await spans.take(1))[0]), OTHER.slice(36, 52));
    await send("tools/list", {}, { traceparent: PARENT, header: OTHER });
    const [both] = await spans.take(1);
    assert.equal(parentOf(both), PARENT.slice(36, 52));
    assert.equal(both.links[0].context.spanId, OTHER.slice(36, 52));
    await send("tools/list", {});
    assert.equal(parentOf((await spans.take(1))[0]), undefined);
  });
}

test("a span in which the HTTP server began to listen is the parent of one request at most", async (t) => {
  // That of the first request cannot be told from one of its own.
  await inSpan("main", async () => {
    const send = await mounted(t, make(), "handler", false);
    for (let turn = 0; turn < 3; turn++) {
      await send("tools/list", {}, { header: OTHER });
    }
    spans.open.clear();
    const all = await spans.take(3);
    assert.deepEqual(all.slice(1).map(parentOf), [OTHER.slice(36, 52), OTHER.slice(36, 52)]);
  });
  await spans.take(1);
});

test("tracing leaves options and parameters as they are", async (t) => {
  class Options {
    #signal = AbortSignal.timeout(20);
    get signal() {
      return this.#signal;
    }
  }
  const client = await connected(t, make());
  await assert.rejects(client.callTool("hangs", {}, new Options()), { name: "TimeoutError" });
  await assert.rejects(client.request("tools/call", null), UsageError);
  const throwing = {
    get name() {
      throw new Error("unreadable");
    },
  };
  await assert.rejects(client.request("tools/call", throwing), /unreadable/);
  for (const meta of [[1], "abc", 5]) {
    await assert.rejects(client.callTool("meta", {}, { meta }), UsageError);
    await assert.rejects(client.request("tools/call", { name: "meta", arguments: {}, _meta: meta }), UsageError);
  }
  await spans.take(0);
});

test("a context manager that fails does not fail requests", async (t) => {
  tearDown();
  spans = setUp({ contexts: false });
  const fails = () => {
    throw new Error("out of order");
  };
  const manager = {
    active: () => ROOT_CONTEXT,
    with: fails,
    bind: fails,
    enable: () => manager,
    disable: () => manager,
  };
  context.setGlobalContextManager(manager);
  const texts = warned(t);
  const client = await Client.memory(make());
  t.after(() => client.close());
  assert.ok(!(await client.callTool("meta")).isError);
  await spans.take(3);
  tearDown();
  spans = setUp();
  assert.ok(texts.some((text) => /OpenTelemetry failed: .*out of order/.test(text)));
});

test("spans of a client over HTTP say how the server is reached", async (t) => {
  const listening = await make().listen();
  t.after(() => listening.close());
  const client = await Client.connect(listening.url, { revisions: ["2025-11-25"] });
  t.after(() => client.close());
  await spans.take(1);
  await client.callTool("echo");
  const all = await spans.take(3);
  const { attributes } = only(all, CLIENT, "tools/call echo");
  const served = only(all, SERVER, "tools/call echo").attributes;
  assert.equal(attributes["jsonrpc.request.id"], served["jsonrpc.request.id"]);
  assert.equal(attributes["mcp.session.id"], served["mcp.session.id"]);
  assert.match(served["mcp.session.id"], /^.{8}$/);
  assert.equal(served["client.address"], "127.0.0.1");
  assert.equal(typeof served["client.port"], "number");
  assert.equal(served["network.protocol.version"], "1.1");
  assert.equal(attributes["network.transport"], "tcp");
  assert.equal(attributes["network.protocol.name"], "http");
  assert.equal(attributes["server.address"], "127.0.0.1");
  assert.equal(attributes["server.port"], listening.port);
  assert.equal(only(all, SERVER, "tools/call echo").attributes["network.transport"], "tcp");
});

/** A server on stdio that prints its spans to stderr. */
const PROGRAM = `
  import { Server } from "mcpline";
  import { inSpan, setUp } from "./test/tracing.mjs";
  const spans = setUp();
  const onEnd = spans.onEnd.bind(spans);
  spans.onEnd = (span) => {
    onEnd(span);
    const { spanId, traceId } = span.spanContext();
    console.error("SPAN " + JSON.stringify({ name: span.name, spanId, traceId, parent: span.parentSpanContext?.spanId,
      attributes: span.attributes }));
  };
  const server = new Server({ name: "child", version: "1" });
  server.tool("echo", {}, () => inSpan("inner", () => "x"));
  await server.run();
`;

test("a trace continues in a server of another process", async () => {
  const printed = [];
  const stderr = (line) => {
    if (line.startsWith("SPAN ")) {
      printed.push(JSON.parse(line.slice(5)));
    }
  };
  const args = ["--input-type=module", "--eval", PROGRAM];
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const client = await Client.spawn(process.execPath, args, { cwd, stderr });
  try {
    await client.callTool("echo");
    while (printed.length < 3) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  } finally {
    await client.close();
  }
  const sent = only(await spans.take(1), CLIENT, "tools/call echo");
  assert.equal(sent.attributes["network.transport"], "pipe");
  const [received, inner] = ["tools/call echo", "inner"].map((wanted) => printed.find(({ name }) => name === wanted));
  assert.equal(received.parent, idOf(sent));
  assert.equal(received.attributes["network.transport"], "pipe");
  assert.equal(inner.parent, received.spanId);
  assert.deepEqual([received.traceId, inner.traceId], [traceOf(sent), traceOf(sent)]);
});

test("spans of the last requests end before a server on stdio has ended", async () => {
  const child = new Child(`${PROGRAM} console.error("open " + spans.open.size);`);
  await child.open();
  child.call(1, "echo");
  child.process.stdin.end();
  await child.receive();
  await child.ended;
  assert.match(child.stderr, /SPAN .*"tools\/call echo"/);
  assert.match(child.stderr, /open 0/);
});

test("a client or server with `tracing: false` makes no spans", async (t) => {
  const quiet = await Client.memory(make(), { tracing: false });
  t.after(() => quiet.close());
  await spans.take(1);
  const { content } = await quiet.callTool("meta");
  assert.equal(JSON.parse(content[0].text).traceparent, undefined);
  assert.deepEqual(
    (await spans.take(1)).map(({ kind }) => kind),
    [SERVER],
  );
  const client = await Client.memory(asking(), { elicit: () => "accept", tracing: false });
  t.after(() => client.close());
  await client.callTool("elicits");
  assert.ok((await spans.take(3)).every(({ kind, name }) => kind === CLIENT || !name.startsWith("elicitation")));
  const server = make({ tracing: false });
  server.tool("elicits", {}, async (_, ctx) => (await ctx.elicit("Sure?")).action);
  let params;
  const elicit = (given) => {
    params = given;
    return "accept";
  };
  const traced = await Client.memory(server, { elicit });
  t.after(() => traced.close());
  await traced.callTool("elicits");
  assert.equal(params._meta?.traceparent, undefined);
  const kinds = (await spans.take(2)).map(({ kind, name }) => [kind, name]);
  assert.deepEqual(kinds, [
    [SERVER, "elicitation/create"],
    [CLIENT, "tools/call elicits"],
  ]);
});

test("records of requests have the trace of their span", async (t) => {
  const records = [];
  const server = make({ onRequestEnd: ({ method, traceId }) => records.push([method, traceId]) });
  const client = await Client.memory(server, { tracing: false, revisions: ["2025-11-25"] });
  t.after(() => client.close());
  await client.callTool("echo");
  await client.listTools();
  const taken = await spans.take(4);
  while (records.length < 3) {
    await new Promise(setImmediate);
  }
  const traceIdOf = (name) => traceOf(only(taken, SERVER, name));
  assert.deepEqual(records, [
    ["initialize", traceIdOf("initialize")],
    ["tools/call", traceIdOf("tools/call echo")],
    ["tools/list", traceIdOf("tools/list")],
  ]);
});

test("spans have arguments and results on request", async (t) => {
  const server = make({ settings: { spanContents: true } });
  server.use({ methods: ["prompts/get"] }, redaction({ members: ["iban"] }));
  const client = await connected(t, server, { spanContents: true });
  await client.callTool("echo", { text: "hello", password: SECRET, iban: "DE1" });
  const all = await spans.take(3);
  for (const [kind, iban] of [
    [CLIENT, "DE1"],
    [SERVER, "[redacted]"],
  ]) {
    const { attributes } = only(all, kind, "tools/call echo");
    const recorded = JSON.parse(attributes["gen_ai.tool.call.arguments"]);
    assert.deepEqual(recorded, { text: "hello", password: "[redacted]", iban });
    const result = JSON.parse(attributes["gen_ai.tool.call.result"]);
    assert.equal(result.content[0].text, "hello");
  }
});

test("`tracing` must be a boolean", async () => {
  assert.throws(() => make({ tracing: "yes" }), UsageError);
  await assert.rejects(Client.memory(make(), { tracing: 1 }), UsageError);
});

test("a program without OpenTelemetry sends no trace context", async (t) => {
  tearDown();
  t.after(() => {
    spans = setUp();
  });
  const server = make();
  const client = await Client.memory(server);
  t.after(() => client.close());
  const { content } = await client.callTool("meta");
  const { traceparent, tracestate, baggage } = JSON.parse(content[0].text);
  assert.deepEqual([traceparent, tracestate, baggage], [undefined, undefined, undefined]);
  assert.equal(liveSpans.size, 0);
});

test("a server for which OpenTelemetry was set up later traces the requests of its mounts", async (t) => {
  tearDown();
  const server = make();
  await called(server.fetch, "meta");
  spans = setUp();
  t.after(() => undefined);
  await called(server.fetch, "meta");
  only(await spans.take(1), SERVER, "tools/call meta");
});

test("requests are traced without a context manager", async (t) => {
  tearDown();
  spans = setUp({ contexts: false });
  t.after(() => {
    tearDown();
    spans = setUp();
  });
  const client = await connected(t, make());
  await client.callTool("meta");
  const all = await spans.take(2);
  assert.equal(parentOf(only(all, SERVER, "tools/call meta")), idOf(only(all, CLIENT, "tools/call meta")));
});

test("an OpenTelemetry that fails does not fail requests", async (t) => {
  tearDown();
  const fails = () => {
    throw new Error("out of order");
  };
  spans = setUp({ propagator: { inject: fails, extract: fails, fields: () => [] } });
  const texts = warned(t);
  const { onStart } = spans;
  const client = await Client.memory(make());
  t.after(() => client.close());
  assert.ok(!(await client.callTool("meta")).isError);
  await spans.take(3);
  spans.onStart = fails;
  assert.ok(!(await client.callTool("meta")).isError);
  await new Promise((resolve) => setTimeout(resolve, 20));
  spans.onStart = onStart;
  tearDown();
  spans = setUp();
  assert.ok(texts.some((text) => /OpenTelemetry failed: .*out of order/.test(text)));
});

test("many requests at once leave no spans behind", async (t) => {
  const client = await connected(t, make());
  const call = async (index) => {
    const controller = new AbortController();
    const { signal } = controller;
    const calling = client.callTool(index % 2 === 0 ? "echo" : "hangs", {}, { signal });
    if (index % 2 !== 0) {
      setTimeout(() => controller.abort(), index % 7);
    }
    await calling.catch(() => undefined);
  };
  await Promise.all(Array.from({ length: 400 }, (_, index) => call(index)));
  await new Promise((resolve) => setTimeout(resolve, 20));
  // Calls that were cancelled before they were sent have no span at the server.
  await spans.take(600);
});
