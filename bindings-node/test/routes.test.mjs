// Routes: paths of the author's own, at the built-in HTTP server and mounted.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as send } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import { test } from "node:test";
import zlib, { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";

import { Server, UsageError } from "mcpline";

async function listening(t, server, options) {
  const { url } = await server.listen(options);
  t.after(() => server.close());
  return new URL("/", url).href.slice(0, -1);
}

test("handlers get a request of the Fetch API and return a response", async (t) => {
  const server = new Server({ name: "routes", version: "1", state: "database" });
  server.route("/echo/{first}/{*rest}", { methods: ["post", "PUT"] }, async (request, ctx) => {
    const said = {
      method: request.method,
      url: new URL(request.url).pathname + new URL(request.url).search,
      header: request.headers.get("x-own"),
      body: await request.json(),
      params: ctx.params,
      state: ctx.state,
      auth: ctx.auth ?? null,
    };
    return Response.json(said, { status: 201, headers: [["x-a", "1"]] });
  });
  const at = await listening(t, server);
  const path = "/echo/a%20b/c/d?x=1";
  const response = await fetch(at + path, { method: "PUT", body: '{"z":1}', headers: { "x-own": "é" } });
  assert.deepEqual(
    [response.status, response.headers.get("content-type"), response.headers.get("x-a")],
    [201, "application/json", "1"],
  );
  assert.deepEqual(await response.json(), {
    method: "PUT",
    url: path,
    header: "é",
    body: { z: 1 },
    params: { first: "a b", rest: "c/d" },
    state: "database",
    auth: null,
  });
  assert.equal((await fetch(at + path)).status, 405);
});

test("values of every kind are sent", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode("a"));
      controller.enqueue(new TextEncoder().encode("b"));
      controller.close();
    },
  });
  const values = {
    text: ["text €", 200, "text/plain; charset=utf-8", "text €"],
    bytes: [new Uint8Array([97]), 200, "application/octet-stream", "a"],
    json: [{ a: [1] }, 200, "application/json", '{"a":[1]}'],
    nothing: [undefined, 204, null, ""],
    stream: [new Response(stream, { status: 202 }), 202, null, "ab"],
    redirect: [new Response(null, { status: 302, headers: { location: "/a" } }), 302, null, ""],
  };
  for (const [name, [value]] of Object.entries(values)) {
    server.route(`/now/${name}`, () => (value instanceof Response ? value.clone() : value));
    server.route(`/later/${name}`, async () => value);
  }
  const at = await listening(t, server);
  for (const [name, [, status, type, body]] of Object.entries(values)) {
    for (const way of ["now", "later"]) {
      const response = await fetch(`${at}/${way}/${name}`, { redirect: "manual" });
      const got = [response.status, response.headers.get("content-type"), await response.text()];
      assert.deepEqual(got, [status, type, body], `${way} ${name}`);
    }
  }
});

test("failures reach the program, not the client", async (t) => {
  const reports = [];
  const onError = (error, { kind, name }) => reports.push([error.message, kind, name]);
  const server = new Server({ name: "routes", version: "1", onError });
  server.route("/throws", () => {
    throw new Error("a secret");
  });
  server.route("/rejects", () => Promise.reject(new Error("a secret")));
  server.route("/number", () => 1);
  server.route("/blob", () => new Blob(["a secret"]));
  server.route("/stream", () => new Response(new ReadableStream({ start: (c) => c.error(new Error("a secret")) })));
  const at = await listening(t, server);
  for (const path of ["/throws", "/rejects", "/number", "/blob", "/stream"]) {
    const response = await fetch(at + path);
    assert.deepEqual([response.status, await response.text()], [500, "Internal Server Error"], path);
    assert.deepEqual(reports.pop()?.slice(1), ["route", path]);
  }
});

test("a client that leaves aborts the signal", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  const { promise: began, resolve: begin } = withResolvers();
  const { promise: aborted, resolve: abort } = withResolvers();
  server.route("/waits", async (_, { signal }) => {
    begin();
    await once(signal, "abort");
    abort();
  });
  const at = await listening(t, server);
  const controller = new AbortController();
  const asked = fetch(`${at}/waits`, { signal: controller.signal });
  await began;
  controller.abort();
  await assert.rejects(asked);
  await aborted;
});

