// Timeouts of tools.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server } from "mcpline";

import { called } from "./peer.mjs";

const late = (name) => ({
  content: [{ type: "text", text: `The tool ${name} did not finish within 0.05 seconds` }],
  isError: true,
});

test("a tool that takes too long is answered with a tool error, and its signal is aborted", async () => {
  const server = new Server({ name: "timeouts", version: "1" });
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const aborted = new Promise((resolve) => {
    server.tool("slow", { timeout: 50 }, async (_, ctx) => {
      ctx.signal.addEventListener("abort", () => resolve(ctx.cancelled));
      await finished;
      return "dropped";
    });
  });
  const client = await Client.memory(server);
  const { content, isError } = await client.callTool("slow");
  assert.deepEqual({ content, isError }, late("slow"));
  assert.equal(await aborted, true);
  finish();
  // The connection goes on, and the late result is not sent.
  assert.equal((await client.listTools()).length, 1);
  await client.close();
});

test("a tool that finishes in time has its result", async () => {
  const server = new Server({ name: "timeouts", version: "1" });
  server.tool("fast", { timeout: 600_000 }, () => "done");
  assert.deepEqual((await called(server.fetch, "fast")).content, [{ type: "text", text: "done" }]);
});

test("the time in which a user answers does not count", async () => {
  const server = new Server({ name: "timeouts", version: "1" });
  const form = { type: "object", properties: { name: { type: "string" } } };
  server.tool("ask", { timeout: 50 }, async (_, ctx) => {
    const answer = await ctx.elicit("Name?", form);
    return answer.action;
  });
  const elicit = async () => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    return { action: "decline" };
  };
  const client = await Client.memory(server, { elicit });
  const result = await client.callTool("ask");
  assert.deepEqual(result.content, [{ type: "text", text: "decline" }]);
  await client.close();
});

test("a timeout that is not a time is refused", () => {
  const server = new Server({ name: "timeouts", version: "1" });
  const add = (timeout) => () => server.tool("slow", { timeout }, () => "");
  assert.throws(add(0), { kind: "usage_error", message: /tool "slow": `timeout` must be longer than 0/ });
  assert.throws(add(-1), { kind: "usage_error" });
  for (const timeout of ["1s", NaN, Infinity]) {
    assert.throws(add(timeout), { kind: "usage_error", message: /`timeout`/ });
  }
});
