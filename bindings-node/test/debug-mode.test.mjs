// Debug mode: clients get the messages of errors, and every message is printed to stderr.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server } from "mcpline";

import { Child } from "./peer.mjs";

function make(settings) {
  const server = new Server({ name: "debugged", version: "1.0.0", settings, onError: () => {} });
  server.tool("fails", {}, () => {
    throw new TypeError("the disk is full");
  });
  server.tool("rejects", {}, async () => {
    throw "a text";
  });
  server.tool("textless", {}, () => {
    throw Object.create(null);
  });
  server.resource("a://b", { name: "b" }, () => {
    throw new TypeError("the disk is full");
  });
  return server;
}

async function texts(server) {
  const client = await Client.memory(server);
  try {
    const results = [];
    for (const name of ["fails", "rejects", "textless"]) {
      const { content } = await client.callTool(name);
      results.push(content[0].text);
    }
    await assert.rejects(client.readResource("a://b"), ({ rpcMessage }) => {
      results.push(rpcMessage);
      return true;
    });
    return results;
  } finally {
    await client.close();
  }
}

for (const settings of [{}, { debug: false }]) {
  test(`with ${JSON.stringify(settings)}, errors are masked`, async () => {
    assert.deepEqual(await texts(make(settings)), [
      "Error executing tool fails",
      "Error executing tool rejects",
      "Error executing tool textless",
      "resources/read failed",
    ]);
  });
}

test("in debug mode, clients get the name and the message of errors, and no stack trace", async () => {
  assert.deepEqual(await texts(make({ debug: true })), [
    "Error executing tool fails: TypeError: the disk is full",
    "Error executing tool rejects: a text",
    "Error executing tool textless: an error without a text",
    "resources/read failed: TypeError: the disk is full",
  ]);
});

const MESSAGE =
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (received|sent) over stdio, connection \d+(?:, ([0-9-]+))?: (.*)$/;

/** Direction, revision and content of the messages among the lines on stderr. */
function messages(stderr) {
  const matches = stderr.split("\n").map((line) => MESSAGE.exec(line));
  return matches.filter(Boolean).map(([, way, revision, text]) => ({ way, revision, message: JSON.parse(text) }));
}

const source = (settings) => `
  import { Server } from "mcpline";
  const server = new Server({ name: "debugged", version: "1.0.0", settings: ${JSON.stringify(settings)} });
  server.tool("sign-in", { input: { type: "object" } }, () => { console.log("a stray line"); return "done"; });
  await server.run();
`;

/** Calls a tool of a server over stdio, whose stdout must contain nothing but the protocol. */
async function called(settings, environment = {}) {
  const child = new Child(source(settings), { env: environment });
  await child.open();
  child.call(1, "sign-in", { password: "s3cret" });
  assert.equal((await child.receive()).id, 1);
  child.process.stdin.end();
  await child.ended;
  await assert.rejects(child.line(), /the program has ended/);
  return child.stderr;
}

for (const [settings, environment] of [
  [{ debug: true }, {}],
  [{}, { MCPLINE_DEBUG: "1" }],
]) {
  test(`with ${JSON.stringify({ settings, environment })}, messages over stdio are printed to stderr`, async () => {
    const stderr = await called(settings, environment);
    const seen = messages(stderr).map(({ way, message }) => `${way} ${message.method ?? Object.keys(message).at(-1)}`);
    assert.deepEqual(seen, [
      "received initialize",
      "sent result",
      "received notifications/initialized",
      "received tools/call",
      "sent result",
    ]);
    assert.equal(messages(stderr)[0].revision, undefined);
    assert.match(messages(stderr)[1].revision, /^\d{4}-\d\d-\d\d$/);
    assert.deepEqual(messages(stderr)[3].message.params.arguments, { password: "[redacted]" });
    assert.doesNotMatch(stderr, /s3cret/);
    assert.match(stderr, /do not use it in production/);
    assert.match(stderr, /a stray line/);
  });
}

for (const [settings, environment] of [
  [{}, {}],
  [{ debug: false }, { MCPLINE_DEBUG: "1" }],
]) {
  test(`with ${JSON.stringify({ settings, environment })}, no message is printed`, async () => {
    const stderr = await called(settings, environment);
    assert.deepEqual(messages(stderr), []);
    assert.doesNotMatch(stderr, /production/);
  });
}
