// Failures of clients: each has its class and its code, and says whether to ask again.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { test } from "node:test";

import * as mcpline from "mcpline";

import { LEGACY, makeServer, MODERN, reach } from "./client-peer.mjs";

const { Client, ClientError, McplineError, RpcError, Server, ServerError } = mcpline;
const { native } = createRequire(import.meta.url)("../dist/native.js");
const { errorOf } = createRequire(import.meta.url)("../dist/errors.js");

const examples = native.failures().map((json) => {
  const [kind, failure] = JSON.parse(json);
  return { kind, failure, error: errorOf(JSON.stringify(failure)) };
});

test("every kind of failure has its class, and every class its code", () => {
  const kinds = new Set(examples.map(({ kind }) => kind));
  const known =
    "rpc timed_out http connection authorization invalid open unanswered refused unsupported closed misuse".split(" ");
  assert.deepEqual([...kinds].sort(), known.sort());
  const codes = new Map();
  for (const { kind, failure, error } of examples) {
    assert.ok(error instanceof McplineError, kind);
    assert.equal(error.constructor, mcpline[failure.class], failure.class);
    assert.equal(error.name, failure.class);
    assert.notEqual(error.constructor, ClientError, kind);
    assert.ok(error.message, kind);
    assert.equal(error instanceof ClientError, kind !== "misuse", kind);
    codes.set(failure.class, error.code);
  }
  assert.equal(new Set(codes.values()).size, codes.size);
  assert.deepEqual(Object.fromEntries(codes), {
    ServerError: "SERVER_ERROR",
    RequestTimedOutError: "REQUEST_TIMED_OUT",
    HttpError: "HTTP_ERROR",
    ConnectionFailedError: "CONNECTION_FAILED",
    ServerExitedError: "SERVER_EXITED",
    AuthorizationFailedError: "AUTHORIZATION_FAILED",
    InvalidAnswerError: "INVALID_ANSWER",
    OpenFailedError: "OPEN_FAILED",
    OpenTimedOutError: "OPEN_TIMED_OUT",
    QuestionUnansweredError: "QUESTION_UNANSWERED",
    ToolCallRefusedError: "TOOL_CALL_REFUSED",
    NotSupportedError: "NOT_SUPPORTED",
    ClientClosedError: "CLIENT_CLOSED",
    UsageError: "USAGE",
  });
});

test("failures tell everything that is known", () => {
  const of = (name) => examples.find(({ failure }) => failure.class === name).error;
  const timedOut = of("RequestTimedOutError");
  assert.deepEqual([timedOut.waited, timedOut.inAll, timedOut.outcomeUnknown], [1000, false, true]);
  const http = of("HttpError");
  assert.deepEqual([http.status, http.body, http.challenge, http.error.rpcCode], [401, "no", "Bearer", -32602]);
  assert.equal(of("AuthorizationFailedError").reason, "unattended");
  const exited = of("ServerExitedError");
  assert.deepEqual([exited.exit, exited.stderr], ["exit status: 1", ["last words"]]);
  assert.equal(of("OpenFailedError").error.rpcCode, -32602);
  assert.equal(of("QuestionUnansweredError").error.rpcCode, -32602);
  const server = of("ServerError");
  assert.ok(server instanceof RpcError && server instanceof ClientError && server instanceof ServerError);
  assert.ok(!(http instanceof RpcError));
  assert.deepEqual([server.rpcCode, server.message], [-32602, "no"]);
});

