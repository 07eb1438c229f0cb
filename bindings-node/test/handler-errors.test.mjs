// `onError`: what handlers throw reaches the program as it was thrown.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { test } from "node:test";

import { Client, NotSupportedError, ResourceNotFoundError, RpcError, Server, ToolError } from "mcpline";
import * as z from "zod";

import { call, textOf } from "./fetching.mjs";

function make() {
  const reports = [];
  const onError = (error, { kind, name, ctx }) => reports.push({ error, kind, name, revision: ctx.revision });
  return { reports, server: new Server({ name: "errors", version: "1", onError }) };
}

class Outage extends Error {}

test("an error of a handler is passed on as an object, with what failed", async (t) => {
  const { server, reports } = make();
  const [outage, later] = [new Outage("the database is down"), { not: "an error" }];
  const fail = () => {
    throw outage;
  };
  server.tool("now", {}, fail);
  server.tool("later", {}, () => Promise.reject(later));
  server.resource("test://r", { name: "r" }, fail);
  server.resource("test://r/{id}", { name: "t", complete: { id: fail } }, fail);
  server.prompt("p", {}, fail);
  server.completion(fail);
  server.onRequest("acme/r", {}, fail);
  const client = await Client.memory(server, { revisions: ["2025-11-25"] });
  t.after(() => client.close());
  for (const name of ["now", "later"]) {
    const { content, isError } = await client.callTool(name);
    assert.deepEqual([isError, content[0].text], [true, `Error executing tool ${name}`]);
  }
  await assert.rejects(client.readResource("test://r"), RpcError);
  await assert.rejects(client.readResource("test://r/1"), RpcError);
  await assert.rejects(client.getPrompt("p"), RpcError);
  await assert.rejects(client.complete({ template: "test://r/{id}" }, { name: "id", value: "" }), RpcError);
  await assert.rejects(client.complete({ prompt: "p" }, { name: "a", value: "" }), RpcError);
  await assert.rejects(client.request("acme/r"), RpcError);
  assert.deepEqual(
    reports.map(({ kind, name }) => [kind, name]),
    [
      ["tool", "now"],
      ["tool", "later"],
      ["resource", "test://r"],
      ["resource", "test://r/{id}"],
      ["prompt", "p"],
      ["completion", "test://r/{id}"],
      ["completion", ""],
      ["request", "acme/r"],
    ],
  );
  assert.ok(reports.every(({ error }, index) => error === (index === 1 ? later : outage)));
  assert.ok(reports.every(({ revision }) => revision === "2025-11-25"));
});

// Regression test: a lone surrogate lost the error's text in the log, and a proxy or a getter left the call open.
test("whatever a handler throws, its call ends and is reported", async () => {
  const { server, reports } = make();
  const throwing = (name, error) =>
    server.tool(name, {}, () => {
      throw error;
    });
  const getter = Object.defineProperty(new Error("m"), "stack", {
    get() {
      throw new Error("no stack");
    },
  });
  const refuse = () => {
    throw new Error("no prototype");
  };
  throwing("surrogate", new Error("cut \ud83d"));
  throwing("number", Object.assign(new Error("the disk is full"), { stack: 5 }));
  throwing("getter", getter);
  throwing("proxy", new Proxy({}, { getPrototypeOf: refuse, get: refuse }));
  const warnings = [];
  const warned = (warning) => warnings.push(warning.message);
  process.on("warning", warned);
  try {
    for (const name of ["surrogate", "number", "getter", "proxy"]) {
      const { content, isError } = await call(server, name);
      assert.deepEqual([isError, content[0].text], [true, `Error executing tool ${name}`]);
    }
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", warned);
  }
  assert.equal(reports.length, 4);
  const details = warnings.map((text) => text.replace(/^.*detail=/s, "").split("\n")[0]);
  assert.deepEqual(details, [
    "Error: cut \ufffd",
    "Error: the disk is full",
    "an error that cannot be read",
    "an error that cannot be read",
  ]);
});

// Regression test: a text that was not a string ended the process, or left the other calls of the turn open.
test("properties of errors that are not strings fail only their call", async (t) => {
  const { server } = make();
  const throwing = (name, error) =>
    server.tool(name, {}, () => {
      throw error;
    });
  throwing("uri", new ResourceNotFoundError(new URL("note://1")));
  throwing("message", Object.assign(new ToolError("m"), { message: { toString: () => "a text" } }));
  throwing("symbol", Object.assign(new ToolError("m"), { message: Object.create(null) }));
  server.tool("good", {}, () => "done");
  const client = await Client.memory(server);
  t.after(() => client.close());
  const names = ["uri", "good", "message", "symbol", "good"];
  const results = await Promise.all(names.map((name) => client.callTool(name)));
  assert.deepEqual(
    results.map(({ content }) => content[0].text),
    ["Resource not found: note://1", "done", "a text", "Error executing tool symbol", "done"],
  );
});

