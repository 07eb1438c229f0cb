// Extensions, which add methods, settings and result types to a server or a client.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, ExtendedResult, Extension, RpcError, Server, UsageError } from "mcpline";
import * as z from "zod";

import { posted } from "./peer.mjs";

const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const STAMPS = "com.example/stamps";
const NEEDED = { requiredCapabilities: { extensions: { [STAMPS]: {} } } };

function make() {
  const used = [];
  const stamps = new Extension(STAMPS, { settings: { colors: 3 }, resultTypes: ["acme/receipt"] })
    .onRequest("acme/issue", { params: z.object({ color: z.string() }) }, ({ color }, ctx) => ({
      stamp: color,
      for: ctx.clientExtension(STAMPS),
      other: ctx.clientExtension("com.example/x") ?? null,
    }))
    .onNotification("acme/used", {}, ({ color }) => void used.push(color))
    .register((server) => {
      server.tool("collect", {}, (_, ctx) => {
        ctx.requireExtension(STAMPS);
        return "collected";
      });
      server.tool("buy", { input: z.object({ price: z.int() }) }, ({ price }) => {
        return new ExtendedResult("acme/receipt", { price });
      });
    });
  const server = new Server({ name: "shop", version: "1.0.0", extensions: [stamps] });
  return { server, used };
}

async function reach(t, server, revision, extensions = []) {
  const client = await Client.memory(server, { revisions: [revision], extensions });
  t.after(() => client.close());
  return client;
}

const collector = { identifier: STAMPS, settings: { album: "blue" } };

for (const revision of REVISIONS) {
  test(`both sides find an extension: ${revision}`, { timeout: 60_000 }, async (t) => {
    const { server, used } = make();
    const client = await reach(t, server, revision, [collector]);
    assert.deepEqual(client.serverCapabilities.extensions, { [STAMPS]: { colors: 3 } });
    const { stamp, for: settings, other } = await client.request("acme/issue", { color: "red" });
    assert.deepEqual([stamp, settings, other], ["red", { album: "blue" }, null]);
    const { content } = await client.callTool("collect");
    assert.equal(content[0].text, "collected");
    await client.notify("acme/used", { color: "red" });
    await client.callTool("collect");
    assert.deepEqual(used, ["red"]);
  });

  test(`clients without the extension are refused: ${revision}`, { timeout: 60_000 }, async (t) => {
    const { server, used } = make();
    const client = await reach(t, server, revision);
    for (const refused of [client.request("acme/issue", { color: "red" }), client.callTool("collect")]) {
      await assert.rejects(refused, (error) => {
        assert.equal(error.code, -32021);
        assert.deepEqual(error.data, NEEDED);
        return true;
      });
    }
    const none = { "io.modelcontextprotocol/clientCapabilities": {} };
    await client.notify("acme/used", { color: "red", _meta: none });
    await client.listTools();
    // Sent after the one that was dropped.
    const declaring = await reach(t, server, revision, [collector]);
    await declaring.notify("acme/used", { color: "blue" });
    await declaring.callTool("collect");
    assert.deepEqual(used, ["blue"]);
  });

  test(`an extension of a client serves requests of servers: ${revision}`, { timeout: 60_000 }, async (t) => {
    const server = new Server({ name: "shop", version: "1.0.0" });
    server.onRequest("acme/ask", {}, (_, ctx) => ctx.sendRequest("acme/album"));
    const album = { identifier: STAMPS, onRequest: { "acme/album": () => ({ album: "blue" }) } };
    const client = await reach(t, server, revision, [album]);
    assert.equal((await client.request("acme/ask")).album, "blue");
  });
}

test("registrations take effect on servers that the extension was added to before", { timeout: 60_000 }, async (t) => {
  const stamps = new Extension(STAMPS);
  const make = (name) => new Server({ name, version: "1.0.0", extensions: [stamps] });
  const servers = ["shop", "bank"].map(make);
  const used = [];
  stamps
    .onRequest("acme/issue", {}, ({ color }) => ({ stamp: color }))
    .onNotification("acme/used", {}, ({ color }) => void used.push(color))
    .register((server) => server.tool("collect", {}, () => "collected"));
  for (const [index, server] of [...servers, make("later")].entries()) {
    const client = await reach(t, server, "2026-07-28", [collector]);
    assert.equal((await client.request("acme/issue", { color: "red" })).stamp, "red");
    await client.notify("acme/used", { color: "red" });
    assert.equal((await client.callTool("collect")).content[0].text, "collected");
    assert.equal(used.length, index + 1);
    // Also while a server runs.
    stamps.onRequest(`acme/${index}`, {}, () => ({ index }));
    assert.equal((await client.request(`acme/${index}`)).index, index);
    const other = await reach(t, server, "2026-07-28");
    await assert.rejects(other.request("acme/issue", { color: "red" }), { code: -32021, data: NEEDED });
  }
});

