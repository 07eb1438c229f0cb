// Invalid arguments: the core's messages, the same in every language (tests/arguments/violations.json).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Server } from "mcpline";

import { call, textOf } from "./fetching.mjs";

const { groups } = JSON.parse(readFileSync(new URL("../../tests/arguments/violations.json", import.meta.url), "utf8"));
const PREFIX = "Invalid arguments: ";

/** A server with one tool that takes one argument of the schema. */
function taking(schema) {
  const server = new Server({ name: "test", version: "1" });
  const input = { type: "object", properties: { value: schema }, required: ["value"] };
  return server.tool("tool", { description: "Takes a value", input }, () => "fits");
}

/** Returns the violations of the arguments; null where they are valid. */
async function said(server, args) {
  const result = await call(server, "tool", args);
  const text = textOf(result);
  assert.equal(result.isError ?? false, text !== "fits");
  return result.isError ? text.slice(PREFIX.length) : null;
}

for (const { name, schema, cases } of groups) {
  test(`${name}: violations have the same message in every language`, async () => {
    const server = taking(schema);
    for (const { arguments: args, violation } of cases) {
      assert.equal(await said(server, args), violation, JSON.stringify(args));
    }
  });
}
