// Lifetime of processes with clients, and what they leave behind; workers; garbage collection.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { fileURLToPath } from "node:url";

import { Client, Server } from "mcpline";

import { native } from "../dist/internals.js";
import { gone, makeServer } from "./client-peer.mjs";
import { Child } from "./peer.mjs";

const listening = await makeServer().listen();
after(() => listening.close());

const PEER = JSON.stringify(new URL("client-peer.mjs", import.meta.url).href);
const PROGRAM = JSON.stringify(fileURLToPath(new URL("client-program.mjs", import.meta.url)));
const CONNECT = {
  memory: "await Client.memory(makeServer(), options)",
  http: `await Client.connect(${JSON.stringify(listening.url)}, options)`,
  program: `await Client.spawn(process.execPath, [${PROGRAM}], options)`,
};

/** Starts a program that connects as `client` and then runs `body`. */
function connected(way, body, { options = "{}", args } = {}) {
  const child = new Child(
    `import { Client } from "mcpline";
     import { makeServer } from ${PEER};
     const options = ${options};
     const client = ${CONNECT[way]};
     const textOf = ({ content }) => content[0].text;
     ${body}`,
    { args },
  );
  after(() => child.process.kill("SIGKILL"));
  return child;
}

for (const way of Object.keys(CONNECT)) {
  test(`an idle client does not keep the process alive: ${way}`, async () => {
    const child = connected(way, `console.log(textOf(await client.callTool("pid")));`);
    const pid = Number(await child.line());
    assert.deepEqual(await child.ended, { code: 0, signal: null });
    if (way === "program") {
      await gone(pid);
    }
  });

  test(`a client with handlers or a closed client does not keep the process alive: ${way}`, async () => {
    const options = "{ elicit: () => 'accept', onNotification: () => undefined, roots: [] }";
    const idle = connected(way, `console.log(textOf(await client.callTool("elicits")));`, { options });
    assert.match(await idle.line(), /accept/);
    assert.deepEqual(await idle.ended, { code: 0, signal: null });
    const closed = connected(way, `client.notifications(); await client.close();`, { options });
    assert.deepEqual(await closed.ended, { code: 0, signal: null });
  });

  test(`a call that waits keeps the process alive until it is answered: ${way}`, async () => {
    const child = connected(way, `client.callTool("soon").then((result) => console.log(textOf(result)));`);
    assert.equal(await child.line(), "now");
    assert.deepEqual(await child.ended, { code: 0, signal: null });
  });

  test(`process.exit ends a process with calls in flight, and whatever it started: ${way}`, async () => {
    const body = `
      client.callTool("waits").catch(() => undefined);
      console.log(textOf(await client.callTool("pid")));
      process.exit(7);`;
    const child = connected(way, body);
    const pid = Number(await child.line());
    assert.deepEqual(await child.ended, { code: 7, signal: null });
    if (way === "program") {
      await gone(pid);
    }
  });

  test(`an uncaught exception ends a process with calls in flight: ${way}`, async () => {
    const body = `
      client.callTool("waits").catch(() => undefined);
      console.log(textOf(await client.callTool("pid")));
      setImmediate(() => { throw new Error("uncaught"); });`;
    const child = connected(way, body);
    const pid = Number(await child.line());
    assert.deepEqual(await child.ended, { code: 1, signal: null });
    assert.match(child.stderr, /uncaught/);
    if (way === "program") {
      await gone(pid);
    }
  });

  test(`a garbage-collected client closes its connection, even if its handlers refer to it: ${way}`, async () => {
    const body = `
      globalThis.kept = client;
      console.log(textOf(await client.callTool("pid")));
      const letGo = new FinalizationRegistry((what) => console.log(what));
      await (async () => {
        const know = {};
        const options = { elicit: () => know.client, onNotification: () => know.client };
        const client = ${CONNECT[way]};
        know.client = client;
        letGo.register(client, "collected");
        console.log(textOf(await client.callTool("pid")));
        client.notifications();
      })();
      const collecting = setInterval(() => gc(), 10);
      process.stdin.once("data", () => { clearInterval(collecting); process.stdin.unref(); });`;
    const child = connected(way, body, { args: ["--expose-gc"] });
    const [kept, dropped] = [Number(await child.line()), Number(await child.line())];
    assert.equal(await child.line(), "collected");
    if (way === "program") {
      await gone(dropped);
      process.kill(kept, 0);
    }
    child.process.stdin.write("x");
    assert.deepEqual(await child.ended, { code: 0, signal: null });
  });
}

