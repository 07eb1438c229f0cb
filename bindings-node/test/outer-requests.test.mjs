// Requests that other HTTP servers and frameworks pass on, in part with bodies that they have read.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import * as http2 from "node:http2";
import { test } from "node:test";

import Fastify from "fastify";
import { Server, UsageError } from "mcpline";

import { messageOf, posted } from "./peer.mjs";

const ECHO = { name: "echo", arguments: { text: "hello" } };
const WHO = { name: "who", arguments: {} };

function make(httpSettings) {
  const server = new Server({ name: "outer", version: "1" });
  const input = { type: "object", properties: { text: { type: "string" } } };
  server.tool("echo", { input }, ({ text }) => text);
  server.tool("who", {}, (_, ctx) => `${ctx.auth?.subject} with ${ctx.context}`);
  server.tool("secret", { scopes: ["admin"] }, () => "the secret");
  return { server, mcp: server.httpApp(httpSettings) };
}

const textOf = async (response) => (await messageOf(response)).result.content[0].text;

/** Serves with a listener of `node:http`, calls a tool, and returns the response. */
async function callAt(t, listener, params = ECHO) {
  const outer = createServer(listener).listen(0, "127.0.0.1");
  await once(outer, "listening");
  t.after(() => {
    outer.closeAllConnections();
    outer.close();
  });
  // A request that is never answered fails here.
  const signal = AbortSignal.timeout(10_000);
  return fetch(`http://127.0.0.1:${outer.address().port}/mcp`, { ...posted("tools/call", params), signal });
}

