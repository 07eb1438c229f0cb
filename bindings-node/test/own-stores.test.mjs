// Shared state that a program implements: two servers over one store, and stores that fail.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { checkSharing, Server, UsageError } from "mcpline";

const LEGACY = "2025-11-25";
const METHODS = ["save", "load", "remove", "append", "end", "read", "publish", "subscribe"];

/** A store, log and bus for the servers of this process. */
class Store {
  sessions = new Map();
  removed = new Set();
  streams = new Map();
  ended = new Set();
  receivers = new Set();
  /** Called first by each method; what it returns, if anything, is the result. */
  fault = undefined;

  save(id, session, replaces, lifetime) {
    assert.ok(lifetime > 0);
    if (this.removed.has(id)) {
      return undefined;
    }
    const stored = this.sessions.get(id);
    if (stored !== undefined && !stored.equals(session) && !stored.equals(replaces)) {
      return stored;
    }
    this.sessions.set(id, Buffer.from(session));
    return undefined;
  }

  load(id) {
    return this.sessions.get(id);
  }

  remove(id) {
    this.sessions.delete(id);
    this.removed.add(id);
  }

  append(stream, number, events) {
    let { first, stored } = this.streams.get(stream) ?? { first: number, stored: [] };
    if (first + stored.length !== number) {
      [first, stored] = [number, []];
    }
    this.streams.set(stream, { first, stored: [...stored, ...events] });
  }

  end(stream, last) {
    const { first, stored } = this.streams.get(stream) ?? { first: 0, stored: [] };
    if (first + stored.length !== last + 1) {
      this.streams.delete(stream);
    }
    this.ended.add(stream);
  }

  read(stream, after) {
    const { first, stored } = this.streams.get(stream) ?? { first: Infinity, stored: [] };
    const skipped = after + 1 - first;
    if (skipped < 0 || skipped > stored.length) {
      return undefined;
    }
    // One at a time.
    const hasMore = skipped + 1 < stored.length;
    return { events: stored.slice(skipped, skipped + 1), ended: !hasMore && this.ended.has(stream), hasMore };
  }

  publish(message) {
    for (const receive of this.receivers) {
      receive(message);
    }
  }

  subscribe(receive) {
    this.receivers.add(receive);
    return () => this.receivers.delete(receive);
  }
}

/** Methods that return their results at once. */
function sync(store) {
  const method =
    (name) =>
    (...given) =>
      store.fault?.() ?? store[name](...given);
  return Object.fromEntries(METHODS.map((name) => [name, method(name)]));
}

/** Methods that return promises. */
function async(store) {
  const method =
    (name) =>
    async (...given) => {
      await new Promise((resolve) => setImmediate(resolve));
      return (await store.fault?.()) ?? store[name](...given);
    };
  return Object.fromEntries(METHODS.map((name) => [name, method(name)]));
}

/** Returns a server over a store. */
function replica(parts, options = {}) {
  let goOn;
  let wasCancelled;
  const going = new Promise((resolve) => (goOn = resolve));
  const cancelled = new Promise((resolve) => (wasCancelled = resolve));
  const sharing = { sessions: parts, events: parts, bus: parts, ...options };
  const server = new Server({ name: "replica", version: "1", settings: { sharing, shutdownTimeout: 100 } });
  server.resource("note://a", { name: "note" }, () => "a");
  server.tool("plain", {}, () => "done");
  server.tool("streams", {}, async (_, ctx) => {
    ctx.signal.addEventListener("abort", wasCancelled);
    ctx.progress(1);
    await going;
    ctx.progress(2);
    return "done";
  });
  return { server, goOn, cancelled };
}

/** Serves two servers over a store while `use` runs. */
async function replicas(parts, use) {
  const [a, b] = [replica(parts), replica(parts)];
  const [atA, atB] = await Promise.all([a, b].map(({ server }) => server.listen({ port: 0 })));
  try {
    await use({ ...a, url: atA.url }, { ...b, url: atB.url });
  } finally {
    a.goOn();
    b.goOn();
    await Promise.all([a.server.close(), b.server.close()]);
  }
}

let lastId = 0;

/** Sends a message, or begins to listen. */
function send(url, session, message, { method = "POST", last, signal } = {}) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...(session && { "mcp-session-id": session, "mcp-protocol-version": LEGACY }),
    ...(last && { "last-event-id": last }),
  };
  const body = message && JSON.stringify({ jsonrpc: "2.0", ...message });
  return fetch(url, { method, headers, body, signal });
}

