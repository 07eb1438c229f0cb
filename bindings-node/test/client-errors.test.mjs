// Errors of clients: each has its class and its kind, and says whether the request can be sent again.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import * as mcpline from "../dist/internals.js";
import { LEGACY, makeServer, MODERN, reach } from "./client-peer.mjs";

const { AuthorizationFailedError, Client, errorOf, HttpError, isForModel, McplineError, native, RpcError, Server } =
  mcpline;

const examples = native.errorExamples().map((json) => ({ described: JSON.parse(json), error: errorOf(json) }));
const OF_INPUT_REQUESTS = "elicitation/create";
const ofClients = examples.slice(
  0,
  examples.findIndex(({ error }) => error.operation === OF_INPUT_REQUESTS),
);
const ofInputRequests = examples.slice(ofClients.length);

test("every kind of error has its class, and every error all facts", () => {
  for (const { described, error } of examples) {
    const { kind } = error;
    assert.equal(kind, described.kind);
    assert.equal(error.message, described.message);
    assert.ok(error instanceof McplineError, kind);
    assert.notEqual(error.constructor, McplineError, kind);
    assert.equal(error.constructor, mcpline[error.name], kind);
    const stem = kind.replaceAll("_", "").replace(/error$/, "");
    assert.equal(error.name.toLowerCase(), `${stem}error`);
    assert.ok(["tools/call", "connect", OF_INPUT_REQUESTS].includes(error.operation), kind);
  }
});

test("errors say whether to send again", () => {
  const facts = ofClients.map(({ error }) => [error.kind, [error.retrySafe, error.outcomeUnknown]]);
  assert.deepEqual(Object.fromEntries(facts), {
    rpc_error: [false, false],
    request_timed_out: [false, true],
    http_error: [false, false],
    session_expired: [true, false],
    server_unreachable: [true, false],
    connection_lost: [false, true],
    server_exited: [false, true],
    authorization_failed: [true, false],
    invalid_response: [false, false],
    limit_exceeded: [true, false],
    handshake_failed: [false, false],
    handshake_timed_out: [false, false],
    input_request_failed: [false, false],
    tool_call_refused: [false, false],
    not_supported: [false, false],
    closed: [false, false],
    usage_error: [false, false],
  });
  // Errors for too many results, too many rounds, and too many unsent bytes: in the last case, nothing was sent.
  const limits = facts.filter(([kind]) => kind === "limit_exceeded").map(([, known]) => known);
  assert.deepEqual(limits, [
    [false, false],
    [false, false],
    [true, false],
  ]);
});

test("errors have every known fact", () => {
  const of = (kind) => ofClients.find(({ error }) => error.kind === kind).error;
  const timedOut = of("request_timed_out");
  assert.deepEqual([timedOut.waited, timedOut.inAll, timedOut.outcomeUnknown], [1000, false, true]);
  const http = of("http_error");
  assert.deepEqual([http.status, http.body, http.challenge, http.source.code], [401, "no", "Bearer", -32602]);
  assert.equal(http.cause, http.source);
  assert.equal(of("authorization_failed").reason, "unattended");
  const exited = of("server_exited");
  assert.deepEqual([exited.exit, exited.stderr], ["exit status: 1", ["last words"]]);
  assert.ok(exited instanceof mcpline.ConnectionLostError);
  assert.equal(of("server_unreachable").source, "no route");
  assert.equal(of("handshake_failed").source.code, -32602);
  assert.equal(of("handshake_timed_out").waited, 1000);
  assert.equal(of("input_request_failed").source.code, -32602);
  const server = of("rpc_error");
  assert.ok(server instanceof RpcError);
  assert.ok(!(http instanceof RpcError));
  assert.deepEqual([server.code, server.rpcMessage], [-32602, "no"]);
});

test("errors of input requests name missing capabilities and whether the model reads them", () => {
  const unsupported = ofInputRequests.filter(({ error }) => error.kind === "not_supported");
  assert.deepEqual(
    unsupported.map(({ error }) => error.required),
    [{ elicitation: {} }, undefined],
  );
  const readable = ofInputRequests.filter(({ error }) => isForModel(error));
  assert.deepEqual(
    readable.map(({ error }) => error.kind),
    ["not_supported", "input_request_failed", "invalid_response", "request_timed_out", "limit_exceeded"],
  );
});

