// Arguments of prompts that are described by a schema of a library.

import assert from "node:assert/strict";
import { test } from "node:test";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { Client, RpcError, Server } from "mcpline";
import * as v from "valibot";
import * as z from "zod";

async function make(t, register) {
  const server = new Server({ name: "prompts", version: "1" });
  register(server);
  const client = await Client.memory(server);
  t.after(async () => {
    await client.close();
    await server.close();
  });
  return client;
}

const textOf = ({ messages }) => messages[0].content.text;

test("a schema describes, validates and converts the arguments of a prompt", async (t) => {
  const client = await make(t, (server) => {
    const days = z.coerce.number().int().max(7).default(1).meta({ title: "Days", description: "How long" });
    server.prompt("plan", { arguments: z.object({ city: z.string().min(2), days }) }, (args) => JSON.stringify(args));
  });
  const [prompt] = await client.listPrompts();
  assert.deepEqual(prompt.arguments, [
    { name: "city", required: true },
    { name: "days", title: "Days", description: "How long", required: false },
  ]);
  assert.equal(textOf(await client.getPrompt("plan", { city: "Oslo" })), '{"city":"Oslo","days":1}');
  assert.equal(textOf(await client.getPrompt("plan", { city: "Oslo", days: "3" })), '{"city":"Oslo","days":3}');
  await assert.rejects(client.getPrompt("plan", { city: "O", days: "9" }), (error) => {
    assert.ok(error instanceof RpcError);
    assert.equal(error.code, -32602);
    assert.match(error.rpcMessage, /^arguments: at \/city: .*; at \/days: /);
    return true;
  });
});

const SCHEMAS = {
  "a shape": { city: z.string(), style: z.enum(["quiet", "busy"]).optional() },
  "a schema of valibot": toStandardJsonSchema(
    v.object({ city: v.string(), style: v.optional(v.picklist(["quiet", "busy"])) }),
  ),
  "a schema of arktype": type({ city: "string", "style?": "'quiet' | 'busy'" }),
};
for (const [form, schema] of Object.entries(SCHEMAS)) {
  test(`${form} describes the arguments of a prompt`, async (t) => {
    const client = await make(t, (server) => {
      server.prompt("plan", { arguments: schema }, ({ city, style }) => `${style ?? "any"} day in ${city}`);
    });
    const [prompt] = await client.listPrompts();
    assert.deepEqual(
      prompt.arguments.map(({ name, required }) => [name, required]),
      [
        ["city", true],
        ["style", false],
      ],
    );
    assert.equal(textOf(await client.getPrompt("plan", { city: "Oslo", style: "busy" })), "busy day in Oslo");
    await assert.rejects(client.getPrompt("plan", { city: "Oslo", style: "loud" }), { code: -32602 });
  });
}

test("the option `complete` of a prompt completes its arguments", async (t) => {
  const client = await make(t, (server) => {
    const complete = {
      city: ["Bergen", "Oslo"],
      style: (value, _, { context }) => [`${value} in ${context?.arguments?.city}`],
    };
    server.prompt("plan", { arguments: { city: z.string(), style: z.string() }, complete }, ({ city }) => city);
    server.prompt("visit", { arguments: { city: {} }, complete: { city: ["Voss"] } }, ({ city }) => city);
  });
  const values = async (prompt, argument, options) =>
    (await client.complete({ prompt }, argument, options)).completion.values;
  assert.deepEqual(await values("plan", { name: "city", value: "O" }), ["Oslo"]);
  assert.deepEqual(await values("plan", { name: "style", value: "x" }, { context: { city: "Oslo" } }), ["x in Oslo"]);
  assert.deepEqual(await values("visit", { name: "city", value: "" }), ["Voss"]);
});

const done = () => "done";
const REFUSED = {
  "a completion of an unknown argument": [
    { arguments: { city: z.string() }, complete: { town: [] } },
    "prompt `p`: `complete` names no argument: `town`; it has city",
  ],
  "a schema of a string": [{ arguments: z.string() }, /`arguments` must be the schema of an object with properties/],
  "a schema beside options": [
    { arguments: { city: z.string(), style: { required: false } } },
    /argument `city` is a schema, but other arguments are not/,
  ],
};
for (const [form, [options, message]] of Object.entries(REFUSED)) {
  test(`${form} of a prompt is refused`, () => {
    const server = new Server({ name: "prompts", version: "1" });
    assert.throws(() => server.prompt("p", options, done), { name: "UsageError", message });
  });
}