/** Yields the events that have a message. */
async function* events(response) {
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const fields = text.slice(0, end).split("\n");
      const field = (name) =>
        fields
          .find((line) => line.startsWith(`${name}:`))
          ?.slice(name.length + 1)
          .trim();
      if (field("data")) {
        yield { id: field("id"), message: JSON.parse(field("data")) };
      }
    }
  }
}

/** Returns the result of a request, as JSON or at the end of a stream. */
async function resultOf(response) {
  assert.equal(response.status, 200);
  if (response.headers.get("content-type").startsWith("application/json")) {
    return (await response.json()).result;
  }
  let result;
  for await (const { message } of events(response)) {
    result = message.result ?? result;
  }
  return result;
}

/** Performs the handshake; returns the session. */
async function begin(url) {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const response = await send(url, undefined, { id: 0, method: "initialize", params });
  assert.ok(await resultOf(response));
  const session = response.headers.get("mcp-session-id");
  assert.equal((await send(url, session, { method: "notifications/initialized" })).status, 202);
  return session;
}

function call(url, session, name, options) {
  const params = { name, arguments: {}, _meta: { progressToken: 1 } };
  return send(url, session, { id: ++lastId, method: "tools/call", params }, options);
}

async function text(response) {
  return (await resultOf(response)).content[0].text;
}

for (const [kind, made] of Object.entries({ sync, async })) {
  test(`a session of one server continues at another (${kind})`, async () => {
    const store = new Store();
    await replicas(made(store), async (a, b) => {
      const session = await begin(a.url);
      for (const { url } of [b, a]) {
        assert.equal(await text(await call(url, session, "plain")), "done");
      }
      assert.ok((await send(b.url, session, undefined, { method: "DELETE" })).ok);
      // The other server gets it over the bus.
      while ((await call(a.url, session, "plain")).status !== 404) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    });
    assert.equal(store.receivers.size, 0, "the subscriptions end with the servers");
  });

  test(`a stream is resumed at another server (${kind})`, async () => {
    await replicas(made(new Store()), async (a, b) => {
      const session = await begin(a.url);
      const lost = new AbortController();
      const first = await events(await call(a.url, session, "streams", { signal: lost.signal })).next();
      assert.equal(first.value.message.params.progress, 1);
      lost.abort();
      const resumed = events(await send(b.url, session, undefined, { method: "GET", last: first.value.id }));
      a.goOn();
      assert.equal((await resumed.next()).value.message.params.progress, 2);
      const { id, message } = (await resumed.next()).value;
      assert.equal(message.result.content[0].text, "done");
      // From the beginning, after the stream has ended.
      const start = `${id.slice(0, id.indexOf("-"))}-0`;
      assert.equal(await text(await send(b.url, session, undefined, { method: "GET", last: start })), "done");
    });
  });

  test(`notifications and cancellations reach another server (${kind})`, async () => {
    await replicas(made(new Store()), async (a, b) => {
      const session = await begin(a.url);
      const subscribe = { id: ++lastId, method: "resources/subscribe", params: { uri: "note://a" } };
      assert.ok(await resultOf(await send(b.url, session, subscribe)));
      const left = new AbortController();
      const listening = events(await send(b.url, session, undefined, { method: "GET", signal: left.signal }));
      a.server.notifyResourceUpdated("note://a");
      assert.equal((await listening.next()).value.message.method, "notifications/resources/updated");
      left.abort();
      const running = await call(a.url, session, "streams");
      const requestId = lastId;
      await events(running).next();
      const cancel = { method: "notifications/cancelled", params: { requestId } };
      assert.equal((await send(b.url, session, cancel)).status, 202);
      await a.cancelled;
    });
  });
}

const FAULTS = {
  throws: [
    () => {
      throw new Error(`the disk is full: ${"x".repeat(10_000)}`);
    },
    "sessions.save: Error: the disk is full: xxx",
  ],
  rubbish: [() => 5, "sessions.save: UsageError: the result of `save` must be a Uint8Array, not number"],
  "never answers": [() => new Promise(() => {}), "no answer within 0.05 s"],
};

