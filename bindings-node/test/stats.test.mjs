// Statistics and metrics of a server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server, ToolError } from "mcpline";

function measured(settings) {
  const server = new Server({ name: "measured", version: "1", settings });
  server.tool("ok", {}, () => "done");
  server.tool("fails", {}, () => {
    throw new ToolError("no");
  });
  server.tool("hangs", {}, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)));
  return server;
}

/** Waits until the statistics satisfy a condition. */
async function until(server, condition) {
  while (!condition(server.stats())) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("statistics of an unused server", () => {
  const { uptime, ...stats } = measured().stats();
  assert.ok(uptime >= 0 && uptime < 60_000);
  assert.deepEqual(stats, {
    connections: 0,
    sessions: 0,
    streams: 0,
    requestsInFlight: 0,
    budgets: [
      { name: "maxTotalClientBytes", used: 0, limit: 512 * 1024 * 1024 },
      { name: "maxCalls", used: 0, limit: 10_000 },
      { name: "maxSuspendedHandlers", used: 0, limit: 10_000 },
    ],
  });
});

test("clients and their calls are counted while they last", async () => {
  const server = measured();
  const client = await Client.memory(server, { revisions: ["2025-11-25"] });
  const controller = new AbortController();
  const hanging = client.callTool("hangs", {}, { signal: controller.signal });
  await until(server, ({ requestsInFlight }) => requestsInFlight === 1);
  const { connections, sessions } = server.stats();
  assert.deepEqual([connections, sessions], [1, 1]);
  controller.abort();
  await assert.rejects(hanging);
  await client.close();
  await until(server, ({ connections: open, requestsInFlight }) => open === 0 && requestsInFlight === 0);
  assert.equal(server.stats().sessions, 0);
});

test("metrics count requests by tool and outcome", async () => {
  const server = measured({ metrics: true });
  const client = await Client.memory(server, { revisions: ["2025-11-25"] });
  await client.callTool("ok");
  await client.callTool("fails");
  await assert.rejects(client.callTool("missing"));
  await client.close();
  const counted = (labels) => {
    const name = `mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",${labels}`;
    const line = server
      .metrics()
      .split("\n")
      .find((one) => one.startsWith(name));
    return line?.split(" ").at(-1);
  };
  assert.equal(counted('gen_ai_tool_name="ok",mcp_protocol_version'), "1");
  assert.equal(counted('gen_ai_tool_name="fails",error_type="tool_error"'), "1");
  assert.equal(counted('gen_ai_tool_name="_OTHER",error_type="-32602"'), "1");
  assert.equal(counted('gen_ai_tool_name="missing"'), undefined);
});

test("metrics are empty unless they are on", () => {
  assert.equal(measured().metrics(), "");
});

test("the HTTP server has the metrics at a path", async () => {
  const listening = await measured({ metrics: true }).listen({ port: 0, metricsPath: "/metrics" });
  try {
    const response = await fetch(new URL("/metrics", listening.url));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert.match(await response.text(), /^mcpline_connections 1$/m);
  } finally {
    await listening.close();
  }
  await assert.rejects(measured().listen({ port: 0, metricsPath: "/metrics" }), {
    name: "UsageError",
    message: /setting `metrics`/,
  });
});
