// Asynchronous checks of schemas: each runs once, and its rejection is an error of the call.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server } from "mcpline";
import * as z from "zod";

import { called } from "./peer.mjs";

const textOf = (result) => result.content[0].text;

/** Collects the rejections that nothing handles, until the end of the test. */
function unhandled(t) {
  const seen = [];
  const listener = (reason) => seen.push(reason.message);
  process.on("unhandledRejection", listener);
  t.after(() => process.off("unhandledRejection", listener));
  return seen;
}

/** A check that counts its runs, and rejects if the value says so. */
function counting() {
  const check = async (value) => {
    check.runs++;
    await null;
    if (value === "broken") {
      throw new Error("the database is away");
    }
    return value !== "taken";
  };
  check.runs = 0;
  return check;
}

const FORMS = {
  "a schema of zod": (check) => z.object({ name: z.string().refine(check, "is taken") }),
  "a shape of zod": (check) => ({ name: z.string().refine(check, "is taken") }),
  "a nested schema of zod": (check) =>
    z.object({ name: z.union([z.number(), z.lazy(() => z.string().refine(check, "is taken"))]) }),
  "a transformation of zod": (check) =>
    z.object({
      name: z.string().transform(async (value, context) => {
        if (!(await check(value))) {
          context.addIssue("is taken");
        }
        return value;
      }),
    }),
};

for (const [form, schema] of Object.entries(FORMS)) {
  test(`an asynchronous check of ${form} runs once per call`, async (t) => {
    const rejections = unhandled(t);
    const check = counting();
    const server = new Server({ name: "s", version: "1", onError: () => undefined });
    server.tool("greet", { input: schema(check) }, ({ name }) => `Hello ${name}`);
    check.runs = 0;
    assert.equal(textOf(await called(server.fetch, "greet", { name: "Ada" })), "Hello Ada");
    assert.equal(check.runs, 1);
    const refused = await called(server.fetch, "greet", { name: "taken" });
    assert.equal(refused.isError, true);
    assert.match(textOf(refused), /is taken/);
    assert.match(textOf(await called(server.fetch, "greet", { name: "broken" })), /^Error executing tool/);
    await new Promise(setImmediate);
    assert.deepEqual(rejections, []);
    assert.equal(check.runs, 3);
  });
}

test("an asynchronous check of an output schema and of a form runs once", async (t) => {
  const rejections = unhandled(t);
  const [output, form] = [counting(), counting()];
  const server = new Server({ name: "s", version: "1", onError: () => undefined });
  server.tool("made", { output: z.object({ name: z.string().refine(output) }) }, () => ({ name: "Ada" }));
  server.tool("asked", {}, async (_, ctx) => {
    const answer = await ctx.elicit("Who?", z.object({ name: z.string().refine(form) }));
    return answer.content.name;
  });
  const client = await Client.memory(server, { elicit: () => ({ action: "accept", content: { name: "Ada" } }) });
  t.after(() => client.close());
  assert.deepEqual((await client.callTool("made")).structuredContent, { name: "Ada" });
  assert.equal(textOf(await client.callTool("asked")), "Ada");
  assert.deepEqual([output.runs, form.runs, rejections], [1, 1, []]);
});

test("functions of defaults are not called when a tool is called with a value", async () => {
  let calls = 0;
  const server = new Server({ name: "s", version: "1" });
  const id = z.string().default(() => `made ${++calls}`);
  server.tool("id", { input: { id } }, (args) => args.id);
  calls = 0;
  assert.equal(textOf(await called(server.fetch, "id", { id: "given" })), "given");
  assert.equal(calls, 0);
  assert.equal(textOf(await called(server.fetch, "id")), "made 1");
});

test("synchronous schemas of zod are validated, and their parts with functions run once", async () => {
  let runs = 0;
  const server = new Server({ name: "s", version: "1" });
  const even = z.number().refine((value) => {
    runs++;
    return value % 2 === 0;
  });
  server.tool("half", { input: { value: even, unit: z.enum(["m", "km"]).default("m") } }, ({ value, unit }) => {
    return `${value / 2} ${unit}`;
  });
  runs = 0;
  assert.equal(textOf(await called(server.fetch, "half", { value: 4 })), "2 m");
  assert.equal(runs, 1);
});
