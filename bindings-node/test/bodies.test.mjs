// Bodies of a mounted server: how much of a request is read, and what becomes of a response that isn't.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";

import { Server } from "mcpline";

import { fetching } from "../../tests/servers/node/fetching.mjs";

const MODERN = "2026-07-28";
const PIECE = Buffer.alloc(64 * 1024, " ");

/** A server mounted in one of the two ways, and its end. */
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

/** A POST with these headers; its body is still to be written. */
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

test("handler: a client that reads nothing is given up after the write timeout", async () => {
  const { port, close } = await mounted("handler", { writeTimeout: 200 });
  const params = {
    name: "large",
    arguments: {},
    _meta: {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const socket = await post(port, {
    "content-length": body.length,
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/call",
    "mcp-name": "large",
  });
  socket.pause();
  socket.write(body);
  // A connection that is given up is reset: writing to it fails sooner or later.
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const poke = setInterval(() => socket.write("x"), 50);
  await closed;
  clearInterval(poke);
  await close();
});
