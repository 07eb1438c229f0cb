// `server.listen({ workers })`: several processes of a program on one socket.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { Client, Server } from "mcpline";

const OPTIONS = { skip: process.platform === "win32" ? "Windows has no sockets that processes inherit" : false };

const PROGRAM = `
  import { writeFile } from "node:fs/promises";
  import { Server } from ${JSON.stringify(import.meta.resolve("mcpline"))};
  const server = new Server({ name: "workers", version: "1" });
  server.tool("pid", {}, () => String(process.pid));
  server.tool("slow", {}, async () => {
    console.log("began");
    await new Promise((resolve) => setTimeout(resolve, 500));
    return "done";
  });
  if (process.env.FAILS && process.env.MCPLINE_WORKER) process.exit(3);
  if (process.env.HANGS && process.env.MCPLINE_WORKER) {
    // One of the workers creates the file.
    const hangs = await writeFile(process.env.HANGS, "", { flag: "wx" }).then(() => true, () => false);
    if (hangs) await new Promise(() => setInterval(() => {}, 1000));
  }
  if (process.env.DIRECTORY) process.chdir(process.env.DIRECTORY);
  server.closeOnSignals();
  const workerStartTimeout = process.env.HANGS ? 10_000 : undefined;
  const { url } = await server.listen({ workers: 3, workerStartTimeout, stateless: true });
  console.log(url);
  setInterval(() => {}, 1000);
`;

/** Waits until a condition holds. */
async function until(condition) {
  for (const end = Date.now() + 60_000; !(await condition());) {
    assert.ok(Date.now() < end, condition.toString());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts the program, with options of Node, in its folder; `end` ends it, if it has not ended. */
async function started(env = {}, options = []) {
  const folder = await mkdtemp(join(tmpdir(), "mcpline-workers-"));
  await writeFile(join(folder, "program.mjs"), PROGRAM);
  await writeFile(join(folder, "imported.mjs"), "");
  const child = spawn(process.execPath, [...options, "program.mjs"], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text) => (output.out += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (output.err += text));
  const exit = once(child, "close");
  const end = async () => {
    child.kill("SIGKILL");
    await exit;
    await rm(folder, { recursive: true });
  };
  return { child, output, exit, end };
}

/** Calls a tool on a connection of its own. */
async function called(url, name) {
  const client = await Client.connect(url, { revisions: ["2026-07-28"] });
  try {
    return (await client.callTool(name)).content[0].text;
  } finally {
    await client.close();
  }
}

/** Calls until this many workers have answered. */
async function workers(url, count) {
  const pids = new Set();
  await until(async () => pids.add(Number(await called(url, "pid"))).size >= count);
  return pids;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Returns the URL when the program has written it; each process does. */
async function urlOf(output) {
  await until(() => output.out.includes("/mcp\n"));
  return /http:\S+/.exec(output.out)[0];
}

test("options of Node with relative paths hold when the program has changed its directory", OPTIONS, async () => {
  const { output, end } = await started({ DIRECTORY: "/" }, ["--import", "./imported.mjs"]);
  try {
    await workers(await urlOf(output), 3);
  } finally {
    await end();
  }
});

test("all workers answer, a killed one is replaced, and all stop together", OPTIONS, async () => {
  const { child, output, exit, end } = await started();
  try {
    const url = await urlOf(output);
    const pids = await workers(url, 3);
    assert.ok(!pids.has(child.pid));
    const [victim] = pids;
    process.kill(victim, "SIGKILL");
    await until(() => !isAlive(victim));
    const later = await workers(url, 3);
    assert.ok(!later.has(victim));
    const slow = called(url, "slow");
    await until(() => output.out.includes("began"));
    // As systemd does: all processes get the signal.
    for (const pid of [child.pid, ...later]) {
      process.kill(pid, "SIGTERM");
    }
    assert.equal(await slow, "done");
    assert.deepEqual(await exit, [0, null], output.err);
    assert.ok([...later].every((pid) => !isAlive(pid)));
    assert.equal(output.err.split("serves MCP at").length, 2, output.err);
    assert.match(output.err, /a worker process has ended; another one takes its place/);
  } finally {
    await end();
  }
});

test("workers end with a killed supervisor", OPTIONS, async () => {
  const { child, output, end } = await started();
  try {
    const pids = await workers(await urlOf(output), 3);
    child.kill("SIGKILL");
    await until(() => [...pids].every((pid) => !isAlive(pid)));
  } finally {
    await end();
  }
});

test("a program whose workers cannot start fails", OPTIONS, async () => {
  const { output, exit, end } = await started({ FAILS: "1" });
  try {
    assert.deepEqual(await exit, [1, null]);
    assert.match(output.err, /TransportError: 5 worker processes in a row did not start.*exit status: 3/);
  } finally {
    await end();
  }
});

test("a worker that hangs before it serves is killed and replaced", OPTIONS, async () => {
  const folder = await mkdtemp(join(tmpdir(), "mcpline-hangs-"));
  const { child, output, exit, end } = await started({ HANGS: join(folder, "hung") });
  try {
    await until(() => output.err.includes("has not completed its startup within `worker_start_timeout`"));
    await workers(await urlOf(output), 3);
    child.kill("SIGTERM");
    assert.deepEqual(await exit, [0, null]);
  } finally {
    await end();
    await rm(folder, { recursive: true });
  }
});

test("workers need shared sessions, a whole number, and the main thread", OPTIONS, async () => {
  const server = new Server({ name: "workers", version: "1" });
  await assert.rejects(server.listen({ workers: 2 }), /workers: clients of revisions up to 2025-11-25 have sessions/);
  for (const count of [0, 1.5, "2", 1025]) {
    await assert.rejects(server.listen({ workers: count, stateless: true }), /`workers` must be a whole number/);
  }
  for (const workerStartTimeout of [0, -1, NaN, "60"]) {
    await assert.rejects(
      server.listen({ workers: 2, workerStartTimeout, stateless: true }),
      /workerStartTimeout|worker_start_timeout/,
    );
  }
  const source = `
    const { parentPort } = require("node:worker_threads");
    import(${JSON.stringify(import.meta.resolve("mcpline"))})
      .then(({ Server }) => new Server({ name: "x", version: "1" }).listen({ workers: 2, stateless: true }))
      .then(() => "listens", (error) => error.message)
      .then((message) => parentPort.postMessage(message));
  `;
  const thread = new Worker(source, { eval: true });
  const [message] = await once(thread, "message");
  assert.match(message, /on the main thread/);
  await thread.terminate();
});

test("a server listens on an inherited socket", OPTIONS, async () => {
  const socket = createServer().listen(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  const server = new Server({ name: "inherited", version: "1" });
  server.tool("pid", {}, () => String(process.pid));
  const listening = await server.listen({ host: `fd://${socket._handle.fd}` });
  assert.equal(listening.port, port);
  await server.close();
  socket.close();
  await assert.rejects(server.listen({ host: "fd://x" }), /has no descriptor/);
});