for (const [name, [fault, warning]] of Object.entries(FAULTS)) {
  test(`sessions live on with a store that fails: ${name}`, async () => {
    const store = new Store();
    const warnings = [];
    let warn;
    const warned = new Promise((resolve) => (warn = resolve));
    const keep = (emitted) => {
      warnings.push(emitted.message);
      if (emitted.message.includes(warning)) {
        warn();
      }
    };
    process.on("warning", keep);
    const { server } = replica(async(store), { timeout: 50 });
    const { url } = await server.listen({ port: 0 });
    try {
      const session = await begin(url);
      store.fault = fault;
      for (let round = 0; round < 2; round++) {
        assert.equal(await text(await call(url, session, "plain")), "done");
      }
      const level = { id: ++lastId, method: "logging/setLevel", params: { level: "error" } };
      assert.ok(await resultOf(await send(url, session, level)));
      assert.equal(await text(await call(url, await begin(url), "plain")), "done");
      await warned;
    } finally {
      // Nothing waits for the store.
      await server.close();
      process.off("warning", keep);
    }
    assert.ok(warnings.every((text) => text.length < 2_000));
  });
}

test("promises of a session store that are never settled hold no place", async () => {
  const store = new Store();
  const { server } = replica(async(store), { timeout: 20 });
  const { url } = await server.listen({ port: 0 });
  try {
    const session = await begin(url);
    const size = store.sessions.size;
    store.fault = () => new Promise(() => {});
    await Promise.all(Array.from({ length: 50 }, () => begin(url)));
    store.fault = undefined;
    assert.equal(await text(await call(url, session, "plain")), "done");
    // The store is used again. On a busy machine, some saves are late.
    while (store.sessions.size <= size) {
      await begin(url);
    }
  } finally {
    await server.close();
  }
});

