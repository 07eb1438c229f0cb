// Traffic files: all messages of servers and clients, as JSON lines without secrets.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, Server } from "mcpline";

import { Child } from "./peer.mjs";

/** Calls `run` with the path of a file in a folder of its own. */
async function withFile(run) {
  const folder = await mkdtemp(join(tmpdir(), "mcpline-traffic-"));
  try {
    await run(join(folder, "traffic.jsonl"), folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function records(path) {
  const text = await readFile(path, "utf8");
  assert.ok(!text.includes("s3cret"));
  assert.ok(text.endsWith("\n"));
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("a process that ends has recorded everything", () =>
  withFile(async (path) => {
    const child = new Child(`
      import { Server } from "mcpline";
      const server = new Server({
        name: "recorded",
        version: "1.0.0",
        settings: { trafficFile: ${JSON.stringify(path)} },
      });
      server.tool("sign_in", { input: { type: "object" } }, () => "welcome");
      await server.run();
    `);
    await child.open();
    const call = { name: "sign_in", arguments: { password: "s3cret" } };
    child.send({ id: 2, method: "tools/call", params: call });
    child.process.stdin.end();
    await child.ended;
    const recorded = await records(path);
    const last = recorded.at(-1);
    assert.equal(last.direction, "sent");
    assert.equal(last.transport, "stdio");
    assert.equal(last.message.result.content[0].text, "welcome");
    const received = recorded.filter(({ direction }) => direction === "received");
    assert.deepEqual(received.at(-1).message.params.arguments, { password: "[redacted]" });
  }));

test("clients record too", () =>
  withFile(async (path) => {
    const server = new Server({ name: "recorded", version: "1.0.0", settings: { trafficFile: "" } });
    server.tool("sign_in", { input: { type: "object" } }, () => "welcome");
    const client = await Client.memory(server, { trafficFile: path });
    await client.callTool("sign_in", { password: "s3cret" });
    await client.close();
    const recorded = await records(path);
    assert.deepEqual([...new Set(recorded.map(({ role }) => role))], ["client"]);
    const sent = recorded.filter(({ direction }) => direction === "sent");
    assert.ok(sent.some(({ message }) => message.method === "tools/call"));
  }));

test("a file that cannot be opened is a usage error", () =>
  withFile(async (_, folder) => {
    const refused = { name: "UsageError", message: /cannot open the traffic file/ };
    const settings = { trafficFile: folder };
    assert.throws(() => new Server({ name: "recorded", version: "1.0.0", settings }), refused);
    const server = new Server({ name: "recorded", version: "1.0.0" });
    await assert.rejects(Client.memory(server, settings), refused);
  }));
