// AsyncLocalStorage in handlers: each runs in the context that the program had when it passed on the request.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { Client, Server } from "mcpline";

import { captureContext, contextOf, RecentValues } from "../dist/internals.js";
import { Child, called, messageOf, posted } from "./peer.mjs";

const storage = new AsyncLocalStorage();

/** A server whose tools return the store, at once and after a wait. */
function make() {
  const server = new Server({ name: "contexts", version: "1" });
  const input = { type: "object", properties: { pad: { type: "string" } } };
  const store = () => String(storage.getStore());
  server.tool("now", { input }, store);
  server.tool("later", { input }, async () => {
    await new Promise(setImmediate);
    return store();
  });
  server.resource("test://store", { name: "store" }, store);
  server.prompt("store", { arguments: { a: { complete: () => [store()] } } }, store);
  server.tool("aborted", {}, async (_, ctx) => {
    const [seen] = await Promise.all([
      new Promise((resolve) => ctx.signal.addEventListener("abort", () => resolve(store()))),
      reached.emit("running"),
    ]);
    reached.emit("aborted", seen);
    return "";
  });
  return server;
}

const reached = new EventEmitter();
const USERS = ["ada", "ben", "cyd"];
const textOf = (result) => result.content[0].text;

for (const tool of ["now", "later"]) {
  test(`fetch: requests at the same time keep the context of each (${tool})`, async () => {
    const server = make();
    const call = (user) => storage.run(user, () => called(server.fetch, tool));
    const results = await Promise.all(USERS.map(call));
    assert.deepEqual(results.map(textOf), USERS);
    assert.equal(textOf(await called(server.fetch, tool)), "undefined");
  });

  test(`handler: requests at the same time keep the context of each (${tool})`, async (t) => {
    const server = make();
    const ends = new Map();
    const outer = createServer((request, response) => {
      const user = request.headers["x-user"];
      storage.run(user, () => {
        response.on("finish", () => ends.set(user, storage.getStore()));
        server.handler(request, response);
      });
    }).listen(0, "127.0.0.1");
    await once(outer, "listening");
    t.after(() => outer.close());
    const url = `http://127.0.0.1:${outer.address().port}/mcp`;
    // A body that arrives in several pieces is passed on later than a short one.
    const pads = ["", "x".repeat(300_000)];
    for (const pad of pads) {
      const call = async (user) => {
        const init = posted("tools/call", { name: tool, arguments: { pad } });
        const response = await fetch(url, { ...init, headers: { ...init.headers, "x-user": user } });
        return textOf((await messageOf(response)).result);
      };
      assert.deepEqual(await Promise.all(USERS.map(call)), USERS);
    }
    assert.deepEqual(
      [...ends].sort(),
      USERS.map((user) => [user, user]),
    );
  });
}

test("resources, prompts and completions run in the context of their request", async () => {
  const server = make();
  const ask = (method, params) =>
    storage.run("ada", async () => {
      const request = new Request("http://localhost/mcp", posted(method, params));
      return (await messageOf(await server.fetch(request))).result;
    });
  assert.equal((await ask("resources/read", { uri: "test://store" })).contents[0].text, "ada");
  assert.equal((await ask("prompts/get", { name: "store", arguments: { a: "" } })).messages[0].content.text, "ada");
  const ref = { type: "ref/prompt", name: "store" };
  const { completion } = await ask("completion/complete", { ref, argument: { name: "a", value: "" } });
  assert.deepEqual(completion.values, ["ada"]);
});

const INITIALIZE = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "peer", version: "1" } };

/** A server whose notifications are recorded: the user who sent each, and what its handler has seen. */
function makeNotified() {
  const server = make();
  const seen = [];
  const arrived = new EventEmitter();
  server.onNotification("test/note", {}, ({ by }, ctx) => {
    seen.push([by, storage.getStore(), ctx.context, ctx.request?.headers["x-user"]]);
    arrived.emit("note");
  });
  /** Waits for a number of notifications. */
  const notes = async (count) => {
    while (seen.length < count) {
      await once(arrived, "note");
    }
    return [...seen].sort();
  };
  return { server, notes };
}