async function read(stream) {
  const pieces = [];
  for await (const piece of stream) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

const PARSED = {
  "parsed JSON": (body) => JSON.parse(body),
  text: (body) => body.toString(),
  bytes: (body) => new Uint8Array(body),
};

for (const [form, parse] of Object.entries(PARSED)) {
  test(`handler: a body that was read before is taken from request.body (${form})`, async (t) => {
    const { mcp } = make();
    const response = await callAt(t, async (request, response) => {
      request.body = parse(await read(request));
      mcp.handler(request, response);
    });
    assert.equal(await textOf(response), "hello");
  });

  test(`handler: a body that was read before is passed as parsedBody (${form})`, async (t) => {
    const { mcp } = make();
    const response = await callAt(t, async (request, response) => {
      mcp.handler(request, response, { parsedBody: parse(await read(request)) });
    });
    assert.equal(await textOf(response), "hello");
  });

  test(`fetch: a body that was read before is passed as parsedBody (${form})`, async () => {
    const { mcp } = make();
    const request = new Request("http://localhost/mcp", posted("tools/call", ECHO));
    const parsedBody = parse(Buffer.from(await request.arrayBuffer()));
    assert.equal(await textOf(await mcp.fetch(request, { parsedBody })), "hello");
  });
}

/** Collects the warnings of the process until the test ends. */
function warnings(t) {
  const said = [];
  const onWarning = ({ message }) => said.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  return said;
}

test("handler: a request whose body was already read is answered at once, with a warning", async (t) => {
  const said = warnings(t);
  const { mcp } = make();
  const response = await callAt(t, async (request, response) => {
    await read(request);
    mcp.handler(request, response);
  });
  assert.equal(response.status, 500);
  assert.match((await response.json()).error.message, /parsedBody/);
  assert.ok(said.some((message) => message.includes("parsedBody")));
});

test("fetch: a request whose body was already read is answered at once, with a warning", async (t) => {
  const said = warnings(t);
  const { mcp } = make();
  const request = new Request("http://localhost/mcp", posted("tools/call", ECHO));
  await request.text();
  const response = await mcp.fetch(request);
  assert.equal(response.status, 500);
  assert.match((await response.json()).error.message, /parsedBody/);
  await new Promise(setImmediate);
  assert.ok(said.some((message) => message.includes("parsedBody")));
});

test("handler: a request that was paused before is read", async (t) => {
  const { mcp } = make();
  const response = await callAt(t, async (request, response) => {
    request.pause();
    await new Promise(setImmediate);
    mcp.handler(request, response);
  });
  assert.equal(await textOf(response), "hello");
});

const FASTIFY = {
  "as the handler itself": (mcp) => mcp.handler,
  "within a handler": (mcp) => (request, reply) => mcp.handler(request, reply),
  "within an async handler": (mcp) => async (request, reply) => mcp.handler(request, reply),
};

for (const [way, handlerOf] of Object.entries(FASTIFY)) {
  test(`Fastify passes requests on ${way}`, async (t) => {
    const { mcp } = make();
    const app = Fastify();
    app.addHook("onRequest", async (_, reply) => void reply.header("x-hook", "ran"));
    app.all("/mcp", handlerOf(mcp));
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    t.after(() => app.close());
    const init = { ...posted("tools/call", ECHO), signal: AbortSignal.timeout(10_000) };
    const response = await fetch(`${url}/mcp`, init);
    assert.equal(await textOf(response), "hello");
    assert.equal(response.headers.get("x-hook"), "ran");
  });
}

test("Fastify: with request.raw, whose body Fastify has read, the error says what to pass", async (t) => {
  const { mcp } = make();
  const app = Fastify();
  app.all("/mcp", (request, reply) => {
    reply.hijack();
    mcp.handler(request.raw, reply.raw);
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  t.after(() => app.close());
  const init = { ...posted("tools/call", ECHO), signal: AbortSignal.timeout(10_000) };
  const response = await fetch(`${url}/mcp`, init);
  assert.equal(response.status, 500);
  assert.match((await response.json()).error.message, /`request` and `reply`/);
});

const CALLER = { auth: { subject: "ada", scopes: ["files"] }, context: 42 };

test("handlers see the caller and the value that the program passes with a request", async (t) => {
  const { mcp } = make();
  const request = () => new Request("http://localhost/mcp", posted("tools/call", WHO));
  assert.equal(await textOf(await mcp.fetch(request(), CALLER)), "ada with 42");
  assert.equal(await textOf(await mcp.fetch(request())), "undefined with undefined");
  const response = await callAt(t, (request, response) => mcp.handler(request, response, CALLER), WHO);
  assert.equal(await textOf(response), "ada with 42");
});

test("options are taken from objects of any kind", async () => {
  class Options {
    constructor() {
      this.auth = CALLER.auth;
      this.user = "ada";
    }
  }
  class Derived {
    get auth() {
      return CALLER.auth;
    }
  }
  const { mcp } = make();
  for (const options of [Object.assign(Object.create(null), CALLER), new Options(), new Derived()]) {
    const request = new Request("http://localhost/mcp", posted("tools/call", WHO));
    assert.equal(await textOf(await mcp.fetch(request, options)), `ada with ${options.context}`);
  }
});

test("a request without a caller is refused features that require scopes", async () => {
  const { mcp } = make();
  const request = (params) => new Request("http://localhost/mcp", posted("tools/call", params));
  assert.equal((await mcp.fetch(request({ name: "secret", arguments: {} }))).status, 403);
  assert.equal(await textOf(await mcp.fetch(request(ECHO))), "hello");
});

test("scopes apply to the caller that the program passes with a request", async () => {
  const { mcp } = make();
  const call = (scopes) => {
    const request = new Request("http://localhost/mcp", posted("tools/call", { name: "secret", arguments: {} }));
    return mcp.fetch(request, { auth: { subject: "ada", scopes } });
  };
  assert.equal((await call(["files"])).status, 403);
  assert.equal(await textOf(await call(["admin"])), "the secret");
});

test("an invalid option of a request is refused", async () => {
  const { mcp } = make();
  const request = () => new Request("http://localhost/mcp", posted("tools/call", WHO));
  await assert.rejects(mcp.fetch(request(), { auth: null }), { name: "UsageError", message: /`auth`/ });
  await assert.rejects(mcp.fetch(request(), { atuh: {} }), { name: "UsageError", message: /did you mean `auth`/ });
  const { auth: caller } = CALLER;
  const unknown = [
    [{ authInfo: caller }, /unknown option `authInfo`; did you mean `auth`/],
    [{ params: {}, authInfo: caller }, /did you mean `auth`/],
    [Object.assign(Object.create(null), { authInfo: caller }), /did you mean `auth`/],
    [{ principal: caller }, /unknown option `principal`; the options are parsedBody, auth, context/],
    [{ ...CALLER, params: {} }, /unknown option `params`/],
  ];
  for (const [options, message] of unknown) {
    await assert.rejects(mcp.fetch(request(), options), { name: "UsageError", message });
  }
  await assert.rejects(mcp.fetch(request(), { parsedBody: () => 1 }), { name: "UsageError", message: /parsedBody/ });
  const auth = {
    resource: "https://mcp.example.com/mcp",
    authorizationServers: ["https://a.example"],
    verify: () => null,
  };
  const { mcp: verifying } = make({ auth });
  await assert.rejects(verifying.fetch(request(), CALLER), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /verifies tokens/);
    return true;
  });
});

test("arguments that frameworks and runtimes pass in the place of options are ignored", async (t) => {
  const { mcp } = make();
  const request = () => new Request("http://localhost/mcp", posted("tools/call", ECHO));
  const passed = [
    new (class BunServer {})(),
    { params: Promise.resolve({}) },
    { incoming: {}, outgoing: {} },
    { remoteAddr: {}, completed: {} },
    {
      account: {},
      cookies: {},
      geo: {},
      ip: "",
      next: () => 0,
      params: {},
      requestId: "",
      site: {},
      waitUntil: () => 0,
    },
    {},
    Object.create(null),
    "text",
    null,
    undefined,
  ];
  for (const extra of passed) {
    assert.equal(await textOf(await mcp.fetch(request(), extra)), "hello");
  }
  const next = () => assert.fail("next was called");
  const response = await callAt(t, (request, response) => mcp.handler(request, response, next));
  assert.equal(await textOf(response), "hello");
});

for (const streams of [false, true]) {
  test(`handler: requests of HTTP/2 are answered${streams ? " with an event stream" : ""}`, async (t) => {
    const { server, mcp } = make();
    server.tool("host", {}, (_, ctx) => {
      ctx.progress(1);
      return ctx.headers.get("host");
    });
    const outer = http2.createServer(mcp.handler).listen(0, "127.0.0.1");
    await once(outer, "listening");
    const host = `localhost:${outer.address().port}`;
    const client = http2.connect(`http://${host}`);
    t.after(() => {
      client.close();
      outer.close();
    });
    const { headers, body } = posted("tools/call", { name: "host", arguments: {} });
    const message = JSON.parse(body);
    message.params._meta.progressToken = streams ? "t" : undefined;
    const request = client.request({ ":method": "POST", ":path": "/mcp", ...headers });
    request.end(JSON.stringify(message));
    const [answer] = await once(request, "response");
    assert.equal(answer[":status"], 200);
    assert.equal(answer["content-type"], streams ? "text/event-stream" : "application/json");
    assert.ok((await read(request)).toString().includes(`"text":"${host}"`));
  });
}

test("handler: a request that is no valid HTTP is refused with a reason", async (t) => {
  const { mcp } = make();
  const response = await callAt(t, (request, response) => {
    request.url = "/mcp with spaces";
    mcp.handler(request, response);
  });
  assert.equal(response.status, 400);
  assert.equal(await response.text(), "invalid HTTP request: its method, URL or headers are not valid");
});