test("calls for one stream, and of `publish`, do not overlap, even after the timeout", async () => {
  const store = new Store();
  const parts = async(store);
  const [running, overlaps] = [new Set(), []];
  let calls = 0;
  for (const name of ["append", "end", "publish"]) {
    const method = parts[name];
    parts[name] = async (...given) => {
      const key = name === "publish" ? name : given[0];
      overlaps.push(...(running.has(key) ? [key] : []));
      running.add(key);
      calls += 1;
      await new Promise((resolve) => setTimeout(resolve, 100));
      running.delete(key);
      return method(...given);
    };
  }
  const { server } = replica(parts, { timeout: 10 });
  server.tool("counts", {}, async (_, ctx) => {
    for (let step = 1; step <= 10; step++) {
      ctx.progress(step);
      server.notifyResourceUpdated("note://a");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return "done";
  });
  const { url } = await server.listen({ port: 0 });
  try {
    const session = await begin(url);
    assert.equal(await text(await call(url, session, "counts")), "done");
  } finally {
    await server.close();
  }
  assert.ok(calls > 1, `${calls}`);
  assert.deepEqual(overlaps, []);
});

test("a subscription that comes after the server has ended ends at once", async () => {
  const store = new Store();
  let subscribe;
  let ended;
  const hasEnded = new Promise((resolve) => (ended = resolve));
  const late = new Promise((resolve) => (subscribe = resolve));
  let subscribed = 0;
  const bus = {
    publish: () => {},
    subscribe: () => {
      subscribed += 1;
      return late;
    },
  };
  const { server } = replica(sync(store), { timeout: 20, bus });
  const { url } = await server.listen({ port: 0 });
  // Sessions do not wait for the subscription longer than the timeout.
  assert.equal(await text(await call(url, await begin(url), "plain")), "done");
  while (subscribed === 0) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await server.close();
  subscribe(ended);
  await hasEnded;
  assert.equal(subscribed, 1);
});

test("`onError` gets what a method throws", async () => {
  const store = new Store();
  const failed = [];
  const parts = sync(store);
  const server = new Server({
    name: "replica",
    version: "1",
    settings: { sharing: { sessions: parts, events: parts, bus: parts } },
    onError: (error, { kind, name }) => failed.push([error.message, kind, name]),
  });
  store.fault = () => {
    throw new Error("the disk is full");
  };
  const { url } = await server.listen({ port: 0 });
  try {
    await begin(url);
  } finally {
    await server.close();
  }
  assert.ok(
    failed.some((each) => each.join() === "the disk is full,sharing,sessions.save"),
    failed.join("\n"),
  );
});

test("a mounted server uses its store", async () => {
  const store = new Store();
  const { server } = replica(async(store));
  const outer = createServer(server.handler);
  outer.listen(0, "127.0.0.1");
  await once(outer, "listening");
  try {
    await begin(`http://127.0.0.1:${outer.address().port}/mcp`);
    assert.equal(store.sessions.size, 1);
    assert.equal(store.receivers.size, 1);
  } finally {
    await server.close();
    outer.close();
    outer.closeAllConnections();
  }
  assert.equal(store.receivers.size, 0);
});

test("invalid shared state is refused", () => {
  const parts = sync(new Store());
  const refused = (sharing, message) => {
    const options = { name: "test", version: "1", settings: { sharing } };
    assert.throws(
      () => new Server(options),
      (error) => error instanceof UsageError && message.test(error.message),
    );
  };
  refused(5, /`sharing` must be a string/);
  refused({ sessions: parts, events: parts }, /`sharing\.bus` must be an object, not undefined/);
  refused({ sessions: parts, events: {}, bus: parts }, /`sharing\.events` has no method `append`/);
  refused({ sessions: parts, events: parts, bus: parts, timeout: 0 }, /`timeout`/);
  refused({ sessions: parts, events: parts, bus: parts, timeout: Infinity }, /must be a finite time/);
  refused({ sessions: parts, events: parts, bus: parts, timeuot: 1 }, /did you mean `timeout`/);
});

test("stores are checked", async () => {
  for (const made of [sync, async]) {
    const parts = made(new Store());
    await checkSharing({ sessions: parts, events: parts, bus: parts });
  }
});

const BROKEN = [
  ["save", (store, id, session) => void store.sessions.set(id, session), "sessions.save: another process has changed"],
  ["load", () => Buffer.from(""), "sessions.load: an id that was never saved"],
  ["remove", () => {}, "sessions.load: a session that was removed"],
  [
    "remove",
    (store, id) => store.sessions.delete(id),
    "sessions.load: a removed session that was saved again stays removed",
  ],
  [
    "append",
    (store, stream, number, events) => {
      const { first, stored } = store.streams.get(stream) ?? { first: number, stored: [] };
      store.streams.set(stream, { first, stored: [...stored, ...events] });
    },
    "events.read: events after a gap",
  ],
  ["end", () => {}, "events.read: a stream that has ended"],
  ["end", (store, stream) => store.ended.add(stream), "events.end: a stream without its last event"],
  ["read", (store, stream, after) => store.read(stream, after) && { events: [], hasMore: true }, "events.read: a part"],
  [
    "publish",
    (store, message) => {
      store.publish(message);
      store.publish(message);
    },
    "bus.publish: messages in their order",
  ],
  ["subscribe", () => undefined, "bus.subscribe: "],
  [
    "read",
    (store, stream) => (store.streams.has(stream) ? { events: [Buffer.from("")], hasMore: true } : undefined),
    "events.read: more events than were appended",
  ],
];

for (const [name, method, reason] of BROKEN) {
  test(`the check finds what is wrong: ${reason}`, async () => {
    const store = new Store();
    const parts = { ...sync(store), [name]: (...given) => method(store, ...given) };
    const check = checkSharing({ sessions: parts, events: parts, bus: parts });
    const operation = reason.slice(0, reason.indexOf(":"));
    await assert.rejects(
      check,
      (error) => error instanceof UsageError && error.operation === operation && error.message.startsWith(reason),
    );
  });
}

test("the check finds a method that never answers", async () => {
  const parts = { ...sync(new Store()), load: () => new Promise(() => {}) };
  const check = checkSharing({ sessions: parts, events: parts, bus: parts, timeout: 100 });
  await assert.rejects(check, /^UsageError.*: sessions\.load: no answer within 0\.1 s \(`timeout`\)$/);
});

test("the check uses the methods of both processes", async () => {
  const [one, other] = [sync(new Store()), sync(new Store())].map((parts) => ({
    sessions: parts,
    events: parts,
    bus: parts,
  }));
  await assert.rejects(checkSharing(one, other), /sessions\.load: what the other process has saved/);
});

const PROGRAM = `
  import { createServer } from "node:net";
  import { connect } from "node:net";
  import { Server } from ${JSON.stringify(import.meta.resolve("mcpline"))};

  // A store in another process, with one request for each line.
  const socket = connect(Number(process.argv[2]), "127.0.0.1");
  const waiting = new Map();
  let last = 0;
  let receive = () => {};
  let text = "";
  socket.setEncoding("utf8").on("data", (piece) => {
    text += piece;
    for (let end; (end = text.indexOf("\\n")) >= 0; text = text.slice(end + 1)) {
      const { number, message, value } = JSON.parse(text.slice(0, end), revive);
      if (message) {
        receive(message);
      } else {
        waiting.get(number)(value);
        waiting.delete(number);
      }
    }
  });
  function revive(_, value) {
    return value?.base64 === undefined ? value : Buffer.from(value.base64, "base64");
  }
  function encode(value) {
    return ArrayBuffer.isView(value) ? { base64: Buffer.from(value).toString("base64") } : value;
  }
  function ask(method, ...given) {
    const sent = given.map((each) => (Array.isArray(each) ? each.map(encode) : encode(each)));
    socket.write(JSON.stringify({ number: ++last, method, given: sent }) + "\\n");
    return new Promise((resolve) => waiting.set(last, resolve));
  }
  const methods = ["save", "load", "remove", "append", "end", "read", "publish"];
  const parts = Object.fromEntries(methods.map((name) => [name, (...given) => ask(name, ...given)]));
  parts.subscribe = async (to) => {
    receive = to;
    await ask("subscribe");
    return () => { receive = () => {}; };
  };
  const server = new Server({
    name: "shared", version: "1", settings: { sharing: { sessions: parts, events: parts, bus: parts } },
  });
  server.resource("note://a", { name: "note" }, () => "a");
  server.tool("touch", {}, () => {
    server.notifyResourceUpdated("note://a");
    return String(process.pid);
  });
  const { url } = await server.listen({ port: 0 });
  console.log(url);
  process.once("SIGTERM", async () => {
    await server.close();
    socket.destroy();
  });
`;

test("two processes share a store that a third one has", async () => {
  const store = new Store();
  const { createServer: createNetServer } = await import("node:net");
  const revive = (_, value) => (value?.base64 === undefined ? value : Buffer.from(value.base64, "base64"));
  const encode = (value) => (ArrayBuffer.isView(value) ? { base64: Buffer.from(value).toString("base64") } : value);
  const shared = createNetServer((socket) => {
    let received = "";
    socket.setEncoding("utf8").on("data", async (piece) => {
      received += piece;
      for (let end; (end = received.indexOf("\n")) >= 0;) {
        const { number, method, given } = JSON.parse(received.slice(0, end), revive);
        received = received.slice(end + 1);
        let value;
        if (method === "subscribe") {
          store.subscribe((message) => socket.write(`${JSON.stringify({ message: encode(message) })}\n`));
        } else {
          value = store[method](...given);
        }
        const part = value?.events === undefined ? encode(value) : { ...value, events: value.events.map(encode) };
        socket.write(`${JSON.stringify({ number, value: part })}\n`);
      }
    });
    socket.on("error", () => {});
  });
  shared.listen(0, "127.0.0.1");
  await once(shared, "listening");
  const folder = await mkdtemp(join(tmpdir(), "mcpline-own-stores-"));
  const file = join(folder, "program.mjs");
  await writeFile(file, PROGRAM);
  const children = [0, 1].map(() =>
    spawn(process.execPath, [file, String(shared.address().port)], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  try {
    const lines = await Promise.all(children.map((child) => once(child.stdout.setEncoding("utf8"), "data")));
    const urls = lines.map(([line]) => line.trim());
    const session = await begin(urls[0]);
    const subscribe = { id: ++lastId, method: "resources/subscribe", params: { uri: "note://a" } };
    assert.ok(await resultOf(await send(urls[1], session, subscribe)));
    const left = new AbortController();
    const listening = events(await send(urls[1], session, undefined, { method: "GET", signal: left.signal }));
    assert.equal(await text(await call(urls[0], session, "touch")), String(children[0].pid));
    assert.equal((await listening.next()).value.message.method, "notifications/resources/updated");
    left.abort();
    const ends = children.map((child) => once(child, "exit"));
    children.forEach((child) => child.kill("SIGTERM"));
    for (const [code] of await Promise.all(ends)) {
      assert.equal(code, 0);
    }
  } finally {
    children.forEach((child) => child.kill("SIGKILL"));
    shared.close();
    await rm(folder, { recursive: true });
  }
});
