// The data of tool results, and the bytes and the text of content, as clients read them.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  audio,
  bytesOf,
  Client,
  elicitForm,
  embedded,
  image,
  InputRequired,
  InvalidResponseError,
  result,
  Server,
  text,
  textOf,
  ToolError,
  UsageError,
} from "mcpline";
import * as z from "zod";

async function make(t, options = {}) {
  const server = new Server({ name: "data", version: "1" });
  server.tool("sum", { output: z.object({ sum: z.int(), at: z.string() }) }, () => ({ sum: 4, at: "2026-01-02" }));
  server.tool("list", { output: z.array(z.int()) }, () => [1, 2]);
  server.tool("json", {}, () => ({ sum: 4 }));
  server.tool("text", {}, () => "four");
  server.tool("fails", { output: z.object({ sum: z.int() }) }, () => {
    throw new ToolError("no sum");
  });
  server.tool("marked", {}, () =>
    result({ structuredContent: { result: 4 }, _meta: { fastmcp: { wrap_result: true } } }),
  );
  const client = await Client.memory(server, options);
  t.after(async () => {
    await client.close();
    await server.close();
  });
  return client;
}

test("data is validated and converted by the schema of the call", async (t) => {
  const client = await make(t);
  const schema = z.object({ sum: z.int(), at: z.coerce.date() });
  const { data } = await client.callTool("sum", {}, { schema });
  assert.deepEqual(data, { sum: 4, at: new Date("2026-01-02") });
  const shape = await client.callTool("sum", {}, { schema: { sum: z.int() } });
  assert.deepEqual(shape.data, { sum: 4 });
  const checked = z.object({ sum: z.int().refine(async (sum) => sum === 4) });
  assert.equal((await client.callTool("sum", {}, { schema: checked })).data.sum, 4);
});

test("data that does not match the schema is an invalid response that names the tool and the place", async (t) => {
  const client = await make(t);
  await assert.rejects(client.callTool("sum", {}, { schema: z.object({ sum: z.string() }) }), (error) => {
    assert.ok(error instanceof InvalidResponseError);
    assert.equal(error.kind, "invalid_response");
    assert.match(error.message, /data of tool sum does not match `schema`: at \/sum: invalid input/);
    return true;
  });
  await assert.rejects(client.callTool("text", {}, { schema: z.string() }), {
    name: "InvalidResponseError",
    message: /result of tool text has no structured content, which the option `schema` needs/,
  });
});

test("data without a schema is the structured content, and no member of the result", async (t) => {
  const client = await make(t);
  const sum = await client.callTool("sum");
  assert.equal(sum.data, sum.structuredContent);
  assert.deepEqual(Object.keys(sum).includes("data"), false);
  assert.equal((await client.callTool("text")).data, undefined);
  assert.equal((await client.callTool("marked")).data, 4);
});

test("a tool that fails has no data, with or without a schema", async (t) => {
  const client = await make(t);
  for (const options of [undefined, { schema: z.object({ sum: z.int() }) }]) {
    const failed = await client.callTool("fails", {}, options);
    assert.equal(failed.isError, true);
    assert.equal(failed.data, undefined);
  }
});

for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]) {
  test(`a schema gets the same data on ${revision}`, async (t) => {
    const client = await make(t, { revisions: [revision] });
    assert.equal(client.protocolVersion, revision);
    const { data } = await client.callTool("list", {}, { schema: z.array(z.int()) });
    assert.deepEqual(data, [1, 2]);
    assert.deepEqual((await client.callTool("json", {}, { schema: { sum: z.int() } })).data, { sum: 4 });
    await assert.rejects(client.callTool("list", {}, { schema: z.array(z.string()) }), {
      name: "InvalidResponseError",
    });
  });
}

test("a schema that is none of a library is refused", async (t) => {
  const client = await make(t);
  await assert.rejects(client.callTool("sum", {}, { schema: { type: "object" } }), {
    name: "UsageError",
    message: /Standard Schema/,
  });
});

test("the bytes of images, audio and resources are decoded", () => {
  const bytes = Uint8Array.from({ length: 300 }, (_, index) => index % 256);
  assert.deepEqual(bytesOf(image(bytes, "image/png")), bytes);
  assert.deepEqual(bytesOf(audio(bytes.subarray(1), "audio/wav")), bytes.subarray(1));
  assert.deepEqual(bytesOf(embedded("a://b", bytes)), bytes);
  assert.deepEqual(bytesOf({ uri: "a://b", text: "é" }), Uint8Array.of(0xc3, 0xa9));
  assert.deepEqual(bytesOf({ uri: "a://b", blob: "AAE=" }), Uint8Array.of(0, 1));
  assert.equal(Buffer.isBuffer(bytesOf(image(bytes, "image/png"))), false);
  for (const data of ["AAE", "AA", "", "AA=="]) {
    assert.equal(
      bytesOf({ type: "image", data, mimeType: "image/png" }).length,
      Math.floor((data.replace(/=/g, "").length * 3) / 4),
    );
  }
  for (const data of ["A", "A*==", "AA=A", "AA==="]) {
    assert.throws(() => bytesOf({ type: "image", data, mimeType: "image/png" }), InvalidResponseError);
  }
  assert.throws(() => bytesOf(text("a")), UsageError);
});

test("the text of a result is that of all its blocks or parts, and may be empty", async (t) => {
  const server = new Server({ name: "texts", version: "1" });
  const picture = image("AAE=", "image/png");
  server.tool("mixed", {}, () => [text("one"), picture, text("two\n")]);
  server.tool("picture", {}, () => picture);
  server.tool("asks", {}, () => new InputRequired({ a: elicitForm("?") }));
  server.resource("a://text", { name: "text" }, () => [
    { uri: "a://1", text: "one" },
    { uri: "a://2", blob: "AAE=" },
  ]);
  server.prompt("ask", {}, () => [text("one"), picture]);
  const client = await Client.memory(server, { elicit: () => "decline" });
  t.after(() => client.close());
  assert.equal(textOf(await client.callTool("mixed")), "one\ntwo\n");
  assert.equal(textOf(await client.callTool("picture")), "");
  assert.equal(textOf(await client.callTool("asks", {}, { manualResults: true })), "");
  assert.equal(textOf(await client.readResource("a://text")), "one");
  const { messages } = await client.getPrompt("ask");
  assert.deepEqual(messages.map(textOf), ["one", ""]);
});

test("the text of a sampled message is that of all its blocks", () => {
  const message = {
    role: "assistant",
    content: [text("one"), { type: "tool_use", id: "1", name: "a", input: {} }, text("two")],
  };
  assert.equal(textOf(message), "onetwo");
  assert.equal(textOf({ role: "assistant", content: text("one"), model: "m" }), "one");
});
