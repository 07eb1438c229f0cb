// Open input requests of a handler, and the lifetime of its process.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { Client, elicitForm, Server } from "mcpline";
import Type from "typebox";
import * as z from "zod";

const TEST_TIMEOUT = 60_000;

/** Runs a program that must end by itself; returns its output. */
function run(source) {
  const program = ["--input-type=module", "--eval", source];
  const done = spawnSync(process.execPath, program, {
    cwd: import.meta.dirname,
    encoding: "utf8",
    timeout: TEST_TIMEOUT,
  });
  assert.equal(done.status, 0, `${done.signal} ${done.stdout}${done.stderr}`);
  return done.stdout;
}

test("an input request that will never be answered does not keep the process alive", () => {
  const printed = run(`
    import { Client, Server } from "mcpline";
    const server = new Server({ name: "test", version: "1" });
    server.tool("ask", {}, async (_, ctx) => { await ctx.elicit("Who is there?"); return "nobody"; });
    const giveUp = new AbortController();
    const client = await Client.memory(server, {
      revisions: ["2026-07-28"],
      elicit: () => { giveUp.abort(); return { action: "decline" }; },
    });
    await client.callTool("ask", {}, { signal: giveUp.signal }).catch((error) => console.log(error.name));
    await client.close();
  `);
  assert.equal(printed, "AbortError\n");
});

test("a call that waits for an answer keeps the process alive", () => {
  const printed = run(`
    import { Client, Server } from "mcpline";
    const server = new Server({ name: "test", version: "1" });
    server.tool("ask", {}, async (_, ctx) => (await ctx.elicit("Who is there?")).action);
    const client = await Client.memory(server, {
      elicit: () => new Promise((resolve) => setTimeout(resolve, 50, { action: "decline" }).unref()),
    });
    client.callTool("ask").then((result) => console.log(result.content[0].text));
  `);
  assert.equal(printed, "decline\n");
});

/** What a handler asks for, the answer of the user, and the content that the handler receives. */
const SINGLE_VALUES = {
  "a boolean": [z.boolean(), { value: true }, true],
  "a string with a default": [z.string().default("Oslo"), {}, "Oslo"],
  "a choice": [z.enum(["C", "F"]), { value: "F" }, "F"],
  "a transformed number": [z.int().transform((days) => days * 24), { value: 2 }, 48],
  "a boolean of JSON Schema": [{ type: "boolean" }, { value: false }, false],
  "a string of TypeBox": [Type.String(), { value: "Oslo" }, "Oslo"],
};

/** Calls a tool that asks for a schema; returns the form, and what the handler receives or throws. */
async function asked(t, schema, content) {
  const server = new Server({ name: "asks", version: "1" });
  let received;
  server.tool("ask", {}, async (_, ctx) => {
    received = await ctx.elicit("?", schema).catch((error) => error);
    return "";
  });
  let form;
  const elicit = ({ requestedSchema }) => {
    form = requestedSchema;
    return { action: "accept", content };
  };
  const client = await Client.memory(server, { elicit });
  t.after(() => client.close());
  await client.callTool("ask");
  return { form, received };
}

for (const [what, [schema, answer, content]] of Object.entries(SINGLE_VALUES)) {
  test(`asks for ${what} with a form of one field`, async (t) => {
    const { form, received } = await asked(t, schema, answer);
    assert.deepEqual(Object.keys(form.properties), ["value"]);
    assert.deepEqual(form.required, "value" in answer ? ["value"] : undefined);
    assert.deepEqual(received, { action: "accept", content });
  });
}

test("a request for a single value that a handler returns has the same form", () => {
  const { params } = elicitForm("Sure?", { type: "boolean" });
  const properties = { value: { type: "boolean" } };
  assert.deepEqual(params.requestedSchema, { type: "object", properties, required: ["value"] });
});

for (const [what, [schema, message]] of Object.entries({
  "JSON Schema without `properties`": [{ city: { type: "string" } }, /requestedSchema: "city" is not a keyword/],
  "a misspelt keyword": [{ type: "object", propertes: {} }, /"propertes" is not .*; did you mean "properties"\?/],
  "a schema of anything": [z.any(), /requestedSchema: its `type` must be `object`/],
  "a constructor": [Boolean, /`schema` of the form must be a schema, .* not function/],
})) {
  test(`refuses ${what} as a form`, async (t) => {
    const { form, received } = await asked(t, schema, {});
    assert.equal(form, undefined);
    assert.equal(received.name, "UsageError");
    assert.match(received.message, message);
  });
}
