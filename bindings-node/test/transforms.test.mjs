// Transformed tools: what clients see of them, and what their handlers get.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server } from "mcpline";
import * as z from "zod";

function searchServer() {
  const server = new Server({ name: "web", version: "1" });
  const input = z.object({
    q: z.string(),
    site: z.string(),
    limit: z.coerce.number().int().default(10),
    debug: z.boolean().optional(),
  });
  server.tool("search", { input }, (args) => JSON.stringify(args));
  return server;
}

const TRANSFORM = {
  name: "find",
  description: "Finds pages of the manual.",
  arguments: {
    q: { name: "query", description: "What to find" },
    site: { fixed: "manual.example.com" },
    limit: { default: 5 },
    debug: { hidden: true },
  },
};

async function connected(t, server) {
  const client = await Client.memory(server);
  t.after(() => client.close());
  return client;
}

async function callOf(client, name, args) {
  const result = await client.callTool(name, args);
  return { isError: result.isError === true, text: result.content[0].text };
}

test("a tool is transformed", async (t) => {
  const server = searchServer();
  server.transformTool("search", TRANSFORM);
  const client = await connected(t, server);
  const [tool] = await client.listTools();
  assert.deepEqual([tool.name, tool.description], ["find", "Finds pages of the manual."]);
  assert.deepEqual(Object.keys(tool.inputSchema.properties), ["query", "limit"]);
  assert.deepEqual(tool.inputSchema.required, ["query"]);
  const found = await callOf(client, "find", { query: "a" });
  assert.deepEqual(JSON.parse(found.text), { q: "a", site: "manual.example.com", limit: 5 });
  // The schema library converts values, as it does for tools that are not transformed.
  const converted = await callOf(client, "find", { query: "a", limit: "7" });
  assert.equal(JSON.parse(converted.text).limit, 7);
  const refused = await callOf(client, "find", { query: "a", debug: true });
  assert.ok(refused.isError && refused.text.includes("debug"), refused.text);
  assert.equal(server.removeTool("find"), true);
});

test("tools of a mounted server are transformed", async (t) => {
  const server = new Server({ name: "main", version: "1" });
  const mounted = searchServer();
  server.mount(mounted, { prefix: "web", tools: { search: TRANSFORM } });
  const client = await connected(t, server);
  const found = await callOf(client, "web_find", { query: "a" });
  assert.equal(JSON.parse(found.text).q, "a");
  mounted.updateTool("search", { title: "Search" });
  const [tool] = await client.listTools();
  assert.deepEqual([tool.name, tool.title], ["web_find", "Search"]);
});

test("impossible transforms are refused", () => {
  const refusals = [
    [{ arguments: { query: { name: "q" } } }, /no argument "query"/],
    [{ arguments: { q: { hidden: true } } }, /is required/],
    [{ arguments: { site: { fixed: 1 } } }, /does not match its schema/],
    [{ descripton: "x" }, /did you mean `description`/],
    [{ arguments: { q: { fixd: 1 } } }, /did you mean `fixed`/],
    [{ arguments: ["q"] }, /must be an object/],
  ];
  for (const [transform, reason] of refusals) {
    const server = searchServer();
    assert.throws(() => server.transformTool("search", transform), reason);
    const main = new Server({ name: "main", version: "1" });
    assert.throws(() => main.mount(server, { tools: { search: transform } }), reason);
  }
});