test("a later registration that a server refuses is an error and is not kept", { timeout: 60_000 }, () => {
  const stamps = new Extension(STAMPS);
  const make = () => new Server({ name: "shop", version: "1.0.0", extensions: [stamps] });
  const server = make();
  for (const method of ["tools/call", ""]) {
    assert.throws(() => stamps.onRequest(method, {}, () => ({})), UsageError);
  }
  make();
  server.onRequest("acme/taken", {}, () => ({}));
  assert.throws(() => stamps.onRequest("acme/taken", {}, () => ({})), /acme\/taken/);
});

test("an extension registers nothing at a server that could not be created", { timeout: 60_000 }, () => {
  const stamps = new Extension(STAMPS).onRequest("tools/call", {}, () => ({}));
  assert.throws(() => new Server({ name: "shop", version: "1.0.0", extensions: [stamps] }), UsageError);
  const registered = [];
  stamps.register((server) => void registered.push(server));
  assert.deepEqual(registered, []);
});

test("an extension keeps no server alive", { timeout: 60_000 }, () => {
  const program = `
    import { Extension, Server } from "mcpline";
    const stamps = new Extension("${STAMPS}");
    const make = () => new WeakRef(new Server({ name: "shop", version: "1.0.0", extensions: [stamps] }));
    const reference = make();
    for (let turn = 0; turn < 100 && reference.deref() !== undefined; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      gc();
    }
    stamps.register((server) => console.log(server.constructor.name));
    console.log(reference.deref() === undefined);
  `;
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const options = ["--expose-gc", "--input-type=module", "--eval", program];
  const { stdout, stderr } = spawnSync(process.execPath, options, { cwd, encoding: "utf8" });
  assert.equal(stdout, "true\n", stderr);
});

test("handlers named like members of every object are found", { timeout: 60_000 }, async (t) => {
  const server = new Server({ name: "shop", version: "1.0.0" });
  server.onRequest("acme/ask", { params: z.object({ method: z.string() }) }, ({ method }, ctx) =>
    ctx.sendRequest(method, { color: "red" }),
  );
  const issue = ({ color }) => ({ stamp: color });
  // Each table inherits `constructor` and `toString`; only the last one has handlers of these names.
  const client = await Client.memory(server, {
    revisions: ["2026-07-28"],
    onRequest: { "acme/other": () => ({}) },
    extensions: [
      { identifier: "com.example/x", onRequest: { "acme/another": () => ({}) } },
      { identifier: STAMPS, onRequest: { constructor: issue, toString: issue } },
    ],
  });
  t.after(() => client.close());
  for (const method of ["constructor", "toString"]) {
    assert.equal((await client.request("acme/ask", { method })).stamp, "red", method);
  }
});

test("result types named like members of every object are resolved", { timeout: 60_000 }, async (t) => {
  const stamps = new Extension(STAMPS, { resultTypes: ["constructor"] });
  stamps.register((server) => server.tool("buy", {}, () => new ExtendedResult("constructor")));
  const server = new Server({ name: "shop", version: "1.0.0", extensions: [stamps] });
  const bought = () => ({ content: [{ type: "text", text: "bought" }] });
  const client = await reach(t, server, "2026-07-28", [
    { identifier: "com.example/x", onResultType: { "acme/other": bought } },
    { identifier: STAMPS, onResultType: { constructor: bought } },
  ]);
  assert.equal((await client.callTool("buy")).content[0].text, "bought");
});

