import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, Server } from "mcpline";

/** A server with a tool that returns its caller, and a tool that requires `write`. */
function served(settings = {}) {
  const server = new Server({ name: "served", version: "1.0.0", settings });
  server.tool("who", {}, (_, ctx) => ctx.auth?.subject ?? "nobody");
  server.tool("save", { scopes: ["write"] }, () => "saved");
  server.tool("length", { input: { type: "object" } }, ({ text }) => String(text.length));
  server.tool("waits", {}, (_, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)));
  return server;
}

/** A transport to a server in this process that delivers each message in a separate turn. */
function wire(server, options, seen = {}) {
  return {
    open: async (incoming) => {
      let toServer;
      const later = (give, text) => new Promise((resolve) => setImmediate(() => resolve(give(text))));
      const serving = await server.serveChannel((back) => {
        toServer = back;
        return {
          send: (text) => later((given) => incoming.message(given), text),
          close: () => {
            seen.closed = (seen.closed ?? 0) + 1;
            incoming.closed();
          },
        };
      }, options);
      seen.serving = serving;
      seen.incoming = incoming;
      return {
        send: (text) => later((given) => toServer.message(given), text),
        close: () => toServer.closed(),
      };
    },
  };
}

for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]) {
  test(`serves a principal what its scopes allow: ${revision}`, async () => {
    const server = served();
    const cases = [
      [undefined, "nobody", true],
      [{ principal: { subject: "alice" } }, "alice", false],
      [{ principal: { subject: "alice", scopes: ["write"] } }, "alice", true],
    ];
    for (const [options, subject, mayWrite] of cases) {
      const seen = {};
      const client = await Client.over(wire(server, options, seen), { revisions: [revision] });
      assert.equal((await client.callTool("who")).content[0].text, subject);
      const names = (await client.listTools()).map(({ name }) => name);
      assert.equal(names.includes("save"), mayWrite);
      if (mayWrite) {
        assert.equal((await client.callTool("save")).content[0].text, "saved");
      } else {
        await assert.rejects(client.callTool("save"), { code: -31001 });
      }
      await client.close();
      await seen.serving.closed;
      assert.equal(seen.closed, 1);
    }
    await server.close();
  });
}

test("a server that closes ends its channels and answers what is in flight", async () => {
  const server = served({ shutdownTimeout: 10 });
  const seen = {};
  const client = await Client.over(wire(server, {}, seen), { reconnectAttempts: 0 });
  const waiting = assert.rejects(client.callTool("waits"), { code: -31002 });
  await client.callTool("who");
  await server.close();
  await waiting;
  assert.equal(seen.closed, 1);
  await client.close();
});

test("a channel that fails says why", async () => {
  const server = served();
  const seen = {};
  const client = await Client.over(wire(server, {}, seen), { reconnectAttempts: 0, revisions: ["2025-11-25"] });
  const waiting = assert.rejects(client.callTool("waits"), { message: /the cable broke/ });
  await client.callTool("who");
  seen.incoming.closed(new Error("the cable broke"));
  await waiting;
  await client.close();
  await server.close();
});

test("a channel that can't be opened rejects", async () => {
  const server = served();
  const broken = server.serveChannel(() => Promise.reject(new Error("no way")));
  await assert.rejects(broken, { name: "TransportError", message: /no way/ });
  await server.close();
});

test("a transport must open a channel", async () => {
  const server = served();
  for (const [opened, missing] of [
    [undefined, "send"],
    [null, "send"],
    [{}, "send"],
    [{ send: "text" }, "send"],
    [{ send: () => undefined, close: true }, "close"],
  ]) {
    const message = new RegExp(`\`${missing}\` is not a function`);
    await assert.rejects(
      server.serveChannel(() => opened),
      { name: "TransportError", message },
    );
    const open = () => Promise.resolve(opened);
    await assert.rejects(Client.over({ open }), { name: "ServerUnreachableError", message });
  }
  await server.close();
});

test("a sender that is faster than the reader has to wait", async (t) => {
  const server = served();
  server.tool("echo", { input: { type: "object" } }, ({ text }) => text);
  t.after(() => server.close());
  const sends = [];
  let incoming;
  const serving = await server.serveChannel((given) => {
    incoming = given;
    return { send: (text) => new Promise((resolve) => sends.push([text, resolve])) };
  });
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const text = "x".repeat(4 << 20);
  let given = 0;
  const call = () => {
    const params = { name: "echo", arguments: { text }, _meta: meta };
    return incoming.message(JSON.stringify({ jsonrpc: "2.0", id: ++given, method: "tools/call", params }));
  };
  // No response is sent, so the server soon stops reading.
  while (call() && given < 100) await turn();
  assert.ok(given > 4 && given < 100, String(given));
  let answers = 0;
  const sending = async () => {
    while (answers < given) {
      await turn();
      for (const [, sent] of sends.splice(0)) {
        answers++;
        sent();
      }
    }
  };
  const sent = sending();
  await incoming.ready();
  assert.equal(call(), true);
  await sent;
  await sending();
  incoming.closed();
  await serving.closed;
  await server.close();
});