function withResolvers() {
  let resolve;
  const promise = new Promise((resolved) => {
    resolve = resolved;
  });
  return { promise, resolve };
}

test("routes are protected unless they are public", async (t) => {
  const verify = (token) => ({ subject: "ann", scopes: token.split(".") });
  const server = new Server({ name: "routes", version: "1" });
  server.route("/mine", (_, { auth }) => auth.subject);
  server.route("/scoped", { scopes: ["write"] }, () => "written");
  server.route("/open", { public: true }, () => "open");
  const at = await listening(t, server, { auth: { verify } });
  const status = async (path, token) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return (await fetch(at + path, { headers })).status;
  };
  assert.deepEqual([await status("/mine"), await status("/mine", "read")], [401, 200]);
  assert.deepEqual([await status("/scoped", "read"), await status("/scoped", "read.write")], [403, 200]);
  const open = send(`${at}/open`, { headers: { host: "evil.example", origin: "https://evil.example" } }).end();
  const [answer] = await once(open, "response");
  assert.equal(answer.statusCode, 200);
  answer.resume();
});

test("mounted servers serve them by `fetch` and `handler`", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  server.route("/hook/{name}", { methods: ["POST"] }, async (request, { params }) => {
    return `${params.name} ${await request.text()}`;
  });
  t.after(() => server.close());
  const request = new Request("http://localhost/hook/a", { method: "POST", body: "body" });
  const response = await server.fetch(request);
  assert.deepEqual([response.status, await response.text()], [200, "a body"]);
  const outer = createServer(server.handler).listen(0, "127.0.0.1");
  t.after(() => outer.close());
  await once(outer, "listening");
  const at = `http://127.0.0.1:${outer.address().port}`;
  const mounted = await fetch(`${at}/hook/b`, { method: "POST", body: "body" });
  assert.deepEqual([mounted.status, await mounted.text()], [200, "b body"]);
  assert.equal((await fetch(`${at}/hooks`)).status, 404);
});

test("bytes that are not text reach the clients of mounts unchanged", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  const bytes = new Uint8Array([0xff, 0xfe, 0, 0x80, 0x41]);
  server.route("/bytes", () => bytes);
  server.route("/echo", { methods: ["PUT", "DELETE"] }, async (request) => new Uint8Array(await request.arrayBuffer()));
  t.after(() => server.close());
  const outer = createServer(server.handler).listen(0, "127.0.0.1");
  t.after(() => outer.close());
  await once(outer, "listening");
  const at = `http://127.0.0.1:${outer.address().port}`;
  for (const response of [await fetch(`${at}/bytes`), await server.fetch(new Request("http://localhost/bytes"))]) {
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes);
  }
  for (const method of ["PUT", "DELETE"]) {
    const response = await fetch(`${at}/echo`, { method, body: bytes });
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes, method);
  }
});

test("headers of a handler can neither be lost in a mount nor end the process", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  const headers = [
    ["set-cookie", "a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT"],
    ["set-cookie", "b=2"],
    ["keep-alive", "timeout=5"],
    ["proxy-connection", "close"],
  ];
  server.route("/cookies", () => new Response("x", { headers }));
  t.after(() => server.close());
  const fetched = await server.fetch(new Request("http://localhost/cookies"));
  assert.deepEqual(fetched.headers.getSetCookie().length, 2);
  assert.equal(fetched.headers.get("keep-alive"), null);
  const outer = createHttp2Server(server.handler).listen(0, "127.0.0.1");
  t.after(() => outer.close());
  await once(outer, "listening");
  const session = connect(`http://127.0.0.1:${outer.address().port}`);
  t.after(() => session.close());
  const stream = session.request({ ":path": "/cookies" });
  const [answer] = await once(stream, "response");
  assert.deepEqual([answer[":status"], answer["set-cookie"].length], [200, 2]);
  stream.resume();
  await once(stream, "close");
});

