// Mistakes of authors are a UsageError at the place of the mistake.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, InputRequired, RpcError, Server, UsageError } from "mcpline";

const input = { type: "object" };
const nested = { type: "object", properties: { address: { type: "object" } } };
const text = (result) => result.content[0].text;

function make() {
  return new Server({ name: "authors", version: "1" });
}

test("resources need a valid URI", () => {
  const server = make();
  const wrong = { "": /empty/, notes: /scheme/, "my_app://x": /'_'/, "app://x/y z": /' ' at byte 9/ };
  for (const [uri, message] of Object.entries(wrong)) {
    assert.throws(() => server.resource(uri, { name: "r" }, () => ""), { name: "UsageError", message });
  }
  assert.throws(() => server.resource("notes/{id}", { name: "t" }, () => ""), {
    name: "UsageError",
    message: /scheme/,
  });
  server.resource("memo:1", { name: "r" }, () => "");
  assert.throws(() => server.resource("memo:1", { name: "r" }, () => ""), { name: "UsageError", message: /already/ });
});

test("prompt names are unique", () => {
  const server = make();
  server.prompt("review", {}, () => "one");
  assert.throws(() => server.prompt("review", {}, () => "two"), { name: "UsageError", message: /review/ });
});

test("annotations and _meta are validated at registration", () => {
  const server = make();
  const wrong = { priority: 2, audience: ["nobody"], lastModified: "yesterday" };
  for (const [member, value] of Object.entries(wrong)) {
    const definition = { name: "r", annotations: { [member]: value } };
    const message = new RegExp(`annotations.${member}`);
    assert.throws(() => server.resource("test://a", definition, () => ""), { name: "UsageError", message });
  }
  for (const key of ["dev.mcp/a", "org.modelcontextprotocol.api/a"]) {
    const meta = { [key]: 1 };
    assert.throws(() => server.tool("tool", { input, meta }, () => ""), { name: "UsageError", message: /_meta/ });
    assert.throws(() => server.prompt("prompt", { meta }, () => ""), { name: "UsageError", message: /_meta/ });
    assert.throws(() => server.resource("test://a", { name: "r", meta }, () => ""), {
      name: "UsageError",
      message: /_meta/,
    });
  }
  const meta = { "example.com/a": 1, "io.modelcontextprotocol/ui": 2, "openai/toolInvocation/invoked": "x" };
  server.tool("tool", { input, meta }, () => "");
  // Malformed, or already in use.
  server.prompt("prompt", { meta: { _fastmcp: { tags: [] } } }, () => "");
});

test("a tool takes an object, and its headers follow the rules", () => {
  const server = make();
  for (const schema of [true, { type: "string" }, { type: ["object"] }]) {
    assert.throws(() => server.tool("tool", { input: schema }, () => ""), UsageError);
  }
  const marked = (header, type = "string") => ({ type, "x-mcp-header": header });
  for (const properties of [
    { a: marked("") },
    { a: marked("a b") },
    { a: marked("A", "number") },
    { a: marked("A"), b: marked("a") },
    { a: { type: "array", items: marked("A") } },
  ]) {
    const message = /x-mcp-header/;
    assert.throws(() => server.tool("tool", { input: { type: "object", properties } }, () => ""), {
      name: "UsageError",
      message,
    });
  }
});

const HI = { type: "text", text: "hi" };
const LONELY = { role: "user", content: [{ type: "tool_result", toolUseId: "a", content: [] }] };
const INPUT_REQUESTS = {
  "requestedSchema.properties.address": (ctx) => ctx.elicit("Where?", nested),
  "url: ": (ctx) => ctx.elicitUrl("Go", "not a url"),
  "messages[0]: ": (ctx) => ctx.sample({ messages: [LONELY], maxTokens: 1 }),
  "`role`": (ctx) => ctx.sample({ messages: [{ role: "system", content: HI }], maxTokens: 1 }),
  "modelPreferences.speedPriority": (ctx) =>
    ctx.sample({ messages: [], maxTokens: 1, modelPreferences: { speedPriority: 2 } }),
};

test("an input request that no client could answer fails at once", async () => {
  const server = make();
  server.tool("asks", { input }, async ({ location }, ctx) => {
    const error = await INPUT_REQUESTS[location](ctx).catch((error) => error);
    assert.ok(error instanceof UsageError, String(error));
    return error.message;
  });
  const host = { elicit: () => ({ action: "decline" }), sample: () => ({ role: "user", model: "m", content: HI }) };
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const client = await Client.memory(server, { ...host, revisions: [revision] });
    for (const location of Object.keys(INPUT_REQUESTS)) {
      const said = text(await client.callTool("asks", { location }));
      assert.ok(said.includes(location), said);
    }
    await client.close();
  }
});

test("invalid return values and errors are not disclosed to the client", async () => {
  const server = make();
  const where = { method: "elicitation/create", params: { message: "Where?", requestedSchema: nested } };
  server.tool("returns", { input }, () => new InputRequired({ where }));
  server.tool("reserved", { input }, () => {
    throw new RpcError(-32050, "too late");
  });
  const client = await Client.memory(server, { elicit: () => ({ action: "decline" }) });
  const result = await client.callTool("returns");
  assert.equal(result.isError, true);
  assert.equal(text(result), "Error executing tool returns");
  await assert.rejects(
    client.callTool("reserved"),
    (error) => error.code === -32603 && error.message.includes("too late"),
  );
  await client.close();
});
