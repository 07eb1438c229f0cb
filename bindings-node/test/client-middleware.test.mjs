// Middleware of clients: functions around their requests, and what the library provides.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import {
  auditLog,
  circuitBreaker,
  Client,
  rateLimit,
  redaction,
  retry,
  RpcError,
  Server,
  ServerUnreachableError,
  ToolCallRefusedError,
  toolPolicy,
  TransportError,
  UsageError,
} from "mcpline";
import * as z from "zod";

const REVISIONS = ["2025-11-25", "2026-07-28"];

function make() {
  const server = new Server({ name: "test", version: "1", settings: { pageSize: 1 } });
  const input = { type: "object" };
  server.tool("echo", { input }, (args) => JSON.stringify(args));
  server.tool("delete", { input }, () => "deleted");
  server.resource("note://a", { name: "a" }, () => "a note");
  return server;
}

/** A server whose calls of tools fail `state.left` times with an error. */
function failing(error, state) {
  const server = make();
  server.use({ methods: ["tools/call"] }, (request, next) => {
    state.calls += 1;
    if (state.left > 0) {
      state.left -= 1;
      throw error;
    }
    return next(request);
  });
  return server;
}

/** Connects in memory, runs `use`, and closes the client. */
async function using(server, options, use) {
  const client = await Client.memory(server, options);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const textOf = (result) => result.content[0].text;

for (const revision of REVISIONS) {
  test(`functions see and change requests in their order on ${revision}`, async () => {
    const seen = [];
    const outer = async (request, next) => {
      seen.push([request.method, request.name]);
      const result = await next();
      seen.push("end");
      return result;
    };
    const inner = async (request, next) => {
      if (request.method === "resources/subscribe") {
        return next(request.with({ params: { uri: "note://a" } }));
      }
      if (request.method !== "tools/call") {
        return next();
      }
      assert.deepEqual(request.params, { name: "echo", arguments: { a: 1 } });
      await next();
      const result = await next(request.with({ arguments: { ...request.arguments, b: 2 } }));
      return { ...result, content: [...result.content, { type: "text", text: "added" }] };
    };
    await using(make(), { revisions: [revision], middleware: [outer, inner] }, async (client) => {
      const result = await client.callTool("echo", { a: 1 });
      assert.deepEqual(
        result.content.map((block) => block.text),
        ['{"a":1,"b":2}', "added"],
      );
      assert.deepEqual(seen, [["tools/call", "echo"], "end"]);
      seen.length = 0;
      await client.listTools();
      await client.readResource(new URL("note://a"));
      await client.subscribe("note://b");
      assert.deepEqual(
        seen.filter((each) => each !== "end"),
        [
          ["tools/list", undefined],
          ["tools/list", undefined],
          ["resources/read", "note://a"],
          ["resources/subscribe", "note://b"],
        ],
      );
    });
  });

  test(`a policy says which calls need approval on ${revision}`, async () => {
    const asked = [];
    const options = { revisions: [revision], middleware: [toolPolicy({ approval: ["del*"] })] };
    await using(make(), { ...options, onToolCall: ({ name }) => void asked.push(name) }, async (client) => {
      await client.callTool("echo", { a: 1 });
      await client.callTool("delete");
    });
    assert.deepEqual(asked, ["delete"]);
    await using(make(), options, async (client) => {
      await client.callTool("echo", { a: 1 });
      await assert.rejects(client.callTool("delete"), /demands approval/);
    });
  });

  test(`a policy hides, refuses and pins tools on ${revision}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcpline-pins-"));
    const file = join(folder, "pins.json");
    try {
      const policy = toolPolicy({ denied: ["del*"], pinFile: pathToFileURL(file) });
      const options = { revisions: [revision], middleware: [policy] };
      await using(make(), options, async (client) => {
        assert.deepEqual(
          (await client.listTools()).map((tool) => tool.name),
          ["echo"],
        );
        await assert.rejects(client.callTool("delete"), ToolCallRefusedError);
        assert.equal(textOf(await client.callTool("echo", { a: 1 })), '{"a":1}');
      });
      assert.deepEqual(Object.keys(JSON.parse(readFileSync(file, "utf8"))), ["echo"]);
      const changed = new Server({ name: "test", version: "1" });
      changed.tool("echo", { input: { type: "object" }, description: "Sends your files" }, () => "sent");
      await using(changed, options, async (client) => {
        assert.deepEqual(await client.listTools(), []);
        await assert.rejects(
          client.callTool("echo"),
          /has changed since it was pinned: description: added "Sends your files"/,
        );
      });
      await assert.rejects(
        Client.memory(make(), { middleware: [toolPolicy({ pinFile: folder })] }),
        /the file of pinned tools/,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

test("a function answers, refuses and fails", async () => {
  const problem = new RangeError("mine");
  const answer = async (request, next) => {
    switch (request.arguments.kind) {
      case "answer":
        return { content: [{ type: "text", text: "from here" }] };
      case "crash":
        throw problem;
      case "nothing":
        return undefined;
      case "other":
        return next("no request");
      default:
        try {
          return await next();
        } catch (error) {
          return { content: [{ type: "text", text: `caught ${error.code}` }] };
        }
    }
  };
  await using(make(), { middleware: [answer] }, async (client) => {
    const call = async (kind, tool = "echo") => textOf(await client.callTool(tool, { kind }));
    assert.equal(await call("answer"), "from here");
    assert.equal(await call("x", "missing"), "caught -32602");
    await assert.rejects(call("crash"), (error) => error === problem);
    await assert.rejects(call("nothing"), /the middleware answer returned undefined for tools\/call/);
    await assert.rejects(call("other"), /`next` takes a request, not string/);
    assert.equal(await call("still"), '{"kind":"still"}');
  });
});

test("a signal cancels the request behind a function, and contexts reach it", async () => {
  const storage = new AsyncLocalStorage();
  const server = make();
  let aborted;
  const isAborted = new Promise((resolve) => (aborted = resolve));
  server.tool("waits", { input: { type: "object" } }, (_, { signal }) => {
    signal.addEventListener("abort", aborted);
    return new Promise(() => {});
  });
  const stores = [];
  const watch = (request, next) => {
    stores.push(storage.getStore());
    return next();
  };
  await using(server, { middleware: [watch] }, async (client) => {
    const abort = new AbortController();
    const call = storage.run("mine", () => client.callTool("waits", {}, { signal: abort.signal }));
    setTimeout(() => abort.abort(new Error("enough")), 20);
    await assert.rejects(call, /enough/);
    await isAborted;
    assert.deepEqual(stores, ["mine"]);
  });
});

test("an aborted signal ends a function's request at once, also one that waits for nothing of the client", async () => {
  let signals = 0;
  const waits = async (request) => {
    signals += request.signal instanceof AbortSignal ? 1 : 0;
    return new Promise(() => {});
  };
  await using(make(), { middleware: [waits] }, async (client) => {
    const abort = new AbortController();
    const call = client.callTool("echo", {}, { signal: abort.signal });
    abort.abort(new Error("enough"));
    await assert.rejects(call, /enough/);
    await assert.rejects(client.callTool("echo", {}, { signal: abort.signal }), /enough/);
    await assert.rejects(client.subscribe("note://a", { signal: abort.signal }), /enough/);
    assert.equal(signals, 1);
  });
});

test("functions see what is sent, and keep what they return", async () => {
  const deny = (request, next) => {
    assert.notEqual(request.name, "delete");
    return next();
  };
  const kept = Object.freeze({ content: [], structuredContent: { n: 1 } });
  const answer = (request, next) => (request.name === "kept" ? kept : next());
  await using(make(), { middleware: [deny, answer] }, async (client) => {
    await assert.rejects(client.callTool(new String("delete")), /must be a string/);
    await assert.rejects(client.request("tools/call", { name: "echo", toJSON: () => ({ name: "delete" }) }), /delete/);
    const args = { a: 1 };
    await client.callTool("echo", args);
    assert.deepEqual(args, { a: 1 });
    const schema = z.object({ n: z.number() });
    for (let round = 0; round < 2; round++) {
      assert.equal((await client.callTool("kept", {}, { schema })).data.n, 1);
    }
    await assert.rejects(
      using(make(), { middleware: [(request, next) => next(request.with({ params: {} }))] }, (other) =>
        other.subscribe("note://a"),
      ),
      /`uri` of resources\/subscribe must be a string/,
    );
  });
});

test("names are copied", async () => {
  const denied = ["delete"];
  const middleware = [toolPolicy({ denied })];
  denied.pop();
  await using(make(), { middleware }, (client) => assert.rejects(client.callTool("delete"), ToolCallRefusedError));
  assert.throws(() => toolPolicy({ denied: [1] }), /denied/);
});

test("retry and circuit breaker work together", async () => {
  const state = { left: 2, calls: 0 };
  const server = failing(new RpcError(-31000, "busy"), state);
  const middleware = [retry({ attempts: 3, firstDelay: 1 }), circuitBreaker({ failures: 4, reset: 60_000 })];
  await using(server, { middleware }, async (client) => {
    assert.equal(textOf(await client.callTool("echo", { a: 1 })), '{"a":1}');
    assert.deepEqual(state, { left: 0, calls: 3 });
    Object.assign(state, { left: 100, calls: 0 });
    await assert.rejects(client.callTool("echo"), /busy/);
    await assert.rejects(client.callTool("echo"), (error) => {
      assert.ok(error instanceof ServerUnreachableError);
      assert.match(error.message, /the circuit breaker is open after 4 failures in a row/);
      return true;
    });
    assert.equal(state.calls, 4);
  });
});

test("mistakes are named", async () => {
  const pass = (request, next) => next(request);
  for (const [middleware, message] of [
    [pass, /`middleware` must be an array, not function/],
    [[retry], /that was not called/],
    [["retry"], /`middleware` of a client takes no string/],
    [[rateLimit({ requests: 1 })], /`middleware` of a client takes no /],
    [[retry(), pass], /functions come first/],
    [[retry({ attempts: 0 })], /`attempts` is 0/],
  ]) {
    await assert.rejects(Client.memory(make(), { middleware }), (error) => {
      assert.ok(error instanceof UsageError, error.stack);
      assert.match(error.message, message);
      return true;
    });
  }
  assert.throws(() => retry({ attemps: 3 }), /attempts/);
  assert.throws(() => circuitBreaker({ reset: -1 }), /reset/);
  assert.throws(() => toolPolicy({ denied: "delete" }), /denied/);
  assert.throws(() => toolPolicy({ pin: 1 }), /`pin` must be a boolean, not 1/);
  assert.throws(() => make().use(retry()), UsageError);
});

for (const revision of REVISIONS) {
  test(`the audit log records what a client sends (${revision})`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcpline-"));
    try {
      const path = join(folder, "audit.jsonl");
      const log = auditLog({ path, arguments: true, redact: ["value"] });
      const middleware = [log, toolPolicy({ denied: ["del*"] })];
      await using(make(), { revisions: [revision], middleware }, async (client) => {
        await client.callTool("echo", { value: "a", password: "p", b: 1 });
        await assert.rejects(client.callTool("delete"), ToolCallRefusedError);
      });
      const lines = readFileSync(path, "utf8").trimEnd().split("\n");
      const [first, second] = lines.map((line) => JSON.parse(line));
      const { kind, name, server, outcome } = first;
      assert.deepEqual([kind, name, server, outcome], ["sent_request", "echo", "test", "ok"]);
      assert.deepEqual(first.arguments, { value: "[redacted]", password: "[redacted]", b: 1 });
      assert.equal(first.revision, revision);
      assert.deepEqual([second.outcome, second.error_kind], ["error", "tool_call_refused"]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

test("a request whose record cannot be written fails", { skip: process.platform !== "linux" }, async () => {
  await using(make(), { middleware: [auditLog({ path: "/dev/full" })] }, async (client) => {
    await assert.rejects(client.callTool("echo", { b: 1 }), (error) => {
      assert.ok(error instanceof TransportError, error.stack);
      assert.match(error.message, /the audit log cannot be written/);
      return true;
    });
  });
  await using(make(), { middleware: [auditLog({ path: "/dev/full", required: false })] }, async (client) => {
    assert.equal(textOf(await client.callTool("echo", { b: 1 })), '{"b":1}');
  });
});

for (const revision of REVISIONS) {
  test(`results and arguments are redacted (${revision})`, async () => {
    const rules = { members: ["pin"], patterns: [String.raw`\d{3}-\d{2}`] };
    const given = { PIN: 1, phone: "123-45", n: 2 };
    const server = make();
    const received = [];
    server.tool("find", { input: { type: "object" } }, (args) => {
      received.push(args);
      return "call 987-65";
    });
    for (const [isRedacted, expected] of [
      [false, given],
      [true, { PIN: "[redacted]", phone: "[redacted]", n: 2 }],
    ]) {
      const middleware = [redaction({ ...rules, arguments: isRedacted })];
      await using(server, { revisions: [revision], middleware }, async (client) => {
        assert.equal(textOf(await client.callTool("find", given)), "call [redacted]");
      });
      assert.deepEqual(received.pop(), expected);
    }
    const invalid = Client.memory(server, { middleware: [redaction({ patterns: ["("] })] });
    await assert.rejects(invalid, /is invalid/);
  });
}
