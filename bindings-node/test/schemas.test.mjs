// Schemas: Standard Schema libraries that support JSON Schema, and plain JSON Schema.
import assert from "node:assert/strict";
import { test } from "node:test";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { Client, result, Server } from "mcpline";
import * as v from "valibot";
import * as z from "zod";

import { ask, call, textOf, tools } from "./fetching.mjs";

/** The same input in each: `city` is required, `days` an integer from 1 to 7 with the default 1. */
const INPUTS = {
  zod: z.object({ city: z.string().describe("Where"), days: z.int().min(1).max(7).default(1) }),
  valibot: toStandardJsonSchema(
    v.object({
      city: v.pipe(v.string(), v.description("Where")),
      days: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(7)), 1),
    }),
  ),
  arktype: type({ city: type("string").describe("Where"), days: "1 <= number.integer <= 7 = 1" }),
};

const OUTPUTS = {
  zod: z.object({ city: z.string(), days: z.int() }),
  valibot: toStandardJsonSchema(v.object({ city: v.string(), days: v.pipe(v.number(), v.integer()) })),
  arktype: type({ city: "string", days: "number.integer" }),
};

const PLAIN = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city"],
};

/** Forms with a choice of strings, for which not every library writes a type. */
const CHOICES = {
  zod: z.object({ unit: z.enum(["C", "F"]) }),
  valibot: toStandardJsonSchema(v.object({ unit: v.picklist(["C", "F"]) })),
  arktype: type({ unit: "'C' | 'F'" }),
};

for (const [library, schema] of Object.entries(CHOICES)) {
  test(`${library}: a choice of strings is a field of a form`, async (t) => {
    const server = new Server({ name: "asks", version: "1" });
    server.tool("ask", { input: { type: "object" } }, async (_, ctx) => {
      const answer = await ctx.elicit("Which unit?", schema);
      return answer.content.unit;
    });
    let form;
    const elicit = ({ requestedSchema }) => {
      form = requestedSchema;
      return { action: "accept", content: { unit: "F" } };
    };
    const client = await Client.memory(server, { elicit });
    t.after(() => client.close());
    assert.equal(textOf(await client.callTool("ask")), "F");
    const { type: fieldType, enum: units } = form.properties.unit;
    assert.deepEqual([fieldType, units], ["string", ["C", "F"]]);
  });
}

function forecasting(input, output, handler = (args) => args) {
  const server = new Server({ name: "test", version: "1" });
  return server.tool("forecast", { description: "Forecast", input, ...(output && { output }) }, handler);
}

for (const [library, input] of Object.entries(INPUTS)) {
  test(`${library}: a tool is listed with what its arguments must be before the library has filled them in`, async () => {
    const [{ inputSchema }] = await tools(forecasting(input));
    assert.equal(inputSchema.type, "object");
    assert.deepEqual(inputSchema.required, ["city"]);
    assert.equal(inputSchema.properties.city.type, "string");
    assert.equal(inputSchema.properties.days.type, "integer");
  });

  test(`${library}: the handler receives the arguments as the library transforms them`, async () => {
    const given = [];
    const server = forecasting(input, undefined, (args) => void given.push(args));
    await call(server, "forecast", { city: "Oslo" });
    await call(server, "forecast", { city: "Oslo", days: 3 });
    assert.deepEqual(
      given.map((args) => ({ ...args })),
      [
        { city: "Oslo", days: 1 },
        { city: "Oslo", days: 3 },
      ],
    );
  });

  test(`${library}: invalid arguments are reported to the model, and the handler does not run`, async () => {
    let runs = 0;
    const server = forecasting(input, undefined, () => void runs++);
    for (const [args, place] of [
      [{ city: 1 }, "/city"],
      [{ city: "Oslo", days: 1.5 }, "/days"],
      [{ city: "Oslo", days: 8 }, "/days"],
    ]) {
      const result = await call(server, "forecast", args);
      assert.equal(result.isError, true);
      assert.ok(textOf(result).startsWith(`Invalid arguments: at ${place}: `), textOf(result));
    }
    const missing = await call(server, "forecast", { days: 1 });
    assert.equal(missing.isError, true);
    assert.match(textOf(missing), /city/);
    assert.equal(runs, 0);
  });

  test(`${library}: a result of the output schema is structured content, and text as well`, async () => {
    const server = forecasting(input, OUTPUTS[library]);
    const [{ outputSchema }] = await tools(server);
    assert.deepEqual([...outputSchema.required].sort(), ["city", "days"]);
    const result = await call(server, "forecast", { city: "Oslo" });
    assert.deepEqual(result.structuredContent, { city: "Oslo", days: 1 });
    assert.deepEqual(JSON.parse(textOf(result)), { city: "Oslo", days: 1 });
  });
}

test("plain JSON Schema is listed as it stands", async () => {
  const [{ inputSchema, outputSchema }] = await tools(forecasting(PLAIN, PLAIN));
  assert.deepEqual(inputSchema, PLAIN);
  assert.deepEqual(outputSchema, PLAIN);
});