/** Serves a server in an outer one that reads bodies, and passes on as many requests at a time as `together` says. */
async function outerOf(t, server, together) {
  const mcp = server.httpApp();
  let waiting = [];
  const outer = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) {
      pieces.push(piece);
    }
    const parsedBody = request.method === "POST" ? Buffer.concat(pieces) : undefined;
    const user = request.headers["x-user"];
    waiting.push(() => storage.run(user, () => mcp.handler(request, response, { parsedBody, context: user })));
    if (waiting.length >= together.count) {
      const passed = waiting;
      waiting = [];
      passed.forEach((pass) => pass());
    }
  }).listen(0, "127.0.0.1");
  await once(outer, "listening");
  t.after(async () => {
    outer.closeAllConnections();
    outer.close();
    await server.close();
  });
  const base = `http://127.0.0.1:${outer.address().port}`;
  const post = async (user, path, message, session) => {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "x-user": user,
      ...session,
    };
    const body = JSON.stringify(Array.isArray(message) ? message : { jsonrpc: "2.0", ...message });
    const response = await fetch(base + path, { method: "POST", headers, body });
    return { response, text: await response.text() };
  };
  return { base, post };
}

const noted = (by) => ({ method: "test/note", params: { by } });
const NOTED = USERS.map((user) => [user, user, user, user]);

