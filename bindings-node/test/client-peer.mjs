// A server for tests of clients, and every way to reach it.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { createServer } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Client, Server } from "mcpline";

export const LEGACY = "2025-11-25";
export const MODERN = "2026-07-28";

const PROGRAM = fileURLToPath(new URL("client-program.mjs", import.meta.url));
const FORM = { type: "object", properties: { city: { type: "string", default: "Oslo" } } };

/** A server with some of every feature. `seen` records what happens in it. */
export function makeServer(seen = {}) {
  const server = new Server({ name: "peer", version: "1.2.3", instructions: "ask it", settings: { pageSize: 2 } });
  const text = { type: "object", properties: { text: { type: "string" } } };
  server.tool("echo", { input: text, annotations: { readOnlyHint: true } }, ({ text }) => text ?? "");
  server.tool("sum", { input: { type: "object" }, output: { type: "object", required: ["sum"] } }, () => ({ sum: 3 }));
  server.tool("fails", {}, () => ({ content: [{ type: "text", text: "no" }], isError: true }));
  server.tool("elicits", {}, async (_, ctx) => JSON.stringify(await ctx.elicit("Where?", FORM)));
  server.tool("visits", {}, async (_, ctx) => (await ctx.elicitUrl("Go", "https://example.com", {})).action);
  server.tool("samples", {}, async (_, ctx) => {
    const messages = [{ role: "user", content: { type: "text", text: "Hi" } }];
    return JSON.stringify((await ctx.sample({ messages, maxTokens: 5 })).content);
  });
  server.tool("lists-roots", {}, async (_, ctx) => JSON.stringify(await ctx.listRoots()));
  server.tool("reports", {}, async (_, ctx) => {
    ctx.progress(1, 2, "half");
    ctx.progress(2, 2);
    return "done";
  });
  server.tool("logs", {}, (_, ctx) => {
    ctx.info({ at: "work" }, "peer");
    return "logged";
  });
  server.tool("waits", {}, async (_, ctx) => {
    seen.started?.();
    ctx.progress(1);
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    seen.cancelled?.();
    return "cancelled";
  });
  server.tool("pid", {}, () => String(process.pid));
  server.tool("soon", {}, async () => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    return "now";
  });
  server.tool("changes", {}, () => {
    server.notifyResourceUpdated("test://a");
    server.removeTool("fails");
    return "changed";
  });
  server.resource("test://a", { name: "a", mimeType: "text/plain" }, () => "the a");
  server.resource("test://of/{name}", { name: "of", complete: { name: ["ada", "alan"] } }, ({ name }) => name);
  const argument = { who: { complete: ["Ada", "Alan"] } };
  server.prompt("greet", { arguments: argument }, ({ who }) => `Hello ${who}`);
  return server;
}

/** A custom transport: a program with which only this class communicates, over pipes. */
export function pipes(seen = {}) {
  return {
    open(incoming) {
      seen.opened = (seen.opened ?? 0) + 1;
      const child = spawn(process.execPath, [PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
      createInterface({ input: child.stdout })
        .on("line", (line) => incoming.message(line))
        .on("close", () => incoming.closed());
      seen.child = child;
      return {
        send: (message) => child.stdin.write(`${message}\n`),
        close: () => {
          seen.closed = (seen.closed ?? 0) + 1;
          child.stdin.end();
        },
      };
    },
  };
}

/** Ways to reach a new server: functions that connect, and register their cleanup with `t`. */
export const ways = {
  memory: (t, options, seen) => Client.memory(makeServer(seen), options),
  http: async (t, options, seen) => {
    const server = makeServer(seen);
    t.after(() => server.close());
    return Client.connect((await server.listen()).url, options);
  },
  program: (t, options) => Client.spawn(process.execPath, [PROGRAM], options),
  socket: async (t, options) => {
    const folder = mkdtempSync(join(tmpdir(), "mcpline-"));
    const path = join(folder, "peer.sock");
    const listening = createServer((socket) => {
      const child = spawn(process.execPath, [PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
      socket.pipe(child.stdin).on("error", () => undefined);
      child.stdout.pipe(socket).on("error", () => undefined);
    });
    await new Promise((resolve) => listening.listen(path, resolve));
    t.after(() => {
      listening.close();
      rmSync(folder, { recursive: true });
    });
    return Client.socket(path, options);
  },
  transport: (t, options) => Client.over(pipes(), options),
};

/** Returns a client that is connected in one of the ways, and closed after the test. */
export async function reach(t, way, { revision, seen, ...options } = {}) {
  const chosen = revision === undefined ? options : { ...options, revisions: [revision] };
  const client = await ways[way](t, { openTimeout: 60_000, probeTimeout: 60_000, ...chosen }, seen);
  t.after(() => client.close());
  return client;
}

/** Resolves when the process no longer exists. */
export async function gone(pid) {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Returns a promise and the function that settles it. */
export function settable() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return [promise, resolve];
}