for (const way of ["memory", "http", "program"]) {
  test(`a server's error is thrown with its code, and the stack of whoever asked: ${way}`, async (t) => {
    const client = await reach(t, way);
    const asked = async () => {
      await client.callTool("nothing");
    };
    const error = await asked().catch((error) => error);
    assert.equal(error.code, "SERVER_ERROR");
    assert.equal(error.rpcCode, -32602);
    assert.match(error.stack, /at async asked/);
    await client.callTool("echo");
  });

  test(`a request that waits too long is rejected: ${way}`, async (t) => {
    const client = await reach(t, way);
    const error = await client.callTool("waits", {}, { timeout: 20 }).catch((error) => error);
    assert.equal(error.code, "REQUEST_TIMED_OUT");
    assert.deepEqual([error.waited, error.inAll, error.outcomeUnknown], [20, false, true]);
    const inAll = await client.callTool("waits", {}, { totalTimeout: 20 }).catch((error) => error);
    assert.equal(inAll.inAll, true);
  });

  test(`closing rejects what is in flight, and whatever is asked afterwards: ${way}`, async (t) => {
    const client = await reach(t, way);
    const call = assert.rejects(client.callTool("waits"), { code: "CLIENT_CLOSED" });
    await client.callTool("echo");
    await Promise.all([client.close(), client.close()]);
    await call;
    await assert.rejects(client.callTool("echo"), { code: "CLIENT_CLOSED" });
    await assert.rejects(client.ping(), { code: "CLIENT_CLOSED" });
    await client.close();
  });
}

test("what a peer says does not act on a terminal", async (t) => {
  const said = "\u001b]0;title\u0007\u001b[31mred\n\u202e";
  const client = await scripted(t, (response, id) => {
    const error = { code: -32000, message: said };
    response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, error }));
  });
  const server = await client.callTool("any").catch((error) => error);
  const refused = errorOf(
    JSON.stringify({ class: "RefusedError", message: "red", members: { rpcCode: 1, rpcMessage: said } }),
  );
  for (const error of [server, refused]) {
    assert.equal(error.rpcMessage, said);
    assert.match(error.message, /^red/);
    for (const text of [error.message, String(error), error.stack.split("\n    at ")[0]]) {
      // eslint-disable-next-line no-control-regex
      assert.doesNotMatch(text, /[\u0000-\u001f\u007f-\u009f\u202e]/);
    }
  }
});

test("a question without a handler ends the request (2026-07-28), or is answered with an error", async (t) => {
  const modern = await reach(t, "memory", { revision: MODERN, capabilities: { elicitation: {} } });
  await assert.rejects(modern.callTool("elicits"), { code: "QUESTION_UNANSWERED" });
  const legacy = await reach(t, "memory", { revision: LEGACY });
  assert.equal((await legacy.callTool("elicits")).isError, true);
});

test("what was not declared is not sent", async () => {
  const server = new Server({ name: "bare", version: "1" });
  const careful = await Client.memory(server);
  for (const refused of [careful.listTools(), careful.subscribe("test://a"), careful.rootsChanged()]) {
    await assert.rejects(refused, { code: "NOT_SUPPORTED", message: /does not declare the capability/ });
  }
  await careful.close();
  const daring = await Client.memory(server, { allowUndeclaredCapabilities: true });
  await assert.rejects(daring.listTools(), { code: "SERVER_ERROR", rpcCode: -32601 });
  await daring.close();
});

test("a server that can't be reached was never asked", async () => {
  const error = await Client.connect("http://127.0.0.1:1/mcp").catch((error) => error);
  assert.equal(error.code, "CONNECTION_FAILED");
  assert.deepEqual([error.retrySafe, error.outcomeUnknown], [true, false]);
  await assert.rejects(Client.spawn("/there/is/no/such/program"), { code: "CONNECTION_FAILED" });
});

test("a program that ends leaves its last words", async () => {
  const source = "console.error('last words'); process.exit(3)";
  const error = await Client.spawn(process.execPath, ["-e", source]).catch((error) => error);
  assert.equal(error.code, "SERVER_EXITED");
  assert.equal(error.exit, "exit status: 3");
  assert.deepEqual(error.stderr, ["last words"]);
});

/** A program that answers the handshake, and the calls of one tool; nothing else, pings neither. */
const MUTE = `
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    const say = (answer) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
    if (method === "server/discover") say({ error: { code: -32601, message: "no" } });
    if (method === "initialize") {
      say({ result: { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "mute", version: "1" } } });
    }
    if (method === "tools/call" && params.name === "says") say({ result: { content: [] } });
  });`;