test("plain JSON Schema: the handler is given the arguments as they came", async () => {
  const result = await call(forecasting(PLAIN, PLAIN), "forecast", { city: "Oslo", more: true });
  assert.deepEqual(result.structuredContent, { city: "Oslo", more: true });
});

test("a check that JSON Schema can't express refuses arguments all the same, with its place", async () => {
  const input = z.object({
    span: z.object({ from: z.int(), to: z.int() }).refine(({ from, to }) => from < to, "from must be before to"),
  });
  const result = await call(forecasting(input), "forecast", { span: { from: 2, to: 1 } });
  assert.equal(result.isError, true);
  assert.equal(textOf(result), "Invalid arguments: at /span: from must be before to");
});

test("a schema may check asynchronously", async () => {
  const input = z.object({ city: z.string().refine(async (city) => city !== "Atlantis", "there is no such city") });
  const server = forecasting(input, undefined, ({ city }) => city);
  assert.equal(textOf(await call(server, "forecast", { city: "Oslo" })), "Oslo");
  const refused = await call(server, "forecast", { city: "Atlantis" });
  assert.equal(textOf(refused), "Invalid arguments: at /city: there is no such city");
});

test("a schema may transform what the handler is given", async () => {
  const input = z.object({ when: z.iso.datetime().transform((text) => new Date(text)) });
  const server = forecasting(input, undefined, ({ when }) => String(when.getUTCFullYear()));
  const [{ inputSchema }] = await tools(server);
  assert.equal(inputSchema.properties.when.type, "string");
  assert.equal(textOf(await call(server, "forecast", { when: "2026-07-28T00:00:00Z" })), "2026");
});

test("the keyword for an argument's HTTP header is kept", async () => {
  const input = z.object({ region: z.string().meta({ "x-mcp-header": "Region" }).optional() });
  const [{ inputSchema }] = await tools(forecasting(input));
  assert.equal(inputSchema.properties.region["x-mcp-header"], "Region");
});

test("a library's schema that gives no JSON Schema is refused, and the error says what to do", () => {
  const bare = v.object({ city: v.string() });
  assert.throws(() => forecasting(bare), { kind: "usage_error", message: /JSON Schema/ });
});

const COERCED = {
  "z.coerce": { schema: z.object({ days: z.coerce.number() }), given: { days: "5" } },
  "z.preprocess": {
    schema: z.object({ days: z.preprocess((text) => Number(text), z.number()) }),
    given: { days: "5" },
  },
  "a union that converts": {
    schema: z.object({ days: z.number().or(z.string().transform((text) => Number(text))) }),
    given: { days: "5" },
  },
  "valibot's transform": {
    schema: toStandardJsonSchema(v.object({ days: v.pipe(v.string(), v.transform(Number)) })),
    given: { days: "5" },
  },
};

for (const [name, { schema, given }] of Object.entries(COERCED)) {
  test(`a schema takes what it converts: ${name}`, async () => {
    const server = forecasting(schema, undefined, ({ days }) => `${typeof days} ${days}`);
    assert.equal(textOf(await call(server, "forecast", given)), "number 5");
    server.onRequest("acme/days", { params: schema }, ({ days }) => ({ days }));
    assert.equal((await ask(server, "acme/days", given)).days, 5);
  });
}

test("all issues of a schema are reported", async () => {
  const server = forecasting(INPUTS.zod, undefined, () => "");
  const result = await call(server, "forecast", { days: 8 });
  assert.match(textOf(result), /^Invalid arguments: at \/city: .+; at \/days: .+$/);
});

test("a schema is applied once", async () => {
  let runs = 0;
  const input = z.object({ city: z.string().transform((city) => `${++runs}. ${city}`) });
  const server = forecasting(input, undefined, ({ city }) => city);
  assert.equal(textOf(await call(server, "forecast", { city: "Oslo" })), "1. Oslo");
});

/** The same output in each: other properties are left out, and `unit` has a default. */
const FILLED = {
  zod: z.object({ city: z.string(), unit: z.string().default("C") }),
  valibot: toStandardJsonSchema(v.object({ city: v.string(), unit: v.optional(v.string(), "C") })),
  arktype: type({ city: "string", unit: "string = 'C'", "+": "delete" }),
  "a shape": { city: z.string(), unit: z.string().default("C") },
};

for (const [library, output] of Object.entries(FILLED)) {
  test(`${library}: the output schema is applied to what the handler returns`, async () => {
    const returned = { city: "Oslo", secret: "1234" };
    for (const handler of [() => returned, async () => returned, () => result({ structuredContent: returned })]) {
      const server = forecasting({}, output, handler);
      const [{ outputSchema }] = await tools(server);
      assert.deepEqual(Object.keys(outputSchema.properties).sort(), ["city", "unit"]);
      const { structuredContent, content } = await call(server, "forecast");
      assert.deepEqual({ ...structuredContent }, { city: "Oslo", unit: "C" });
      assert.deepEqual(JSON.parse(content[0].text), { city: "Oslo", unit: "C" });
    }
  });
}