test("a response to HEAD has the length of the response to GET, or none", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  server.route("/text", () => "text \u20ac");
  server.route("/long", () => "a".repeat(100_000));
  server.route("/stated", () => new Response(null, { headers: { "content-length": "12345", "x-own": "1" } }));
  server.route("/unstated", () => new Response(null, { headers: { "x-own": "1" } }));
  server.route("/invalid", () => new Response(null, { headers: { "content-length": "12, 13" } }));
  server.route("/nothing", () => undefined);
  const upstream = createServer((_, response) => {
    const text = gzipSync("text ".repeat(1000));
    response.writeHead(200, { "content-encoding": "gzip", "content-length": text.length }).end(text);
  }).listen(0, "127.0.0.1");
  const outer = createServer(server.handler).listen(0, "127.0.0.1");
  t.after(() => [upstream, outer].map((other) => other.close()));
  await Promise.all([once(upstream, "listening"), once(outer, "listening")]);
  const { port } = upstream.address();
  server.route("/fetched", ({ method }) => fetch(`http://127.0.0.1:${port}`, { method }));
  const origins = [await listening(t, server), `http://127.0.0.1:${outer.address().port}`];
  for (const [path, length] of [
    ["/text", "8"],
    ["/long", "100000"],
    ["/stated", "12345"],
    ["/unstated", null],
    ["/invalid", null],
    ["/nothing", null],
    ["/fetched", null],
  ]) {
    const responses = origins.map((origin) => fetch(origin + path, { method: "HEAD" }));
    responses.push(server.fetch(new Request(`http://localhost${path}`, { method: "HEAD" })));
    for (const { status, headers } of await Promise.all(responses)) {
      assert.deepEqual([status, headers.get("content-length")], [path === "/nothing" ? 204 : 200, length], path);
      assert.equal(headers.get("x-own"), path.endsWith("stated") ? "1" : null, path);
    }
  }
});

test("header values of Latin-1 leave a mount as they leave the built-in server", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  const headers = { "x-own": "a\u00e9b" };
  server.route("/text", () => new Response("text \u20ac", { headers }));
  server.route("/long", () => new Response("\u20ac".repeat(100_000), { headers }));
  server.route("/nothing", () => new Response(null, { status: 204, headers }));
  const outer = createServer(server.handler).listen(0, "127.0.0.1");
  t.after(() => outer.close());
  await once(outer, "listening");
  for (const at of [await listening(t, server), `http://127.0.0.1:${outer.address().port}`]) {
    for (const [path, text] of [
      ["/text", "text \u20ac"],
      ["/long", "\u20ac".repeat(100_000)],
      ["/nothing", ""],
    ]) {
      const [answer] = await once(send(at + path).end(), "response");
      assert.equal(answer.headers["x-own"], headers["x-own"], at + path);
      assert.equal(Buffer.concat(await answer.toArray()).toString(), text, at + path);
    }
  }
});

test("a response of fetch is passed on, with its decoded body", async (t) => {
  const text = "text ".repeat(1000);
  const bodies = {
    gzip: gzipSync(text),
    "x-gzip": gzipSync(text),
    deflate: deflateSync(text),
    br: brotliCompressSync(text),
    "Deflate, GZIP": gzipSync(deflateSync(text)),
    unknown: Buffer.from(text),
  };
  const upstream = createServer(({ url }, response) => {
    const coding = decodeURIComponent(url.slice(2));
    const headers = { "content-encoding": coding, "content-type": "text/own", etag: '"a"', vary: "accept-encoding" };
    const length = url[1] === "l" ? { "content-length": bodies[coding].length } : {};
    response.writeHead(203, { ...headers, ...length }).end(bodies[coding]);
  }).listen(0, "127.0.0.1");
  t.after(() => upstream.close());
  await once(upstream, "listening");
  const server = new Server({ name: "routes", version: "1" });
  server.route("/{length}/{coding}", (_, { params: { length, coding } }) =>
    fetch(`http://127.0.0.1:${upstream.address().port}/${length}${encodeURIComponent(coding)}`),
  );
  server.route("/own", () => new Response(gzipSync(text), { headers: { "content-encoding": "gzip" } }));
  const at = await listening(t, server);
  for (const coding of Object.keys(bodies)) {
    for (const length of ["l", "c"]) {
      const [answer] = await once(send(`${at}/${length}/${encodeURIComponent(coding)}`).end(), "response");
      const { "content-encoding": sent, "content-length": size, "content-type": type, etag, vary } = answer.headers;
      assert.deepEqual([answer.statusCode, type, etag, vary], [203, "text/own", '"a"', "accept-encoding"]);
      assert.deepEqual([sent, size], [coding === "unknown" ? coding : undefined, String(text.length)], coding);
      assert.equal(Buffer.concat(await answer.toArray()).toString(), text, coding);
    }
  }
  // Only newer versions decode it.
  bodies.zstd = zlib.zstdCompressSync?.(text) ?? Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]);
  const [answer] = await once(send(`${at}/l/zstd`).end(), "response");
  const isDecoded = answer.headers["content-encoding"] !== "zstd";
  assert.deepEqual(Buffer.concat(await answer.toArray()), isDecoded ? Buffer.from(text) : bodies.zstd);
  const own = await fetch(`${at}/own`);
  assert.deepEqual([own.headers.get("content-encoding"), await own.text()], ["gzip", text]);
});

