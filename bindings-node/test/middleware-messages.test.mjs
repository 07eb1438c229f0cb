// Middleware around input requests and notifications of handlers, and around notifications of clients.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, redaction, RpcError, Server } from "mcpline";

const METHODS = ["notifications/message", "notifications/progress", "acme/note", "elicitation/create", "acme/seen"];

function make() {
  const server = new Server({ name: "sends", version: "1.0.0" });
  server.tool("reports", {}, (_, ctx) => {
    ctx.log("info", { pin: 1, text: "by ann" });
    ctx.progress(1, 2, "ann is ready");
    ctx.notify("acme/note", { pin: 2 });
    return "done";
  });
  server.tool("asks", {}, async (_, ctx) => {
    try {
      const requestedSchema = { type: "object", properties: { pin: { type: "string" } } };
      const answer = await ctx.elicit("Is ann there?", requestedSchema);
      return answer.action;
    } catch (error) {
      return error.message;
    }
  });
  return server;
}

/** Calls both tools. Resolves to what the client got of the first, and the text of the second. */
async function visit(server, revision) {
  const got = [];
  const client = await Client.memory(server, {
    revisions: [revision],
    elicit: (params) => {
      got.push(params.message, Object.keys(params.requestedSchema.properties).join());
      return { action: "accept", content: { pin: "1" } };
    },
    onLog: ({ data }) => got.push(JSON.stringify(data)),
    onNotification: ({ method }) => got.push(method),
  });
  const options = { logLevel: "debug", onProgress: ({ message }) => got.push(message) };
  const reported = await client.callTool("reports", {}, options);
  got.push(reported.content[0].text);
  const asked = await client.callTool("asks", {});
  await client.close();
  return { got, answer: asked.content[0].text };
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`middleware sees what handlers send and get (${revision})`, async () => {
    const server = make();
    const seen = [];
    server.use({ methods: METHODS }, async (request, next) => {
      seen.push(`${request.kind} ${request.method}`);
      return await next(request);
    });
    const { got, answer } = await visit(server, revision);
    assert.deepEqual(seen, [
      "sent_notification notifications/message",
      "sent_notification notifications/progress",
      "sent_notification acme/note",
      "input_request elicitation/create",
    ]);
    assert.ok(got.includes("ann is ready") && got.includes("done"), JSON.stringify(got));
    assert.equal(answer, "accept");
  });
}

test("middleware drops, changes and refuses", async () => {
  const server = make();
  server.use({ methods: ["notifications/message"] }, () => undefined);
  server.use({ methods: ["notifications/progress"] }, async (request, next) => {
    await next(request.with({ params: { progress: 1, message: "changed" } }));
  });
  server.use({ methods: ["elicitation/create"] }, (request) => {
    assert.equal(request.params.message, "Is ann there?");
    throw new RpcError(-31005, "not today");
  });
  const { got, answer } = await visit(server, "2025-11-25");
  assert.ok(got.includes("changed"));
  assert.ok(!got.some((entry) => entry.includes("by ann")), JSON.stringify(got));
  assert.match(answer, /not today/);
});

test("a redaction covers what handlers send", async () => {
  const server = make();
  server.use(redaction({ members: ["pin"], patterns: ["ann"] }));
  const { got } = await visit(server, "2025-11-25");
  assert.ok(got.includes(JSON.stringify({ pin: "[redacted]", text: "by [redacted]" })), JSON.stringify(got));
  assert.ok(got.includes("[redacted] is ready"));
  assert.ok(got.includes("Is [redacted] there?"));
  assert.ok(got.includes("pin"));
});

test("notifications of clients are seen", async () => {
  const server = make();
  const handled = [];
  const seen = [];
  server.onNotification("acme/seen", {}, ({ number }) => void handled.push(number));
  server.use({ methods: ["acme/seen"] }, async (request, next) => {
    seen.push(request.kind);
    if (request.params.number !== 1) {
      await next(request);
    }
  });
  const client = await Client.memory(server, { revisions: ["2025-11-25"] });
  for (const number of [1, 2]) {
    await client.notify("acme/seen", { number });
  }
  while (handled.length === 0) {
    await client.ping();
  }
  await client.close();
  assert.deepEqual(handled, [2]);
  assert.deepEqual(seen, ["received_notification", "received_notification"]);
});