test("an error that cannot be read is reported by a warning if `onError` fails for it", async () => {
  const refuse = () => {
    throw new Error("no");
  };
  const unreadable = new Proxy(new Error("m"), { get: refuse, getPrototypeOf: refuse });
  for (const onError of [
    () => {
      throw unreadable;
    },
    () => Promise.reject(unreadable),
  ]) {
    const server = new Server({ name: "errors", version: "1", onError });
    server.tool("fails", {}, () => {
      throw unreadable;
    });
    const warned = once(process, "warning");
    assert.equal(textOf(await call(server, "fails")), "Error executing tool fails");
    assert.match((await warned)[0].message, /an error that cannot be read/);
  }
});

test("a lone surrogate in an error for the client becomes U+FFFD", async () => {
  const { server } = make();
  server.tool("rpc", {}, () => {
    throw new RpcError(-31050, "cut \ud83d");
  });
  await assert.rejects(call(server, "rpc"), { code: -31050, message: "cut \ufffd" });
});

test("errors for the client or the model are not reported", async () => {
  const { server, reports } = make();
  const throwing = (name, error) =>
    server.tool(name, {}, () => {
      throw error;
    });
  throwing("tool", new ToolError("try a city"));
  throwing("rpc", new RpcError(-31050, "no such thing"));
  throwing("unsupported", new NotSupportedError("no sampling", { required: { sampling: {} } }));
  server.tool("arguments", { input: { city: z.string() } }, () => "");
  assert.equal(textOf(await call(server, "tool")), "try a city");
  await assert.rejects(call(server, "rpc"), { code: -31050 });
  await assert.rejects(call(server, "unsupported"), { code: -32021 });
  assert.equal((await call(server, "arguments")).isError, true);
  assert.deepEqual(reports, []);
});

test("a result that cannot be sent is reported", async () => {
  const { server, reports } = make();
  server.tool("big", { output: { type: "object" } }, () => ({ big: 1n }));
  server.tool("other", { output: { city: z.string() } }, () => ({ city: 1 }));
  await call(server, "big");
  await call(server, "other");
  assert.deepEqual(
    reports.map(({ error, name }) => [error.name, name]),
    [
      ["TypeError", "big"],
      ["UsageError", "other"],
    ],
  );
});

test("what a cancelled handler throws is not reported", async (t) => {
  const { server, reports } = make();
  let running;
  const [began, ended] = [new Promise((resolve) => (running = resolve)), settable()];
  server.tool("waits", {}, async (_, ctx) => {
    running();
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    setImmediate(ended.resolve);
    throw new Outage("aborted");
  });
  const client = await Client.memory(server);
  t.after(() => client.close());
  const giveUp = new AbortController();
  const called = client.callTool("waits", {}, { signal: giveUp.signal });
  await began;
  giveUp.abort();
  await assert.rejects(called);
  await ended.promise;
  assert.deepEqual(reports, []);
});

function settable() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}

test("onError runs in the asynchronous context of the handler", async () => {
  const storage = new AsyncLocalStorage();
  const seen = [];
  const server = new Server({ name: "errors", version: "1", onError: () => seen.push(storage.getStore()) });
  server.tool("now", {}, () => {
    throw new Outage();
  });
  server.tool("later", {}, async () => {
    await new Promise(setImmediate);
    throw new Outage();
  });
  await Promise.all(["now", "later"].map((name) => storage.run(name, () => call(server, name))));
  assert.deepEqual(seen, ["now", "later"]);
});

test("an error of onError is a warning, and the client gets its response", async (t) => {
  const warned = [];
  const onWarning = ({ message }) => warned.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const failures = [
    () => {
      throw new Error("no Sentry");
    },
    () => Promise.reject(new Error("no Sentry")),
  ];
  for (const onError of failures) {
    const server = new Server({ name: "errors", version: "1", onError });
    server.tool("fails", {}, () => {
      throw new Outage("down");
    });
    assert.equal(textOf(await call(server, "fails")), "Error executing tool fails");
  }
  await new Promise(setImmediate);
  assert.equal(warned.filter((message) => /`onError` failed for .*down.*no Sentry/s.test(message)).length, 2);
});

test("onError must be a function", () => {
  assert.throws(() => new Server({ name: "errors", version: "1", onError: "log" }), {
    name: "UsageError",
    message: "`onError` of the server must be a function, not string",
  });
});

test("the client gets the error that onError returns", async () => {
  const server = new Server({
    name: "errors",
    version: "1",
    onError: (error, { kind }) =>
      kind === "tool" ? new ToolError(`seen: ${error.message}`) : new RpcError(1001, `seen: ${error.message}`, 7),
  });
  const fail = () => {
    throw new Error("no such file");
  };
  server.tool("t", {}, fail);
  server.prompt("p", {}, async () => fail());
  const client = await Client.memory(server);
  const warnings = [];
  const listener = (warning) => warnings.push(warning.message);
  process.on("warning", listener);
  const { content, isError } = await client.callTool("t");
  assert.deepEqual([content[0].text, isError], ["seen: no such file", true]);
  await assert.rejects(client.getPrompt("p"), { code: 1001, rpcMessage: "seen: no such file", data: 7 });
  await client.close();
  process.off("warning", listener);
  assert.deepEqual(warnings, []);
});