for (const way of ["memory", "http", "program"]) {
  test(`a server's error is thrown with its code and the caller's stack: ${way}`, async (t) => {
    const client = await reach(t, way);
    const asked = async () => {
      await client.callTool("nothing");
    };
    const error = await asked().catch((error) => error);
    assert.equal(error.kind, "rpc_error");
    assert.equal(error.code, -32602);
    assert.match(error.stack, /at async asked/);
    await client.callTool("echo");
  });

  test(`a request that waits too long is rejected: ${way}`, async (t) => {
    const client = await reach(t, way);
    const error = await client.callTool("waits", {}, { timeout: 20 }).catch((error) => error);
    assert.equal(error.kind, "request_timed_out");
    assert.deepEqual([error.waited, error.inAll, error.outcomeUnknown], [20, false, true]);
    const inAll = await client.callTool("waits", {}, { totalTimeout: 20 }).catch((error) => error);
    assert.equal(inAll.inAll, true);
  });

  test(`closing rejects requests in flight and later ones: ${way}`, async (t) => {
    const client = await reach(t, way);
    const call = assert.rejects(client.callTool("waits"), { kind: "closed" });
    await client.callTool("echo");
    await Promise.all([client.close(), client.close()]);
    await call;
    await assert.rejects(client.callTool("echo"), { kind: "closed" });
    await assert.rejects(client.ping(), { kind: "closed" });
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
  const source = { code: 1, message: said, shown: "red" };
  const { source: refusal } = errorOf(
    JSON.stringify({ kind: "input_request_failed", message: "red", members: { source } }),
  );
  for (const error of [server, refusal]) {
    assert.equal(error.rpcMessage, said);
    assert.match(error.message, /red/);
    for (const text of [error.message, String(error), error.stack.split("\n    at ")[0]]) {
      // eslint-disable-next-line no-control-regex
      assert.doesNotMatch(text, /[\u0000-\u001f\u007f-\u009f\u202e]/);
    }
  }
});

test("an input request without a handler ends the request (2026-07-28) or is answered with an error", async (t) => {
  const modern = await reach(t, "memory", { revision: MODERN, capabilities: { elicitation: {} } });
  await assert.rejects(modern.callTool("elicits"), { kind: "input_request_failed" });
  const legacy = await reach(t, "memory", { revision: LEGACY });
  assert.equal((await legacy.callTool("elicits")).isError, true);
});

test("requests for undeclared capabilities are not sent", async () => {
  const server = new Server({ name: "bare", version: "1" });
  const careful = await Client.memory(server);
  for (const refused of [careful.listTools(), careful.subscribe("test://a"), careful.rootsChanged()]) {
    await assert.rejects(refused, { kind: "not_supported", message: /does not declare the capability/ });
  }
  await assert.rejects(careful.listTools(), { message: /see `allowUndeclaredCapabilities`/ });
  await careful.close();
  const daring = await Client.memory(server, { allowUndeclaredCapabilities: true });
  await assert.rejects(daring.listTools(), { kind: "rpc_error", code: -32601 });
  await daring.close();
});

test("a request to an unreachable server is safe to retry", async () => {
  const error = await Client.connect("http://127.0.0.1:1/mcp").catch((error) => error);
  assert.equal(error.kind, "server_unreachable");
  assert.equal(error.operation, "connect");
  assert.deepEqual([error.retrySafe, error.outcomeUnknown], [true, false]);
  await assert.rejects(Client.spawn("/there/is/no/such/program"), { kind: "server_unreachable" });
});

test("the error of an exited program contains its last stderr lines", async () => {
  const source = "console.error('last words'); process.exit(3)";
  const error = await Client.spawn(process.execPath, ["-e", source]).catch((error) => error);
  assert.equal(error.kind, "server_exited");
  assert.equal(error.exit, "exit status: 3");
  assert.deepEqual(error.stderr, ["last words"]);
});

/** A program that answers only the handshake and the calls of one tool, not even pings. */
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
    await assert.rejects(request(), { kind: "request_timed_out", message: /0\.1 s/ }, name);
  }
  // The connection still works.
  await client.callTool("says");
  await client.close();
});

test("a ping without an answer is a lost connection", async () => {
  const client = await Client.spawn(process.execPath, ["-e", MUTE], { pingInterval: 100, pingTimeout: 100 });
  const lost = await client.callTool("t").catch((error) => error);
  assert.deepEqual([lost.kind, lost.outcomeUnknown], ["connection_lost", true]);
  assert.match(lost.message, /no response to `ping` within 0\.1 s \(`ping_timeout`\)/);
  await client.close();
});

/** A server that answers the handshake, and then with `answer`. */
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

test("an HTTP error contains its status, body and challenge", async (t) => {
  const client = await scripted(t, (response) => {
    response.writeHead(403, { "www-authenticate": "Bearer scope=x" }).end("go away");
  });
  const error = await client.callTool("x").catch((error) => error);
  assert.equal(error.kind, "http_error");
  assert.deepEqual([error.status, error.body, error.challenge], [403, "go away", "Bearer scope=x"]);
  assert.equal(error.source, undefined);
});

test("results that do not match their types are invalid", async (t) => {
  let result;
  const client = await scripted(t, (response, id) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const invalid = { kind: "invalid_response" };
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

test("connecting can be aborted", async () => {
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

test("a token of the host that the server refuses is an authorization failure", async (t) => {
  const refusing = createServer((_, response) => {
    response.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' }).end("no");
  });
  await once(refusing.listen(0, "127.0.0.1"), "listening");
  t.after(() => refusing.close());
  const url = `http://127.0.0.1:${refusing.address().port}/mcp`;
  for (const options of [{ auth: "wrong" }, { headers: { authorization: "Bearer wrong" } }]) {
    await assert.rejects(Client.connect(url, options), (error) => {
      assert.ok(error instanceof AuthorizationFailedError);
      assert.equal(error.reason, "token_rejected");
      return true;
    });
  }
  await assert.rejects(Client.connect(url), (error) => error instanceof HttpError && error.status === 401);
});