test("every request has a timeout of its own", async () => {
  const client = await Client.spawn(process.execPath, ["-e", MUTE]);
  const options = { timeout: 100 };
  const first = (pages) => pages[Symbol.asyncIterator]().next();
  const requests = {
    ping: () => client.ping(options),
    listTools: () => client.listTools(options),
    listResources: () => client.listResources(options),
    listResourceTemplates: () => client.listResourceTemplates(options),
    listPrompts: () => client.listPrompts(options),
    tools: () => first(client.tools(options)),
    callTool: () => client.callTool("t", {}, options),
    readResource: () => client.readResource("test://a", options),
    getPrompt: () => client.getPrompt("p", {}, options),
    complete: () => client.complete({ prompt: "p" }, { name: "a", value: "" }, options),
    subscribe: () => client.subscribe("test://a", options),
    unsubscribe: () => client.unsubscribe("test://a", options),
    setLogLevel: () => client.setLogLevel("error", options),
    request: () => client.request("x/y", {}, options),
  };
  for (const [name, request] of Object.entries(requests)) {
    await assert.rejects(request(), { code: "REQUEST_TIMED_OUT", message: /0\.1 s/ }, name);
  }
  // The connection is as it was.
  await client.callTool("says");
  await client.close();
});

test("a ping without an answer is a lost connection", async () => {
  const client = await Client.spawn(process.execPath, ["-e", MUTE], { pingInterval: 100, pingTimeout: 100 });
  const lost = await client.callTool("t").catch((error) => error);
  assert.deepEqual([lost.code, lost.outcomeUnknown], ["CONNECTION_FAILED", true]);
  assert.match(lost.message, /a ping failed: no answer within 0\.1 s/);
  await client.close();
});

/** A server that answers a handshake, and then as `answer` says. */
async function scripted(t, answer) {
  const listening = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { id, method } = body === "" ? {} : JSON.parse(body);
      const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {} };
      const result = { protocolVersion: LEGACY, capabilities, serverInfo: { name: "s", version: "1" } };
      if (method === "initialize") {
        response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, result }));
      } else if (id === undefined) {
        response.writeHead(request.method === "POST" ? 202 : 405).end();
      } else {
        answer(response, id);
      }
    });
  });
  await new Promise((resolve) => listening.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    listening.closeAllConnections();
    listening.close();
  });
  const url = `http://127.0.0.1:${listening.address().port}/mcp`;
  const client = await Client.connect(url, { revisions: [LEGACY] });
  t.after(() => client.close());
  return client;
}

test("an HTTP status is told with its body and its challenge", async (t) => {
  const client = await scripted(t, (response) => {
    response.writeHead(403, { "www-authenticate": "Bearer scope=x" }).end("go away");
  });
  const error = await client.callTool("x").catch((error) => error);
  assert.equal(error.code, "HTTP_ERROR");
  assert.deepEqual([error.status, error.body, error.challenge], [403, "go away", "Bearer scope=x"]);
  assert.equal(error.error, undefined);
});

test("results that are not what their types promise are invalid", async (t) => {
  let result;
  const client = await scripted(t, (response, id) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const invalid = { code: "INVALID_ANSWER" };
  for (result of [5, { tools: 5 }, {}, { tools: [], nextCursor: 5 }]) {
    await assert.rejects(client.listTools(), invalid, JSON.stringify(result));
  }
  for (result of ["text", { content: 5 }]) {
    await assert.rejects(client.callTool("x"), invalid, JSON.stringify(result));
  }
  result = {};
  assert.deepEqual(await client.callTool("x"), { content: [] });
  await assert.rejects(client.readResource("x://"), invalid);
  await assert.rejects(client.getPrompt("x"), invalid);
  await assert.rejects(client.complete({ prompt: "x" }, { name: "a", value: "" }), invalid);
  // A list that never ends.
  result = { tools: [], nextCursor: "again" };
  await assert.rejects(client.listTools(), { ...invalid, message: /never end/ });
});

test("connecting can be given up", async () => {
  const silent = createServer(() => undefined);
  await new Promise((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const giving = new AbortController();
  const connecting = Client.connect(`http://127.0.0.1:${silent.address().port}/mcp`, { signal: giving.signal });
  silent.once("request", () => giving.abort());
  await assert.rejects(connecting, { name: "AbortError" });
  await assert.rejects(Client.memory(makeServer(), { signal: giving.signal }), { name: "AbortError" });
  silent.closeAllConnections();
  silent.close();
});
