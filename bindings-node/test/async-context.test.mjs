// AsyncLocalStorage in handlers: each runs in the context that the program had when it passed on the request.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { Client, Server } from "mcpline";

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

test("over custom transports, handlers run in the context of their channel", async () => {
  const server = make();
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
});

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