test("an output schema may transform, also asynchronously", async () => {
  const when = z.string().transform((text) => Number(text));
  const output = z.object({ year: when.pipe(z.number().refine(async (year) => year > 2000, "too early")) });
  const server = forecasting({ year: z.string() }, output, ({ year }) => ({ year }));
  assert.deepEqual((await call(server, "forecast", { year: "2026" })).structuredContent, { year: 2026 });
  const [{ outputSchema }] = await tools(server);
  assert.equal(outputSchema.properties.year.type, "number");
  assert.equal((await call(server, "forecast", { year: "1999" })).isError, true);
});

test("a value that the output schema refuses is not sent, and the program is warned", async (t) => {
  const warned = [];
  const onWarning = ({ message }) => warned.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const output = z.object({ city: z.string().refine((city) => city !== "Atlantis", "there is no such city") });
  const answer = await call(
    forecasting({}, output, () => ({ city: "Atlantis" })),
    "forecast",
  );
  assert.deepEqual([answer.isError, answer.structuredContent], [true, undefined]);
  assert.equal(textOf(answer), "Error executing tool forecast");
  await new Promise(setImmediate);
  assert.ok(warned.some((message) => message.includes("tool `forecast`") && message.includes("at /city: there is no")));
});

const SHAPE = { city: z.string().describe("Where"), days: z.int().max(7).default(1), note: z.string().optional() };

test("a shape of schemas is the schema of an object", async () => {
  const given = [];
  const server = forecasting(SHAPE, undefined, (args) => void given.push(args));
  const [{ inputSchema }] = await tools(server);
  assert.equal(inputSchema.type, "object");
  assert.deepEqual(inputSchema.required, ["city"]);
  assert.equal(inputSchema.properties.city.description, "Where");
  assert.equal(inputSchema.properties.days.default, 1);
  const refused = await call(server, "forecast", { days: 8 });
  assert.match(textOf(refused), /^Invalid arguments: at \/city: .+; at \/days: .+$/);
  await call(server, "forecast", { city: "Oslo", more: 1 });
  assert.deepEqual(given, [{ city: "Oslo", days: 1 }]);
});

test("a shape of schemas may check asynchronously, and refer to itself", async () => {
  const node = z.object({
    name: z.string(),
    get children() {
      return z.array(node);
    },
  });
  const city = z.string().refine(async (city) => city !== "Atlantis", "there is no such city");
  const input = { city, "a/b": node };
  const server = forecasting(input, undefined, (args) => args["a/b"].children[0].name);
  const [{ inputSchema }] = await tools(server);
  const { $ref } = inputSchema.properties["a/b"].properties.children.items;
  assert.equal($ref, "#/properties/a~1b");
  const args = { city: "Oslo", "a/b": { name: "root", children: [{ name: "leaf", children: [] }] } };
  assert.equal(textOf(await call(server, "forecast", args)), "leaf");
  const refused = await call(server, "forecast", { ...args, city: "Atlantis" });
  assert.equal(textOf(refused), "Invalid arguments: at /city: there is no such city");
});

test("shapes are accepted for custom methods and forms", async (t) => {
  const server = forecasting({});
  server.onRequest("acme/plan", { params: SHAPE }, ({ city, days }) => ({ city, days }));
  server.tool("ask", {}, async (_, ctx) => (await ctx.elicit("Where?", SHAPE)).content.city);
  let form;
  const elicit = ({ requestedSchema }) => {
    form = requestedSchema;
    return { action: "accept", content: { city: "Bergen" } };
  };
  const client = await Client.memory(server, { elicit });
  t.after(() => client.close());
  const planned = await client.request("acme/plan", { city: "Oslo" });
  assert.deepEqual([planned.city, planned.days], ["Oslo", 1]);
  await assert.rejects(client.request("acme/plan", {}), { code: -32602, message: /params: at \/city/ });
  assert.equal(textOf(await client.callTool("ask")), "Bergen");
  assert.deepEqual(form.required, ["city"]);
});

test("a mixture of JSON Schema and schemas of a library is refused", () => {
  const nested = { type: "object", properties: { city: z.string() } };
  assert.throws(() => forecasting(nested), {
    kind: "usage_error",
    message: /tool `forecast`: `input`: property `city`/,
  });
  assert.throws(() => forecasting({ city: z.string(), days: 7 }), { kind: "usage_error", message: /`days`/ });
});

test("the output schema of a shape says that there are no other properties", async () => {
  const server = new Server({ name: "shapes", version: "1" });
  const shape = { sum: z.number() };
  server.tool("t", { input: shape, output: shape }, ({ sum }) => ({ sum, other: 1 }));
  const client = await Client.memory(server);
  const [{ inputSchema, outputSchema }] = await client.listTools();
  assert.equal(inputSchema.additionalProperties, undefined);
  assert.equal(outputSchema.additionalProperties, false);
  assert.deepEqual((await client.callTool("t", { sum: 1 })).structuredContent, { sum: 1 });
  await client.close();
});
