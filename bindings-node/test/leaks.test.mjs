// Calls that have ended leave no memory behind, in servers or clients, however they ended.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

/** Number of calls of each kind per round; a leak of a few dozen bytes each would be detected. */
const CALLS = 10_000;
/** Rounds before memory is measured, while caches and the allocator's reserve grow. */
const WARM_UP = 3;
/** Rounds of a window; memory is measured after each. */
const MEASURED = 8;
/**
 * Maximum number of windows until one is flat. A leak grows in each of them; pages that the allocator takes and keeps,
 * more often on a busy machine, only affect one window.
 */
const WINDOWS = 5;
/** Maximum growth of the heap and of the process per round, in MiB: less than 32 bytes per call of the first test. */
const MAX_HEAP_GROWTH = 0.3;
const MAX_RSS_GROWTH = 0.8;
const MIB = 1024 * 1024;

/** Runs rounds of calls in a new process until a window is flat; returns the slopes and samples of the last window. */
function rounds(source) {
  const program = `
    import { Client, Server, ToolError } from "mcpline";
    const server = new Server({ name: "leaks", version: "1" });
    const input = { type: "object" };
    server.tool("echo", { input }, ({ text }) => text);
    server.tool("later", { input }, async ({ text }) => { await null; return { content: [{ type: "text", text }] }; });
    server.tool("fail", { input }, async () => { throw new ToolError("no"); });
    server.tool("report", { input }, async (_, ctx) => { ctx.progress(1); ctx.info("x"); void ctx.signal; return ""; });
    const many = async (count, one) => {
      for (let done = 0; done < count; done += 100) {
        await Promise.all(Array.from({ length: 100 }, one));
      }
    };
    const memory = () => { gc(); gc(); const { heapUsed, external, rss } = process.memoryUsage(); return { heap: heapUsed + external, rss }; };
    const CALLS = ${CALLS};
    const MIB = ${MIB};
    ${slope}
    ${source}
    for (let turn = 0; turn < ${WARM_UP}; turn++) await round();
    let window;
    for (let tried = 0; tried < ${WINDOWS}; tried++) {
      const measured = [];
      for (let turn = 0; turn < ${MEASURED}; turn++) {
        await round();
        measured.push(memory());
      }
      const samples = measured.map(({ rss }) => rss);
      window = { heap: slope(measured.map(({ heap }) => heap)), rss: slope(samples), samples };
      if (window.heap < ${MAX_HEAP_GROWTH} && window.rss < ${MAX_RSS_GROWTH}) break;
    }
    await end?.();
    console.log(JSON.stringify(window));
  `;
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  // The room for young objects is bounded, for some versions of Node let it grow by as much as a leak would.
  const options = ["--expose-gc", "--max-semi-space-size=4", "--input-type=module", "--eval", program];
  const done = spawnSync(process.execPath, options, { cwd, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  return JSON.parse(done.stdout);
}

/**
 * Returns the growth per round in MiB: the median slope of all pairs of rounds. A leak grows in every round; the reserve
 * of an allocator, and garbage, only in some.
 */
function slope(samples) {
  const slopes = samples.flatMap((early, from) =>
    samples.slice(from + 1).map((late, distance) => (late - early) / (distance + 1)),
  );
  slopes.sort((a, b) => a - b);
  return slopes[Math.floor(slopes.length / 2)] / MIB;
}

function assertFlat({ heap, rss, samples }) {
  const measured = samples.map((bytes) => (bytes / MIB).toFixed(1)).join(", ");
  assert.ok(heap < MAX_HEAP_GROWTH, `the heap grows by ${heap.toFixed(2)} MiB a round`);
  assert.ok(rss < MAX_RSS_GROWTH, `the process grows by ${rss.toFixed(2)} MiB a round: ${measured}`);
}

test("calls over a connection in memory leave nothing behind, in the server or in the client", () => {
  assertFlat(
    rounds(`
      const client = await Client.memory(server);
      const end = () => client.close();
      const round = async () => {
        await many(CALLS, () => client.callTool("echo", { text: "x" }));
        await many(CALLS, () => client.callTool("later", { text: "x" }));
        await many(CALLS, () => client.callTool("fail"));
        await many(CALLS, () => client.callTool("report", {}, { onProgress() {} }));
        await many(CALLS / 10, () => {
          const cancelling = new AbortController();
          const call = client.callTool("later", { text: "x" }, { signal: cancelling.signal }).catch(() => {});
          cancelling.abort();
          return call;
        });
      };
    `),
  );
});

test("calls under middleware leave nothing behind", () => {
  assertFlat(
    rounds(`
      server.use((request, next) => next(request.with({ arguments: request.arguments })));
      server.use({ names: ["later"] }, async (request, next) => { await next(); return next(); });
      const client = await Client.memory(server);
      const end = () => client.close();
      const round = async () => {
        await many(CALLS / 10, () => client.callTool("echo", { text: "x" }));
        await many(CALLS / 10, () => client.callTool("later", { text: "x" }));
        await many(CALLS / 10, () => client.callTool("none").catch(() => {}));
        await many(CALLS / 10, () => {
          const cancelling = new AbortController();
          const call = client.callTool("later", { text: "x" }, { signal: cancelling.signal }).catch(() => {});
          cancelling.abort();
          return call;
        });
      };
    `),
  );
});

test("requests of a mounted server leave nothing behind", () => {
  assertFlat(
    rounds(`
      const end = () => server.close();
      const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { name: "peer", version: "1" } };
      const post = (name) => {
        const params = { name, arguments: { text: "x" }, _meta: meta };
        const headers = { "content-type": "application/json", accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
        return new Request("http://localhost/mcp", { method: "POST", headers,
          body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }) });
      };
      const round = async () => {
        for (const name of ["echo", "later", "fail"]) {
          await many(CALLS / 10, async () => (await server.fetch(post(name))).text());
        }
      };
    `),
  );
});

test("unused servers and clients are garbage collected", () => {
  assertFlat(
    rounds(`
      let end;
      const round = async () => {
        for (let turn = 0; turn < 300; turn++) {
          const one = new Server({ name: "one", version: "1" });
          one.tool("self", { input }, () => one.constructor.name);
          const client = await Client.memory(one);
          await client.callTool("self");
          await client.close();
          new Server({ name: "unused", version: "1" }).tool("echo", { input }, ({ text }) => text);
        }
        await new Promise(setImmediate);
      };
    `),
  );
});