test("waiting for a notification keeps the process alive", async () => {
  const body = `
    const notifications = client.notifications();
    notifications.next().then(({ value }) => console.log(value.method));
    setTimeout(() => client.callTool("changes"), 200).unref();`;
  const child = connected("memory", body, { options: '{ revisions: ["2025-11-25"] }' });
  assert.match(await child.line(), /^notifications\//);
  assert.deepEqual(await child.ended, { code: 0, signal: null });
});

test("a killed process ends the programs that its clients have started", async () => {
  const child = connected("program", `console.log(textOf(await client.callTool("pid"))); setInterval(() => 0, 1000);`);
  const pid = Number(await child.line());
  child.process.kill("SIGKILL");
  await child.ended;
  await gone(pid);
});

for (const way of Object.keys(CONNECT)) {
  test(`the end of a worker ends only its own clients: ${way}`, async (t) => {
    const ours = await Client.connect(listening.url);
    t.after(() => ours.close());
    const call = ours.callTool("soon");
    const source = `
      const { parentPort } = require("node:worker_threads");
      (async () => {
        const { Client } = await import("mcpline");
        const { makeServer } = await import(${PEER});
        const options = {};
        const client = ${CONNECT[way]};
        client.callTool("waits").catch(() => undefined);
        parentPort.postMessage((await client.callTool("pid")).content[0].text);
      })();`;
    for (let round = 0; round < 3; round++) {
      const worker = new Worker(source, { eval: true });
      const [pid] = await once(worker, "message");
      await worker.terminate();
      if (way === "program") {
        await gone(Number(pid));
      }
    }
    assert.equal((await call).content[0].text, "now");
    assert.equal((await ours.callTool("echo", { text: "still here" })).content[0].text, "still here");
  });
}

test("closing leaves no descriptor open, though the client is held", async () => {
  if (process.platform !== "linux") {
    return;
  }
  const { readdirSync } = await import("node:fs");
  const open = () => readdirSync("/proc/self/fd").length;
  const warm = await Client.connect(listening.url);
  await warm.close();
  const before = open();
  const held = [];
  for (let round = 0; round < 20; round++) {
    const client = await Client.connect(listening.url);
    await Promise.all([client.listTools(), client.callTool("echo"), client.ping()]);
    await client.close();
    held.push(client);
  }
  // Sockets are closed by tasks, and on both sides here.
  const signal = AbortSignal.timeout(60_000);
  while (open() > before + 2) {
    await sleep(10, undefined, { signal });
  }
  assert.equal(held.length, 20);
});

test("a client that is opened twice stays open", async () => {
  // Only through the addon: the class opens each client once.
  let handle;
  const { prototype } = native.Client;
  const open = prototype.open;
  Object.defineProperty(prototype, "open", {
    configurable: true,
    value(promise) {
      handle = this;
      return open.call(this, promise);
    },
  });
  try {
    const server = new Server({ name: "test", version: "1" });
    server.tool("echo", {}, () => "done");
    const client = await Client.memory(server);
    assert.throws(() => open.call(handle, 1_000_000), /connecting or connected already/);
    assert.equal((await client.callTool("echo")).content[0].text, "done");
    await client.close();
    assert.throws(() => open.call(handle, 1_000_000), /client is closed/);
    await assert.rejects(client.callTool("echo"), { name: "ClosedError" });
  } finally {
    Object.defineProperty(prototype, "open", { configurable: true, value: open });
  }
});