test("a result of an extension's type is resolved", { timeout: 60_000 }, async (t) => {
  const received = [];
  const redeem = async (receipt) => {
    received.push(receipt);
    const { stamp } = await client.request("acme/issue", { color: "gold" });
    return { content: [{ type: "text", text: `${receipt.result.price} for ${stamp}` }] };
  };
  const { server } = make();
  const extension = { identifier: STAMPS, onResultType: { "acme/receipt": redeem } };
  const client = await reach(t, server, "2026-07-28", [extension]);
  const { content } = await client.callTool("buy", { price: 7 });
  assert.equal(content[0].text, "7 for gold");
  const [{ method, params, result }] = received;
  assert.deepEqual([method, params.name, result.resultType], ["tools/call", "buy", "acme/receipt"]);
});

test("a result that can't be resolved fails its call", { timeout: 60_000 }, async (t) => {
  const fail = () => {
    throw new RpcError(-7, "sold out");
  };
  const { server } = make();
  const extension = { identifier: STAMPS, onResultType: { "acme/receipt": fail } };
  const client = await reach(t, server, "2026-07-28", [extension]);
  await assert.rejects(client.callTool("buy", { price: 7 }), { kind: "rpc_error", code: -7, message: /sold out/ });
  assert.equal((await client.request("acme/issue", { color: "red" })).stamp, "red");
});

test("the error of a resolver's request is that of the call", { timeout: 60_000 }, async (t) => {
  const { server } = make();
  server.onRequest(
    "acme/slow",
    {},
    (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)),
  );
  const redeem = () => client.request("acme/slow", {}, { timeout: 10 });
  const extension = { identifier: STAMPS, onResultType: { "acme/receipt": redeem } };
  const client = await reach(t, server, "2026-07-28", [extension]);
  await assert.rejects(client.callTool("buy", { price: 7 }), {
    kind: "request_timed_out",
    message: /was resolved/,
    waited: 10,
    outcomeUnknown: true,
    retrySafe: false,
  });
});

test("other clients are not sent a result of an extension's type", { timeout: 60_000 }, async (t) => {
  const { server } = make();
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const client = await reach(t, server, revision);
    await assert.rejects(client.callTool("buy", { price: 7 }), { code: -32021, data: NEEDED });
  }
});

test("declarations of another shape are ignored", { timeout: 60_000 }, async () => {
  const { server } = make();
  // A client sends no such declarations.
  for (const extensions of [[1], { [STAMPS]: [] }, { [STAMPS]: null }, 7]) {
    const init = posted("tools/call", { name: "collect", arguments: {} }, { capabilities: { extensions } });
    const response = await server.fetch(new Request("http://localhost/mcp", init));
    assert.equal((await response.json()).error.code, -32021, JSON.stringify(extensions));
  }
  const init = posted(
    "tools/call",
    { name: "collect", arguments: {} },
    { capabilities: { extensions: { [STAMPS]: {} } } },
  );
  const response = await server.fetch(new Request("http://localhost/mcp", init));
  assert.equal((await response.json()).error, undefined);
  await server.close();
});

test("invalid extensions are rejected", { timeout: 60_000 }, async () => {
  const make = (...extensions) => new Server({ name: "shop", version: "1.0.0", extensions });
  const stamps = () => new Extension(STAMPS);
  const refused = (reason) => (error) => error instanceof UsageError && reason.test(error.message);
  assert.throws(() => make(new Extension("stamps")), refused(/prefix/));
  assert.throws(() => make(stamps(), stamps()), refused(/already added/));
  const twice = new Extension(STAMPS, { resultTypes: ["a", "a"] });
  assert.throws(() => make(twice), refused(/another's already/));
  const taken = stamps().onRequest("tools/call", {}, () => ({}));
  assert.throws(() => make(taken), refused(/protocol defines it/));
  const other = stamps().register((server) => {
    server.onRequest("acme/a", { extension: "com.example/x" }, () => ({}));
  });
  assert.throws(() => make(other), refused(/does not declare/));
  const server = make();
  for (const [extensions, reason] of [
    [[{ identifier: "stamps" }], /prefix/],
    [[collector, collector], /already added/],
    [[{ identifier: STAMPS, onResultType: { complete: () => ({}) } }], /protocol defines it/],
    [[{ identifier: STAMPS, onRequest: { "host/x": () => ({}) } }], /library's own/],
  ]) {
    await assert.rejects(Client.memory(server, { extensions }), refused(reason));
  }
});