test("a channel that opens too late is closed", async () => {
  const server = served();
  let incoming;
  let opened;
  const serving = server.serveChannel((given) => {
    incoming = given;
    return new Promise((resolve) => (opened = resolve));
  });
  // The callback runs in a later turn.
  while (incoming === undefined) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  incoming.closed(new Error("the cable broke"));
  await assert.rejects(serving, { name: "TransportError", message: /the cable broke/ });
  let closes = 0;
  await new Promise((resolve) => {
    const close = () => {
      closes++;
      resolve();
    };
    opened({ send: () => assert.fail("nothing is sent over it"), close });
  });
  await server.close();
  assert.equal(closes, 1);
});

test("rejects an invalid principal and keeps no reference to it", () => {
  // In a separate process, which ends once nothing keeps it alive.
  const program = `
    import assert from "node:assert/strict";
    import { Server } from "mcpline";
    const server = new Server({ name: "served", version: "1.0.0" });
    const cycle = {};
    cycle.cycle = cycle;
    const principals = [
      null,
      "alice",
      { expiresAt: 1_800_000_000 },
      { expiresAt: new Date(Number.NaN) },
      { claims: { count: 1n } },
      { claims: cycle },
      { scopes: "write" },
    ];
    const refused = async (principal) => {
      const open = () => assert.fail("it is opened");
      await assert.rejects(server.serveChannel(open, { principal }), { name: "UsageError", message: /principal/ });
      return new WeakRef(open);
    };
    const opens = [];
    for (const principal of principals) {
      opens.push(await refused(principal));
    }
    await new Promise((resolve) => setImmediate(resolve));
    gc();
    assert.deepEqual(opens.map((open) => open.deref()), principals.map(() => undefined));
    console.log("refused", opens.length);
  `;
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const options = ["--expose-gc", "--input-type=module", "--eval", program];
  const { signal, status, stdout, stderr } = spawnSync(process.execPath, options, {
    cwd,
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.deepEqual({ signal, status, stdout }, { signal: null, status: 0, stdout: "refused 7\n" }, stderr);
});

const CALLS = 50;

/**
 * Opens a channel to a server on which the responses to many calls wait to be sent: `send` receives the number of
 * earlier calls.
 */
async function answered(t, send, close) {
  const server = new Server({ name: "served", version: "1.0.0" });
  let called = 0;
  let allCalled;
  const everyCall = new Promise((resolve) => (allCalled = resolve));
  server.tool("call", {}, () => {
    if (++called === CALLS) {
      allCalled();
    }
    return "called";
  });
  let incoming;
  let sends = 0;
  const serving = await server.serveChannel((given) => {
    incoming = given;
    return {
      send: async (text) => {
        const before = sends++;
        await everyCall;
        return send(before, text);
      },
      close,
    };
  });
  t.after(() => server.close());
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  for (let id = 1; id <= CALLS; id++) {
    const params = { name: "call", arguments: {}, _meta };
    incoming.message(JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params }));
  }
  return { incoming, serving };
}

test("messages are sent one at a time", async (t) => {
  let sending = 0;
  let mostSending = 0;
  const ids = [];
  let last;
  const everything = new Promise((resolve) => (last = resolve));
  const { incoming, serving } = await answered(t, async (before, text) => {
    mostSending = Math.max(mostSending, ++sending);
    await new Promise((resolve) => setImmediate(resolve));
    ids.push(JSON.parse(text).id);
    sending--;
    if (ids.length === CALLS) {
      last();
    }
  });
  await everything;
  incoming.closed();
  await serving.closed;
  assert.equal(mostSending, 1);
  assert.equal(new Set(ids).size, CALLS);
});

test("nothing is sent after a message that could not be sent", async (t) => {
  const FAILS = 25;
  const seen = [];
  let closes = 0;
  const { serving } = await answered(
    t,
    async (before) => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(before);
      if (before === FAILS) {
        throw new Error("the cable broke");
      }
    },
    () => {
      closes++;
    },
  );
  await assert.rejects(serving.closed, { name: "TransportError", message: /the cable broke/ });
  assert.deepEqual(seen, [...Array(FAILS + 1).keys()]);
  assert.equal(closes, 1);
});