test("a stream that a handler returns is cancelled when its client leaves", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  const { promise: began, resolve: begin } = withResolvers();
  const { promise: cancelled, resolve: cancel } = withResolvers();
  server.route("/never", () => {
    begin();
    return new Response(new ReadableStream({ cancel }));
  });
  server.route("/endless", () => {
    const pull = (controller) => controller.enqueue(new Uint8Array(8 * 1024 * 1024));
    return new Response(new ReadableStream({ pull }));
  });
  const at = await listening(t, server);
  const controller = new AbortController();
  const asked = fetch(`${at}/never`, { signal: controller.signal });
  await began;
  controller.abort();
  await assert.rejects(asked);
  await cancelled;
  assert.equal((await fetch(`${at}/endless`)).status, 500);
});

test("a client that leaves aborts the signal while the body of the response is read", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  const { promise: aborted, resolve: abort } = withResolvers();
  const { promise: began, resolve: begin } = withResolvers();
  server.route("/never", (_, { signal }) => {
    signal.addEventListener("abort", abort);
    return new Response(new ReadableStream({ pull: begin }, { highWaterMark: 0 }));
  });
  const at = await listening(t, server);
  const controller = new AbortController();
  const asked = fetch(`${at}/never`, { signal: controller.signal });
  await began;
  controller.abort();
  await assert.rejects(asked);
  await aborted;
});

test("the host of a request cannot change its path", async (t) => {
  const server = new Server({ name: "routes", version: "1" });
  server.route("/echo", { public: true }, (request) => request.url);
  const at = await listening(t, server);
  for (const host of ["evil/x", "evil?", "u:p@h", "[::1", "%zz", "h:99999", "a b"]) {
    const asked = send(`${at}/echo?a=b`, { headers: { host } }).end();
    const [answer] = await once(asked, "response");
    const text = await new Response(answer).text();
    assert.equal(text, "http://localhost/echo?a=b", host);
  }
  assert.equal(await (await fetch(`${at}/echo`)).text(), `${at}/echo`);
});

test("mistakes are refused at registration", async () => {
  const server = new Server({ name: "routes", version: "1" });
  const nothing = () => undefined;
  server.route("/a", nothing);
  for (const [path, options, handler, expected] of [
    ["/a", {}, nothing, /GET \/a already/],
    ["a", {}, nothing, /begin with a slash/],
    ["/b", { methods: "GET" }, nothing, /array of strings/],
    ["/b", { methods: [] }, nothing, /no method/],
    ["/b", { method: ["GET"] }, nothing, /methods/],
    ["/b", { public: 1 }, nothing, /boolean/],
    ["/b", { public: true, scopes: ["a"] }, nothing, /public/],
    ["/b", {}, undefined, /handler/],
  ]) {
    assert.throws(
      () => server.route(path, options, handler),
      (error) => error instanceof UsageError && expected.test(error.message),
      path,
    );
  }
  server.route("/mcp", nothing);
  await assert.rejects(server.listen(), /`path`/);
});
