// Servers that are mounted in others; features that are enabled, disabled and changed while clients are connected.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";

import { Client, Server, UsageError } from "mcpline";

import { messageOf, posted } from "./peer.mjs";

const make = (name) => new Server({ name, version: "1" });

/** A server with one feature of each kind. */
function notes() {
  const server = make("notes");
  const input = { type: "object", properties: { query: { type: "string" } } };
  server.tool("search", { input }, async ({ query }) => `found ${query}`);
  server.resource("note://all", { name: "all" }, () => "all notes");
  server.resource("note://by/{id}", { name: "note" }, ({ id }) => `note ${id}`);
  server.prompt("review", { arguments: { id: { complete: (value) => [`${value}1`] } } }, ({ id }) => `Review ${id}.`);
  server.onRequest("notes/count", {}, () => ({ count: 2 }));
  return server;
}

async function connected(t, server) {
  const client = await Client.memory(server);
  t.after(() => client.close());
  return client;
}

const namesOf = async (client) => (await client.listTools()).map(({ name }) => name);
const textOf = (result) => result.content[0].text;

test("every kind of feature is served under the prefix", async (t) => {
  const server = make("main").mount(notes(), { prefix: "work" });
  const client = await connected(t, server);
  assert.deepEqual(await namesOf(client), ["work_search"]);
  assert.equal(textOf(await client.callTool("work_search", { query: "x" })), "found x");
  for (const [uri, text] of [
    ["note://work/all", "all notes"],
    ["note://work/by/7", "note 7"],
  ]) {
    const { contents } = await client.readResource(uri);
    assert.deepEqual([contents[0].uri, contents[0].text], [uri, text]);
  }
  const prompt = await client.getPrompt("work_review", { id: "7" });
  assert.equal(prompt.messages[0].content.text, "Review 7.");
  const { completion } = await client.complete({ prompt: "work_review" }, { name: "id", value: "4" });
  assert.deepEqual(completion.values, ["41"]);
  assert.equal((await client.request("notes/count")).count, 2);
});

test("one server is served itself and in two others", async (t) => {
  const shared = notes();
  shared.removeRequestHandler("notes/count");
  const clients = [
    [await connected(t, make("a").mount(shared, { prefix: "a" })), "a_search"],
    [await connected(t, make("b").mount(shared, { prefix: "b" })), "b_search"],
    [await connected(t, shared), "search"],
  ];
  for (const [client, name] of clients) {
    assert.equal(textOf(await client.callTool(name, { query: name })), `found ${name}`);
  }
});

test("changes of a mounted server are seen by connected clients", async (t) => {
  const inner = notes();
  const server = make("main").mount(inner, { prefix: "x" });
  const client = await connected(t, server);
  inner.tool("later", {}, () => "here");
  assert.deepEqual(await namesOf(client), ["x_search", "x_later"]);
  inner.updateTool("later", { name: "soon", description: "Soon.", title: null });
  const [, tool] = await client.listTools();
  assert.deepEqual([tool.name, tool.description], ["x_soon", "Soon."]);
  assert.equal(textOf(await client.callTool("x_soon")), "here");
  assert.equal(inner.removeTool("soon"), true);
  server.tool("own", {}, () => "own");
  assert.equal(server.removeTool("x_search"), false);
  assert.equal(textOf(await client.callTool("x_search", { query: "x" })), "found x");
  assert.equal(server.unmount(inner), true);
  assert.equal(server.unmount(inner), false);
  assert.deepEqual(await namesOf(client), ["own"]);
});

test("a snapshot keeps what it has", async (t) => {
  const inner = notes();
  const server = make("main").mount(inner, { snapshot: true });
  inner.removeTool("search");
  inner.tool("later", {}, () => "");
  const client = await connected(t, server);
  assert.deepEqual(await namesOf(client), ["search"]);
  assert.equal(textOf(await client.callTool("search", { query: "x" })), "found x");
});

test("a snapshot keeps the handlers of servers that are mounted in its origin", async (t) => {
  const inner = notes();
  const middle = make("middle").mount(inner);
  const server = make("main").mount(middle, { snapshot: true });
  inner.removeTool("search");
  const client = await connected(t, server);
  assert.equal(textOf(await client.callTool("search", { query: "x" })), "found x");
});

test("completions follow a renamed prompt", async (t) => {
  const server = notes();
  server.updatePrompt("review", { name: "check" });
  const client = await connected(t, server);
  const { completion } = await client.complete({ prompt: "check" }, { name: "id", value: "4" });
  assert.deepEqual(completion.values, ["41"]);
});

test("mounted handlers see the HTTP request and the context of the server that is served", async () => {
  const storage = new AsyncLocalStorage();
  const inner = make("inner");
  inner.tool("who", {}, (_, ctx) => `${ctx.request.method} ${String(ctx.context)} ${storage.getStore()}`);
  const server = make("main").mount(inner, { prefix: "x" });
  const request = new Request("http://localhost/mcp", posted("tools/call", { name: "x_who", arguments: {} }));
  const response = await storage.run("stored", () => server.fetch(request, { context: "given" }));
  assert.equal(textOf((await messageOf(response)).result), "POST given stored");
});

