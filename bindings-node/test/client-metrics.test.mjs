// Statistics and metrics of clients.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ClosedError, Server } from "mcpline";

function server() {
  const server = new Server({ name: "measured", version: "1" });
  server.tool("echo", { description: "Echo" }, () => "fine");
  return server;
}

/** How many requests were measured, by the labels of their series. */
function counts(text) {
  const name = "mcp_client_operation_duration_seconds_count";
  const series = text.split("\n").filter((line) => line.startsWith(name));
  return series.map((line) => /^[a-z_]+\{(.*),mcp_protocol_version=.*\} (\d+)$/.exec(line).slice(1).join(" "));
}

test("a client has statistics and metrics", async () => {
  const client = await Client.memory(server(), { metrics: true });
  await client.callTool("echo", {});
  const stats = client.stats();
  assert.ok(stats.uptime > 0);
  assert.deepEqual(
    { ...stats, uptime: 0 },
    { uptime: 0, isConnected: true, connections: 1, requestsInFlight: 0, cachedResults: 0, cachedBytes: 0 },
  );
  assert.deepEqual(counts(client.metrics()), ['mcp_method_name="tools/call",gen_ai_tool_name="echo" 1']);
  await client.close();
  assert.throws(() => client.stats(), ClosedError);
  assert.throws(() => client.metrics(), ClosedError);
});

test("metrics of several clients are one text", async () => {
  const [one, two, closed] = await Promise.all([1, 2, 3].map(() => Client.memory(server(), { metrics: true })));
  const unmeasured = await Client.memory(server());
  for (const client of [one, two, two, unmeasured]) {
    await client.callTool("echo", {});
  }
  await closed.close();
  assert.equal(unmeasured.metrics(), "");
  const text = Client.metricsOf({ one, two, closed, unmeasured });
  const call = 'mcp_method_name="tools/call",gen_ai_tool_name="echo"';
  assert.deepEqual(counts(text), [`server="one",${call} 1`, `server="two",${call} 2`]);
  assert.equal(text.match(/^# TYPE mcp_client_operation_duration_seconds histogram$/gm).length, 1);
  assert.equal(Client.metricsOf({}), "");
  await Promise.all([one, two, unmeasured].map((client) => client.close()));
});
