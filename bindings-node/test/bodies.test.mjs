// Bodies of a mounted server: how much of a request is read, and responses that are not read.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";

import { Server } from "mcpline";

import { fetching } from "../../tests/servers/node/fetching.mjs";

const MODERN = "2026-07-28";
const PIECE = Buffer.alloc(64 * 1024, " ");

/** A server mounted in one of the two ways, and a function that closes it. */
async function mounted(way, settings) {
  const server = new Server({ name: "test", version: "1" });
  server.tool("large", {}, () => "x".repeat(8 * 1024 * 1024));
  const mcp = server.httpApp(settings);
  const app = createServer(way === "handler" ? mcp.handler : fetching(mcp));
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  const close = async () => {
    await server.close();
    app.closeAllConnections();
    app.close();
  };
  return { port: app.address().port, close };
}

/** Begins a POST with these headers, without its body. */
async function post(port, headers) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const all = {
    host: `127.0.0.1:${port}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /mcp HTTP/1.1\r\n${lines.join("")}\r\n`);
  return socket;
}

async function firstLine(socket) {
  const [data] = await once(socket, "data");
  return String(data).split("\r\n")[0];
}

for (const way of ["handler", "fetch"]) {
  test(`${way}: a body for a foreign host is hardly read`, async () => {
    const { port, close } = await mounted(way, {});
    const socket = await post(port, { host: "evil.example.com", "content-length": 1 << 30 });
    let taken = 0;
    const answered = firstLine(socket);
    let isAnswered = false;
    void answered.then(() => (isAnswered = true));
    while (!isAnswered && taken < 1 << 28 && !socket.destroyed) {
      taken += PIECE.length;
      if (!socket.write(PIECE)) {
        await Promise.race([once(socket, "drain"), answered, once(socket, "close")]);
      }
    }
    assert.match(await answered, /403/);
    assert.ok(taken < 1 << 25, `${taken} bytes were taken`);
    socket.destroy();
    await close();
  });

  test(`${way}: a body that stops coming is given up after the read timeout`, async () => {
    const { port, close } = await mounted(way, { readTimeout: 100 });
    for (const headers of [
      { "content-length": 100 },
      { "content-length": 1 << 20 },
      { "transfer-encoding": "chunked" },
    ]) {
      const socket = await post(port, headers);
      assert.match(await firstLine(socket), /408/);
      socket.destroy();
    }
    await close();
  });

  test(`${way}: a body in many pieces is read as a whole`, async () => {
    const { port, close } = await mounted(way, {});
    const params = {
      name: "large",
      arguments: {},
      _meta: {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        pad: "x".repeat(300_000),
      },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const socket = await post(port, {
      "content-length": body.length,
      "mcp-protocol-version": MODERN,
      "mcp-method": "tools/call",
      "mcp-name": "large",
    });
    for (let start = 0; start < body.length; start += 50_000) {
      socket.write(body.slice(start, start + 50_000));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.match(await firstLine(socket), /200/);
    socket.destroy();
    await close();
  });
}

/** Headers and body of a call of a tool without arguments. */
function call(name) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { name, arguments: {}, _meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "content-length": body.length,
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/call",
    "mcp-name": name,
  };
  return { headers, body };
}

/** Calls a tool so many times on one connection, without waiting for responses. */
async function callInARow(port, name, times) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  const { headers, body } = call(name);
  const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.pause();
  socket.write(`POST /mcp HTTP/1.1\r\n${lines.join("")}\r\n${body}`.repeat(times));
  return socket;
}

/** Reads the bodies of so many responses. */
async function bodiesOf(socket, count) {
  const bodies = [];
  let received = Buffer.alloc(0);
  for await (const piece of socket) {
    received = Buffer.concat([received, piece]);
    for (;;) {
      const end = received.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(received.subarray(0, Math.max(end, 0)).toString())?.[1]);
      if (end < 0 || received.length < end + 4 + length) {
        break;
      }
      bodies.push(JSON.parse(received.subarray(end + 4, end + 4 + length).toString()));
      received = received.subarray(end + 4 + length);
    }
    if (bodies.length === count) {
      return bodies;
    }
  }
  throw new Error(`the connection ended after ${bodies.length} responses`);
}