test("a call in flight keeps its HTTP request and context after its server is unmounted", async () => {
  const inner = make("inner");
  const server = make("main");
  let unmounted;
  const waiting = new Promise((resolve) => {
    unmounted = resolve;
  });
  inner.tool("who", {}, async (_, ctx) => {
    assert.equal(server.unmount(inner), true);
    await waiting;
    return `${ctx.request?.method} ${String(ctx.context)}`;
  });
  server.mount(inner);
  const request = new Request("http://localhost/mcp", posted("tools/call", { name: "who", arguments: {} }));
  const response = server.fetch(request, { context: "given" });
  unmounted();
  assert.equal(textOf((await messageOf(await response)).result), "POST given");
});

test("a request that is no longer kept is undefined at servers that were mounted in each other in turn", async () => {
  const [one, other] = [make("one"), make("other")];
  other.mount(one);
  other.unmount(one);
  one.mount(other);
  let end;
  const waiting = new Promise((resolve) => {
    end = resolve;
  });
  const seen = new Promise((resolve) => {
    one.onNotification("acme/wait", {}, async (_, ctx) => {
      await waiting;
      resolve(Promise.resolve().then(() => ctx.request));
    });
  });
  one.onNotification("acme/pass", {}, () => undefined);
  const send = async (method, params) => {
    const { body, ...init } = posted(method, params);
    const notification = { ...JSON.parse(body), id: undefined };
    const request = new Request("http://localhost/mcp", { ...init, body: JSON.stringify(notification) });
    assert.equal((await one.fetch(request)).status, 202);
  };
  await send("acme/wait");
  // More than is kept of requests that have ended.
  for (let number = 0; number < 6; number++) {
    await send("acme/pass", { text: "x".repeat(3 * 1024 * 1024) });
  }
  end();
  assert.equal(await seen, undefined);
});

test("mounts that cannot work are refused", () => {
  const server = make("main");
  assert.throws(() => server.mount(server), /which it contains/);
  assert.throws(() => server.mount({}), new UsageError("`mount` takes a server, not object"));
  assert.throws(() => server.mount(notes(), { prefix: "a b" }), /is not 1 to 64 of A-Z/);
  assert.throws(() => server.mount(notes(), { prefx: "a" }), /did you mean `prefix`/);
  assert.throws(() => server.mount(notes(), { prefix: 1 }), /`prefix` of `mount` must be a string/);
  assert.throws(() => server.mount(notes(), { snapshot: null }), /must be a boolean, not null/);
  server.mount(notes());
  assert.throws(() => server.mount(notes()), /there is a tool search already/);
});

test("features are enabled and disabled by kind, name and tag", async (t) => {
  const server = make("main");
  server.tool("wipe", { tags: ["admin"] }, () => "wiped");
  server.tool("report", { tags: ["admin", "safe"] }, () => "report");
  server.prompt("ask", { tags: ["admin"] }, () => "ask");
  server.resource("x://y", { name: "y", tags: ["admin"] }, () => "y");
  const client = await connected(t, server);
  assert.equal(server.disable({ tags: ["admin"], kinds: ["tool"] }), 2);
  assert.deepEqual(await namesOf(client), []);
  await assert.rejects(client.callTool("wipe"), { code: -32602 });
  assert.equal((await client.listPrompts()).length, 1);
  assert.equal(server.enable({ names: ["report"] }), 1);
  assert.deepEqual(await namesOf(client), ["report"]);
  assert.equal(server.disable(), 3);
  assert.equal(server.enable({ names: [] }), 0);
  assert.equal(server.enable(), 4);
  assert.throws(() => server.disable({ kinds: ["completion"] }), /cannot be selected/);
  assert.throws(() => server.disable({ tag: ["a"] }), /did you mean `tags`/);
  assert.throws(() => server.disable({ names: "report" }), /`names` of the selection must be an array of strings/);
});

test("resources and prompts are updated", async (t) => {
  const server = notes();
  server.updateResource("note://all", { title: "All", mimeType: "text/plain" });
  server.updateResource("note://by/{id}", { description: "One note" });
  server.updatePrompt("review", { name: "check", meta: { "example.com/a": 1 } });
  const client = await connected(t, server);
  const [resource] = await client.listResources();
  assert.deepEqual([resource.title, resource.mimeType], ["All", "text/plain"]);
  assert.equal((await client.listResourceTemplates())[0].description, "One note");
  const [prompt] = await client.listPrompts();
  assert.deepEqual([prompt.name, prompt._meta["example.com/a"]], ["check", 1]);
  assert.equal(server.removePrompt("check"), true);
  assert.throws(() => server.updatePrompt("check", { title: "x" }), /there is no prompt check/);
  assert.throws(() => server.updateTool("search", { input: {} }), /unknown option `input`/);
});