test("notifications at the same time run in the context of each, and have its request", async (t) => {
  const { server, notes } = makeNotified();
  const together = { count: 1 };
  const { post } = await outerOf(t, server, together);
  const { response } = await post("host", "/mcp", { id: 1, method: "initialize", params: INITIALIZE });
  const session = { "mcp-session-id": response.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-06-18" };
  await post("host", "/mcp", { method: "notifications/initialized" }, session);
  together.count = USERS.length;
  const answers = await Promise.all(USERS.map((user) => post(user, "/mcp", noted(user), session)));
  assert.deepEqual(
    answers.map(({ response }) => response.status),
    [202, 202, 202],
  );
  assert.deepEqual(await notes(USERS.length), NOTED);
});

test("notifications of a batch with a request run in the context of the batch, and have its request", async (t) => {
  const { server, notes } = makeNotified();
  const { post } = await outerOf(t, server, { count: 1 });
  const params = { ...INITIALIZE, protocolVersion: "2025-03-26" };
  const { response } = await post("host", "/mcp", { id: 1, method: "initialize", params });
  const session = { "mcp-session-id": response.headers.get("mcp-session-id") };
  await post("host", "/mcp", { method: "notifications/initialized" }, session);
  const batch = [noted("ada"), { id: 2, method: "ping" }].map((message) => ({ jsonrpc: "2.0", ...message }));
  const { text } = await post("ada", "/mcp", batch, session);
  assert.deepEqual(JSON.parse(text), [{ jsonrpc: "2.0", id: 2, result: {} }]);
  assert.deepEqual(await notes(1), [NOTED[0]]);
});

test("messages of HTTP+SSE at the same time run in the context of each, and have its request", async (t) => {
  const { server, notes } = makeNotified();
  const together = { count: 1 };
  const { base, post } = await outerOf(t, server, together);
  const abort = new AbortController();
  const stream = await fetch(`${base}/sse`, {
    headers: { accept: "text/event-stream", "x-user": "stream" },
    signal: abort.signal,
  });
  let received = "";
  const pieces = stream.body.pipeThrough(new TextDecoderStream()).getReader();
  const until = async (pattern) => {
    while (!pattern.test(received)) {
      received += (await pieces.read()).value;
    }
    return pattern.exec(received)[1];
  };
  const path = await until(/data: (\S*messages\S*)/);
  await post("host", path, { id: 1, method: "initialize", params: { ...INITIALIZE, protocolVersion: "2024-11-05" } });
  await post("host", path, { method: "notifications/initialized" });
  together.count = USERS.length;
  await Promise.all(USERS.map((user) => post(user, path, noted(user))));
  assert.deepEqual(await notes(USERS.length), NOTED);
  for (const tool of ["now", "later"]) {
    const params = { name: tool, arguments: {} };
    await Promise.all(USERS.map((user) => post(user, path, { id: `${tool}-${user}`, method: "tools/call", params })));
    for (const user of USERS) {
      assert.equal(await until(new RegExp(`"id":"${tool}-${user}".*"text":"(\\w+)"`)), user);
    }
  }
  abort.abort();
});

test("a call of an unknown origin runs in the context of no request", () => {
  const runs = (context) => context.runInAsyncScope(() => storage.getStore());
  const [unknown, none, other] = storage.run("another", () => {
    const current = captureContext();
    return storage.run("ambient", () => [
      runs(contextOf(0xffff_ffff, current)),
      runs(contextOf(0, undefined)),
      runs(contextOf(0, current)),
    ]);
  });
  assert.deepEqual([unknown, none, other], [undefined, undefined, "another"]);
});

test("values are kept for two generations at most", () => {
  const dropped = [];
  const recent = new RecentValues((number) => dropped.push(number));
  for (let number = 0; number < 2048; number++) {
    recent.keep(number, `value ${number}`, 100);
  }
  assert.equal(dropped.length, 1024);
  assert.deepEqual([recent.get(1023), recent.get(1024)], [undefined, "value 1024"]);
  recent.clear();
  assert.deepEqual(
    dropped,
    Array.from({ length: 2048 }, (_, number) => number),
  );
  assert.equal(recent.get(2047), undefined);
});

test("large values are kept up to their total size", () => {
  const dropped = [];
  const recent = new RecentValues((number) => dropped.push(number));
  for (let number = 0; number < 64; number++) {
    recent.keep(number, `value ${number}`, 1024 * 1024);
  }
  assert.ok(dropped.length >= 48, `${dropped.length} of 64 MiB were dropped`);
  assert.equal(recent.get(63), "value 63");
  recent.keep(64, "one value", 1024 * 1024 * 1024);
  assert.equal(recent.get(64), "one value");
  recent.clear();
  assert.equal(dropped.length, 65);
});

test("listeners of a call's signal run in the context of its handler", async () => {
  const server = make();
  const [running, aborted] = [once(reached, "running"), once(reached, "aborted")];
  const disconnect = new AbortController();
  // Without a socket, nothing else keeps the process alive.
  const alive = setInterval(() => undefined, 1000);
  const init = posted("tools/call", { name: "aborted", arguments: {} });
  const request = new Request("http://localhost/mcp", { ...init, signal: disconnect.signal });
  const answer = storage.run("ada", () => server.fetch(request)).catch(() => undefined);
  await running;
  disconnect.abort();
  assert.deepEqual(await aborted, ["ada"]);
  await answer;
  clearInterval(alive);
});

test("over HTTP, handlers run in the context of listen", async () => {
  const server = make();
  const listening = await storage.run("serving", () => server.listen());
  const response = await fetch(listening.url, posted("tools/call", { name: "now", arguments: {} }));
  assert.equal(textOf((await messageOf(response)).result), "serving");
  await listening.close();
});

test("over stdio, handlers run in the context of run", async () => {
  const child = new Child(`
    import { AsyncLocalStorage } from "node:async_hooks";
    import { Server } from "mcpline";
    const storage = new AsyncLocalStorage();
    const server = new Server({ name: "contexts", version: "1" });
    server.tool("now", {}, () => String(storage.getStore()));
    await storage.run("serving", () => server.run());
  `);
  await child.open();
  child.call(1, "now");
  assert.equal(textOf((await child.receive()).result), "serving");
  child.process.stdin.end();
  await child.ended;
});

test("in the same process, handlers run in the context of Client.memory", async () => {
  const server = make();
  const client = await storage.run("testing", () => Client.memory(server));
  assert.equal(textOf(await client.callTool("now")), "testing");
  await client.close();
  assert.equal(textOf(await called(server.fetch, "now")), "undefined");
});

/** Returns both ends of a channel in this process: a client's transport, and the function that opens the server's end. */
function channel() {
  let toServer;
  let toClient;
  const transport = {
    open(incoming) {
      toClient = incoming;
      return { send: (message) => toServer.message(message), close: () => toServer.closed() };
    },
  };
  const open = (incoming) => {
    toServer = incoming;
    return { send: (message) => toClient.message(message), close: () => toClient.closed() };
  };
  return { transport, open };
}

for (const layers of [0, 2]) {
  test(`over custom transports, handlers run in the context of their channel (${layers} middlewares)`, async () => {
    await callOverChannels(layers);
  });
}

async function callOverChannels(layers) {
  const server = make();
  for (let layer = 0; layer < layers; layer++) {
    server.use((request, next) => next(request));
  }
  const clients = [];
  for (const user of USERS) {
    const { transport, open } = channel();
    await storage.run(user, () => server.serveChannel(open));
    clients.push(await Client.over(transport));
  }
  for (const tool of ["now", "later"]) {
    const results = await Promise.all(clients.map((client) => client.callTool(tool)));
    assert.deepEqual(results.map(textOf), USERS);
  }
  await Promise.all(clients.map((client) => client.close()));
  await server.close();
}

test("handlers of a client run in the context that it was created in", async () => {
  const server = make();
  server.tool("asks", {}, async (_, ctx) => (await ctx.elicit("Who?")).action);
  let seen;
  const elicit = () => {
    seen = storage.getStore();
    return "decline";
  };
  const client = await storage.run("host", () => Client.memory(server, { elicit }));
  assert.equal(textOf(await client.callTool("asks")), "decline");
  assert.equal(seen, "host");
  await client.close();
});
