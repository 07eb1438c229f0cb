// A program for Deno: serves over HTTP in three ways, calls each, and starts a stdio server.
import assert from "node:assert/strict";
import { createServer } from "node:http";

import { Client, Server } from "mcpline";

async function visit(url) {
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    const client = await Client.connect(url, { revisions: [revision] });
    assert.equal(client.protocolVersion, revision);
    assert.equal((await client.callTool("hello")).content[0].text, "hello");
    await client.close();
  }
}

const server = new Server({ name: "deno", version: "1.0.0" }).tool("hello", {}, () => "hello");

const served = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => server.fetch(request));
await visit(`http://127.0.0.1:${served.addr.port}/mcp`);

const mounted = createServer(server.handler);
await new Promise((resolve) => mounted.listen(0, "127.0.0.1", resolve));
await visit(`http://127.0.0.1:${mounted.address().port}/mcp`);

const { url } = await server.listen({ port: 0 });
await visit(url);

await server.close();
await served.shutdown();
mounted.close();

const permissions = ["--allow-ffi", "--allow-read", "--allow-env"];
const host = await Client.spawn(Deno.execPath(), ["run", "--no-prompt", ...permissions, Deno.args[0]]);
assert.equal((await host.callTool("add", { a: 2, b: 3 })).content[0].text, "5");
await host.close();
