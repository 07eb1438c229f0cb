// Resources and resource templates, which are registered by the same method.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ResourceNotFoundError, RpcError, Server } from "mcpline";

function make(t) {
  const server = new Server({ name: "notes", version: "1" });
  t.after(() => server.close());
  return server;
}

async function connected(t, server) {
  const client = await Client.memory(server);
  t.after(() => client.close());
  return client;
}

test("a URI with variables is registered as a resource template", async (t) => {
  const server = make(t);
  server.resource("note://all", { name: "all" }, () => "all notes");
  server.resource("note://{id}", { name: "note", complete: { id: ["a1", "b2"] } }, ({ id }) => `note ${id}`);
  server.resource("file:///{+path*}", { name: "file" }, ({ path }) => JSON.stringify(path));
  const client = await connected(t, server);
  assert.deepEqual(
    (await client.listResources()).map(({ uri }) => uri),
    ["note://all"],
  );
  assert.deepEqual((await client.listResourceTemplates()).map(({ uriTemplate }) => uriTemplate).sort(), [
    "file:///{+path*}",
    "note://{id}",
  ]);
  const read = async (uri) => (await client.readResource(uri)).contents[0].text;
  assert.equal(await read("note://all"), "all notes");
  assert.equal(await read("note://7"), "note 7");
  assert.equal(await read("file:///a,b"), '["a","b"]');
  const { completion } = await client.complete({ template: "note://{id}" }, { name: "id", value: "b" });
  assert.deepEqual(completion.values, ["b2"]);
});

test("the handler of a resource without variables gets an empty object and the context", async (t) => {
  const server = make(t);
  server.resource("note://mine", { name: "mine" }, (variables, ctx) => ({ variables, revision: ctx.revision }));
  const client = await connected(t, server);
  const { contents } = await client.readResource("note://mine");
  assert.deepEqual(JSON.parse(contents[0].text), { variables: {}, revision: client.protocolVersion });
});

test("a handler says that a resource does not exist", async (t) => {
  const unexpected = [];
  const server = new Server({ name: "notes", version: "1", onError: (error) => unexpected.push(error) });
  t.after(() => server.close());
  server.resource("note://{id}", { name: "note" }, () => {
    throw new ResourceNotFoundError();
  });
  server.resource("other://fixed", { name: "fixed" }, async () => {
    throw new ResourceNotFoundError("note://other");
  });
  server.tool("tool", {}, () => {
    throw new ResourceNotFoundError("note://other");
  });
  for (const [revision, code] of [
    ["2025-11-25", -32002],
    ["2026-07-28", -32602],
  ]) {
    const client = await Client.memory(server, { revisions: [revision] });
    t.after(() => client.close());
    for (const [read, uri] of [
      ["note://a%20b", "note://a%20b"],
      ["other://fixed", "note://other"],
    ]) {
      await assert.rejects(client.readResource(read), (error) => {
        assert.ok(error instanceof RpcError);
        const { rpcMessage: message, data } = error;
        assert.deepEqual(
          { code: error.code, message, data },
          { code, message: `Resource not found: ${uri}`, data: { uri } },
        );
        return true;
      });
    }
    const { isError, content } = await client.callTool("tool");
    assert.deepEqual([isError, content[0].text], [true, "Resource not found: note://other"]);
  }
  assert.deepEqual(unexpected, []);
});

test("completions of a resource without variables are refused", (t) => {
  const server = make(t);
  assert.throws(() => server.resource("note://all", { name: "all", complete: { id: [] } }, () => ""), {
    name: "UsageError",
    message: /unknown option `complete`/,
  });
});

test("clients cache resources as their hints say", async (t) => {
  const server = make(t);
  const reads = [];
  const read = (_, ctx) => {
    reads.push(ctx.uri);
    return "contents";
  };
  server.resource("note://kept", { name: "kept", cache: { ttlMs: 3_600_000, cacheScope: "public" } }, read);
  server.resource("note://named/{name}", { name: "named", cache: { ttlMs: 3_600_000 } }, read);
  server.resource("note://fresh", { name: "fresh" }, read);
  const client = await connected(t, server);
  for (let round = 0; round < 2; round++) {
    for (const uri of ["note://kept", "note://named/a", "note://fresh"]) {
      const { contents, ttlMs, cacheScope } = await client.readResource(uri);
      assert.equal(contents[0].text, "contents");
      const hints = uri === "note://fresh" ? [0, "private"] : [3_600_000, uri === "note://kept" ? "public" : "private"];
      assert.deepEqual([ttlMs, cacheScope], hints);
    }
  }
  assert.deepEqual(reads, ["note://kept", "note://named/a", "note://fresh", "note://fresh"]);
  const wrong = (cache) => () => server.resource("note://wrong", { name: "wrong", cache }, read);
  assert.throws(wrong({ ttl: 5 }), /`cache`: unknown option `ttl`/);
  assert.throws(wrong({ ttlMs: "5" }), /`cache.ttlMs` must be a whole number/);
});
