// Lifetime of processes with servers; workers; use of stdout.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

import { Child } from "./peer.mjs";

const source = (body) => `
  import { Server, Client } from "mcpline";
  const server = new Server({ name: "child", version: "1" });
  server.tool("echo", { input: { type: "object" } }, ({ text }) => text);
  ${body}
`;

function started(body, options) {
  const child = new Child(source(body), options);
  after(() => child.process.kill("SIGKILL"));
  return child;
}

test("a process that only has a server ends", async () => {
  const child = started("");
  assert.deepEqual(await child.ended, { code: 0, signal: null });
});

test("a mounted server keeps no process alive", async () => {
  const child = started(`
    const response = await server.fetch(new Request("http://localhost/mcp", { method: "DELETE" }));
    console.log(response.status);
  `);
  assert.deepEqual(await child.ended, { code: 0, signal: null });
  assert.match(await child.line(), /^\d+$/);
});

test("a server that listens keeps its process alive until it is closed", async () => {
  const child = started(`
    const listening = await server.listen();
    console.log(listening.url);
    process.stdin.once("data", async () => {
      await server.close();
      console.log("closed");
    });
    process.stdin.unref();
  `);
  const url = await child.line();
  assert.equal((await fetch(new URL("/health", url))).status, 200);
  child.process.stdin.end("x");
  assert.equal(await child.line(), "closed");
  assert.deepEqual(await child.ended, { code: 0, signal: null });
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  test(`${signal} ends a server on stdio in order`, async () => {
    const child = started("await server.run();");
    await child.open();
    child.process.kill(signal);
    assert.deepEqual(await child.ended, { code: 0, signal: null });
  });
}

test("output of the program goes to stderr while stdio is served", async () => {
  const child = started(`
    import { execSync } from "node:child_process";
    server.tool("print", { input: { type: "object" } }, () => {
      console.log("from console");
      process.stdout.write("from stdout\\n");
      execSync("echo from a child", { stdio: "inherit" });
      return "printed";
    });
    console.log("before");
    await server.run();
    console.log("after");
  `);
  assert.equal(await child.line(), "before");
  await child.open();
  child.call(1, "print");
  assert.deepEqual((await child.receive()).result.content, [{ type: "text", text: "printed" }]);
  child.process.stdin.end();
  assert.equal(await child.line(), "after");
  assert.deepEqual(await child.ended, { code: 0, signal: null });
  assert.match(child.stderr, /from console\n[^]*from stdout\n[^]*from a child\n/);
});

test("a handler that rejects later than its call doesn't end the server silently", async () => {
  const child = started(`
    server.tool("forget", { input: { type: "object" } }, () => { void Promise.reject(new Error("forgotten")); return ""; });
    await server.run();
  `);
  await child.open();
  child.call(1, "forget");
  const { code } = await child.ended;
  assert.notEqual(code, 0);
  assert.match(child.stderr, /forgotten/);
});

test("process.exit ends a server at once", async () => {
  const child = started(`
    server.tool("exit", { input: { type: "object" } }, () => process.exit(7));
    await server.run();
  `);
  await child.open();
  child.call(1, "exit");
  assert.deepEqual(await child.ended, { code: 7, signal: null });
});

const worker = (body) =>
  new Worker(
    `
      const { parentPort } = require("node:worker_threads");
      const { Server } = require("mcpline");
      const server = new Server({ name: "worker", version: "1" });
      server.tool("echo", { input: { type: "object" } }, ({ text }) => text);
      server.tool("hang", { input: { type: "object" } }, () => { parentPort.postMessage("hanging"); return new Promise(() => {}); });
      ${body}
    `,
    { eval: true },
  );

const handshake = async (url) => {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const clientInfo = { name: "peer", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params });
  const opened = await fetch(url, { method: "POST", headers, body });
  await opened.text();
  return { ...headers, "mcp-session-id": opened.headers.get("mcp-session-id") };
};

const call = (url, headers, name, args = {}) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  return fetch(url, { method: "POST", headers, body });
};

test("workers serve side by side, and one that is terminated takes only its own calls along", async () => {
  const workers = [1, 2].map(() => worker(`server.listen().then(({ url }) => parentPort.postMessage(url));`));
  const urls = await Promise.all(workers.map(async (worker) => (await once(worker, "message"))[0]));
  const [first, second] = await Promise.all(urls.map(handshake));
  const hanging = call(urls[0], first, "hang").then((response) => response.text());
  const [word] = await once(workers[0], "message");
  assert.equal(word, "hanging");
  const ended = assert.doesNotReject(hanging.catch(() => "the connection ended"));
  await workers[0].terminate();
  await ended;
  const answer = await (await call(urls[1], second, "echo", { text: "still here" })).json();
  assert.deepEqual(answer.result.content, [{ type: "text", text: "still here" }]);
  await workers[1].terminate();
});

test("a worker whose server is closed ends by itself", async () => {
  const ending = worker(`server.listen().then(async (listening) => { await listening.close(); });`);
  assert.deepEqual(await once(ending, "exit"), [0]);
});

test("the package can be loaded and unloaded again and again", async () => {
  const descriptors = async () => (await import("node:fs")).readdirSync("/proc/self/fd").length;
  const round = async () => {
    const one = worker(`server.listen().then(({ url }) => parentPort.postMessage(url));`);
    await once(one, "message");
    await one.terminate();
  };
  if (process.platform !== "linux") {
    await round();
    return;
  }
  await round();
  const before = await descriptors();
  for (let turn = 0; turn < 20; turn++) {
    await round();
  }
  // Sockets are closed by tasks.
  const signal = AbortSignal.timeout(60_000);
  while ((await descriptors()) > before + 2) {
    await sleep(10, undefined, { signal });
  }
});
