// Tests of weather.mjs, without a process or a socket: `node --test`.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client } from "mcpline";

import { server } from "./weather.mjs";

/** @type {Client} */
let client;
before(async () => {
  client = await Client.memory(server, { elicit: () => ({ action: "accept", content: { city: "Bergen" } }) });
});
after(() => client.close());

test("the forecast is structured", async () => {
  const result = await client.callTool("forecast", { city: "Oslo", days: 3 });
  assert.deepEqual(result.structuredContent, { city: "Oslo", days: 3, summary: "sunny in Oslo" });
});

test("the user is asked for the city", async () => {
  const result = await client.callTool("forecast");
  assert.deepEqual(result.structuredContent, { city: "Bergen", days: 1, summary: "sunny in Bergen" });
});

test("reports arguments that do not match the schema to the model", async () => {
  const result = await client.callTool("forecast", { days: 30 });
  assert.equal(result.isError, true);
  const [problem] = result.content;
  assert.ok(problem?.type === "text");
  assert.match(problem.text, /Invalid arguments: at \/days/);
});

test("cities are completed", async () => {
  const { completion } = await client.complete({ prompt: "plan" }, { name: "city", value: "B" });
  assert.deepEqual(completion.values, ["Bergen"]);
});
