// Values of the program for handlers: `ctx.context` per call, and `server.state`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server } from "mcpline";

import { called, messageOf, posted } from "./peer.mjs";

const who = (server) => server.tool("who", {}, (_, ctx) => String(ctx.context));
const textOf = (result) => result.content[0].text;

test("ctx.context is created once per call, when it is first read", async () => {
  let created = 0;
  const server = new Server({ name: "s", version: "1", createContext: () => ({ number: ++created }) });
  server.tool("unused", {}, () => "done");
  server.tool("used", {}, (_, ctx) => `${ctx.context.number} ${ctx.context.number} ${ctx.context === ctx.context}`);
  await called(server.fetch, "unused");
  assert.equal(created, 0);
  assert.equal(textOf(await called(server.fetch, "used")), "1 1 true");
  assert.equal(textOf(await called(server.fetch, "used")), "2 2 true");
});

test("createContext reads the request, and the context that the program passes replaces it", async () => {
  const server = new Server({ name: "s", version: "1", createContext: (ctx) => `user ${ctx.headers.get("x-user")}` });
  who(server);
  const init = posted("tools/call", { name: "who", arguments: {} });
  const request = () => new Request("http://localhost/mcp", { ...init, headers: { ...init.headers, "x-user": "ada" } });
  const answer = async (options) => textOf((await messageOf(await server.fetch(request(), options))).result);
  assert.equal(await answer(), "user ada");
  assert.equal(await answer({ context: "passed" }), "passed");
});

test("createContext is called on transports without HTTP too", async (t) => {
  const server = new Server({ name: "s", version: "1", createContext: (ctx) => `${ctx.headers} ${ctx.context}` });
  who(server);
  const client = await Client.memory(server);
  t.after(() => client.close());
  assert.equal(textOf(await client.callTool("who")), "undefined undefined");
});

test("onError gets the context that the handler used", async () => {
  const seen = [];
  const server = new Server({
    name: "s",
    version: "1",
    createContext: () => ({}),
    onError: (error, { ctx }) => seen.push(error.cause === ctx.context),
  });
  server.tool("sync", {}, (_, ctx) => {
    throw new Error("failed", { cause: ctx.context });
  });
  server.tool("async", {}, async (_, ctx) => {
    await null;
    throw new Error("failed", { cause: ctx.context });
  });
  for (const name of ["sync", "async"]) {
    assert.equal((await called(server.fetch, name)).isError, true);
  }
  assert.deepEqual(seen, [true, true]);
});

test("an error of createContext is an error of the handler, each time that it is read", async () => {
  let calls = 0;
  const server = new Server({
    name: "s",
    version: "1",
    onError: () => undefined,
    createContext: () => {
      throw new Error(`failed ${++calls}`);
    },
  });
  server.tool("caught", {}, (_, ctx) => {
    const read = () => {
      try {
        return ctx.context;
      } catch (error) {
        return error.message;
      }
    };
    return `${read()}, ${read()}`;
  });
  who(server);
  assert.equal(textOf(await called(server.fetch, "caught")), "failed 1, failed 2");
  assert.match(textOf(await called(server.fetch, "who")), /^Error executing tool/);
});

test("handlers read the state of the server", async () => {
  const state = { count: 0 };
  const server = new Server({ name: "s", version: "1", state });
  server.tool("count", {}, (_, ctx) => String(++ctx.state.count));
  assert.equal(textOf(await called(server.fetch, "count")), "1");
  assert.equal(server.state, state);
  assert.equal(state.count, 1);
});

test("createContext has to be a function", () => {
  assert.throws(() => new Server({ name: "s", version: "1", createContext: {} }), {
    name: "UsageError",
    message: "`createContext` of the server must be a function, not object",
  });
});
