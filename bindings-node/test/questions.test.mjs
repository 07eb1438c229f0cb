// Open input requests of a handler, and the lifetime of its process.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const PATIENCE = 60_000;

/** Runs a program that must end by itself; returns its output. */
function run(source) {
  const program = ["--input-type=module", "--eval", source];
  const done = spawnSync(process.execPath, program, { cwd: import.meta.dirname, encoding: "utf8", timeout: PATIENCE });
  assert.equal(done.status, 0, `${done.signal} ${done.stdout}${done.stderr}`);
  return done.stdout;
}

test("an input request that will never be answered does not keep the process alive", () => {
  const printed = run(`
    import { Client, Server } from "mcpline";
    const server = new Server({ name: "test", version: "1" });
    server.tool("ask", {}, async (_, ctx) => { await ctx.elicit("Who is there?"); return "nobody"; });
    const giveUp = new AbortController();
    const client = await Client.memory(server, {
      revisions: ["2026-07-28"],
      elicit: () => { giveUp.abort(); return { action: "decline" }; },
    });
    await client.callTool("ask", {}, { signal: giveUp.signal }).catch((error) => console.log(error.name));
    await client.close();
  `);
  assert.equal(printed, "AbortError\n");
});

test("a call that waits for an answer keeps the process alive", () => {
  const printed = run(`
    import { Client, Server } from "mcpline";
    const server = new Server({ name: "test", version: "1" });
    server.tool("ask", {}, async (_, ctx) => (await ctx.elicit("Who is there?")).action);
    const client = await Client.memory(server, {
      elicit: () => new Promise((resolve) => setTimeout(resolve, 50, { action: "decline" }).unref()),
    });
    client.callTool("ask").then((result) => console.log(result.content[0].text));
  `);
  assert.equal(printed, "decline\n");
});