/** A server that holds at most 20 MiB for its clients, and a function that waits for so many calls of its tool. */
function bounded() {
  const settings = { maxTotalClientBytes: 20 << 20, clientShare: 1 };
  const server = new Server({ name: "test", version: "1", settings });
  let calls = 0;
  let onCall;
  server.tool("large", {}, () => {
    calls += 1;
    onCall?.();
    return "x".repeat(8 << 20);
  });
  const called = (count) =>
    new Promise((resolve) => {
      onCall = () => calls >= count && resolve();
      onCall();
    });
  return { server, called };
}

const BUSY = -31000;

test("handler: unread pipelined responses are counted", async () => {
  const { server, called } = bounded();
  const app = createServer(server.handler).listen(0, "127.0.0.1");
  await once(app, "listening");
  const socket = await callInARow(app.address().port, "large", 4);
  await called(4);
  const answers = await bodiesOf(socket, 4);
  assert.deepEqual(
    answers.map(({ result, error }) => result?.content[0].text.length ?? error.code),
    [8 << 20, 8 << 20, BUSY, BUSY],
  );
  // Responses that were read no longer count.
  socket.destroy();
  const again = await callInARow(app.address().port, "large", 1);
  assert.ok((await bodiesOf(again, 1))[0].result);
  again.destroy();
  await server.close();
  app.close();
});

test("fetch: unread response bodies are counted", async () => {
  const { server } = bounded();
  const { headers, body } = call("large");
  const fetched = () => server.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body }));
  const [first, second] = [await fetched(), await fetched()];
  assert.equal((await (await fetched()).json()).error.code, BUSY);
  for (const response of [first, second]) {
    const text = await response.text();
    assert.equal(Number(response.headers.get("content-length")), Buffer.byteLength(text));
    assert.equal(JSON.parse(text).result.content[0].text.length, 8 << 20);
  }
  assert.equal((await (await fetched()).json()).error, undefined);
  await server.close();
});

test("handler: pipelined calls are aborted when their client disconnects", async () => {
  const server = new Server({ name: "test", version: "1" });
  const count = 5;
  let begun = 0;
  let aborted = 0;
  const events = new EventEmitter();
  const [allBegun, allAborted] = [once(events, "begun"), once(events, "aborted")];
  server.tool("waits", {}, async (_, ctx) => {
    if (++begun === count) {
      events.emit("begun");
    }
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    if (++aborted === count) {
      events.emit("aborted");
    }
    return "too late";
  });
  const app = createServer(server.handler).listen(0, "127.0.0.1");
  await once(app, "listening");
  const socket = await callInARow(app.address().port, "waits", count);
  await allBegun;
  socket.destroy();
  await allAborted;
  await server.close();
  app.close();
});

test("handler: a client that reads nothing is given up after the write timeout", async () => {
  const { port, close } = await mounted("handler", { writeTimeout: 200 });
  const { headers, body } = call("large");
  const socket = await post(port, headers);
  socket.pause();
  socket.write(body);
  // An aborted connection is reset: writing to it fails sooner or later.
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const poke = setInterval(() => socket.write("x"), 50);
  await closed;
  clearInterval(poke);
  await close();
});

/** A request whose body fails after its beginning. */
function failing(headers, init = {}) {
  const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
  let pulls = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (pulls++ === 0) {
        controller.enqueue(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}'));
      } else {
        controller.error(new Error("the proxy is gone"));
      }
    },
  });
  return new Request("http://localhost/mcp", { method: "POST", headers: all, body, duplex: "half", ...init });
}

test("fetch: a body without a length that fails is answered at once", async () => {
  const server = new Server({ name: "test", version: "1" });
  const response = await server.fetch(failing({}));
  assert.equal(response.status, 400);
  const { id, error } = await response.json();
  assert.equal(id, null);
  assert.equal(error.code, -32700);
  assert.equal(error.message, "the body of the request cannot be read");
  await server.close();
});

test("fetch: a body with a length that fails is answered at once", async () => {
  const server = new Server({ name: "test", version: "1" });
  for (const length of [100, 1 << 20]) {
    const response = await server.fetch(failing({ "content-length": String(length) }));
    assert.equal(response.status, 400);
    await response.text();
  }
  await server.close();
});
