// The line that a server writes when a transport is ready.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Child } from "./peer.mjs";

const source = (settings, serve) => `
  import { Server } from "mcpline";
  const server = new Server({ name: "weather", version: "1.0.0", settings: ${JSON.stringify(settings)} });
  server.tool("forecast", {}, () => "");
  ${serve}
`;
const listening = (settings) =>
  new Child(
    source(
      settings,
      `const listening = await server.listen({ path: "/v1/mcp" });
       console.log(listening.url);
       await listening.close();`,
    ),
  );
const features = "(2024-11-05 to 2026-07-28; 1 tool, no resources, no prompts)";

test("a server over HTTP says on stderr what it serves where", async () => {
  const child = listening({});
  const url = await child.line();
  await child.ended;
  assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9]\d*\/v1\/mcp$/);
  assert.equal(child.stderr, `weather 1.0.0 serves MCP at ${url} ${features}\n`);
});

test("a setting turns the line off", async () => {
  const child = listening({ startupMessage: false });
  await child.ended;
  assert.equal(child.stderr, "");
});

for (const [settings, expected] of [
  [{}, ""],
  [{ startupMessage: true }, `weather 1.0.0 serves MCP over stdio ${features}\n`],
]) {
  test(`over stdio with ${JSON.stringify(settings)}, stderr has ${JSON.stringify(expected)}`, async () => {
    const child = new Child(source(settings, "await server.run();"));
    await child.open();
    child.process.stdin.end();
    await child.ended;
    assert.equal(child.stderr, expected);
  });
}
