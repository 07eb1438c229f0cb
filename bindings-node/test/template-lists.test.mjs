// Resources that a template lists: the option `list` of `server.resource`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, RpcError, Server, UsageError } from "mcpline";

async function connected(t, server, options) {
  const client = await Client.memory(server, options);
  t.after(() => client.close());
  return client;
}

function make(t, options = {}) {
  const server = new Server({ name: "logs", version: "1", ...options });
  t.after(() => server.close());
  return server;
}

const uris = async (client) => (await client.listResources()).map(({ uri }) => uri);

test("resources that templates list follow the registered ones", async (t) => {
  const server = make(t);
  const seen = [];
  server.resource("note://{id}", { name: "note", list: () => ["note://1", "other://1"] }, ({ id }) => id);
  server.resource(
    "log://{day}",
    {
      name: "log",
      list: async (ctx) => {
        seen.push(ctx.revision);
        return [
          { uri: "log://monday", name: "monday", title: "Monday", size: 7 },
          { uri: "log://today", name: "registered" },
        ];
      },
    },
    ({ day }) => day,
  );
  server.resource("page://{id}", { name: "page", list: () => ({ resources: ["page://1"] }) }, ({ id }) => id);
  server.resource("none://{id}", { name: "none", list: () => undefined }, ({ id }) => id);
  server.resource("log://today", { name: "today" }, () => "today");
  for (const protocolVersion of ["2025-06-18", "2026-07-28"]) {
    const client = await connected(t, server, { revisions: [protocolVersion] });
    const resources = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ["log://today", "note://1", "log://monday", "page://1"],
    );
    const { name, title, size } = resources[2];
    assert.deepEqual({ name, title, size }, { name: "monday", title: "Monday", size: 7 });
    assert.equal(resources[1].name, "note://1");
    assert.equal(seen.at(-1), client.protocolVersion);
    assert.equal((await client.readResource("log://monday")).contents[0].text, "monday");
  }
});

test("the error of a list is that of the request, and is not disclosed", async (t) => {
  const failed = [];
  const server = make(t, { onError: (_, { kind, name }) => void failed.push(`${kind} ${name}`) });
  let list = () => {
    throw new Error("disk 7 is on fire");
  };
  server.resource("log://{day}", { name: "log", list: () => list() }, ({ day }) => day);
  const client = await connected(t, server);
  await assert.rejects(client.listResources(), (error) => !error.message.includes("disk 7"));
  assert.deepEqual(failed, ["resource_list log://{day}"]);
  list = () => {
    throw new RpcError(-31000, "ask again tomorrow");
  };
  await assert.rejects(client.listResources(), { code: -31000 });
  list = () => 7;
  await assert.rejects(client.listResources(), { code: -32603 });
  list = () => ["log://monday"];
  assert.deepEqual(await uris(client), ["log://monday"]);
});

test("clients are notified, and a removed template lists nothing", async (t) => {
  const server = make(t);
  server.resource("log://{day}", { name: "log", list: () => ["log://monday"] }, ({ day }) => day);
  const changed = Promise.withResolvers?.() ?? deferred();
  const client = await connected(t, server, { onResourcesChanged: () => changed.resolve() });
  assert.deepEqual(await uris(client), ["log://monday"]);
  // Waiting for a notification in the same process does not keep the program alive.
  const alive = setInterval(() => {}, 1_000);
  t.after(() => clearInterval(alive));
  server.notifyResourceListChanged();
  await changed.promise;
  assert.ok(server.removeResource("log://{day}"));
  assert.deepEqual(await uris(client), []);
});

test("lists of mounted servers have the prefix of the mount", async (t) => {
  const inner = make(t);
  inner.resource("log://{day}", { name: "log", list: () => ["log://monday"] }, ({ day }) => day);
  const outer = make(t);
  outer.mount(inner, { prefix: "inner" });
  const client = await connected(t, outer);
  assert.deepEqual(await uris(client), ["log://inner/monday"]);
  outer.unmount(inner);
  assert.deepEqual(await uris(client), []);
});

test("a list must be a function of a template", (t) => {
  const server = make(t);
  assert.throws(() => server.resource("log://{day}", { name: "log", list: ["log://1"] }, () => ""), UsageError);
  assert.throws(() => server.resource("log://today", { name: "log", list: () => [] }, () => ""), UsageError);
});

function deferred() {
  let resolve;
  const promise = new Promise((resolved) => {
    resolve = resolved;
  });
  return { promise, resolve };
}
