// Options of clients and of their requests: unknown ones and values of another form are refused.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server } from "../dist/index.mjs";

const done = () => "done";

function makeServer() {
  return new Server({ name: "options", version: "1.0.0" })
    .tool("work", {}, done)
    .resource("a://b", { name: "b" }, done)
    .prompt("ask", {}, done);
}

const refused = (message) => ({ name: "UsageError", message });

const OPTIONS = [
  [{ time_out: 5 }, "the client: unknown option `time_out`; did you mean `timeout`?"],
  [{ elicit: 5 }, "the client: `elicit` must be a function, not number"],
  [{ sample: null }, "the client: `sample` must be a function, not null"],
  [{ roots: "xy" }, "the client: `roots` must be an array of paths and URLs, or a function, not string"],
  [
    { roots: [5] },
    "the client: `roots` must be an array of paths and URLs, or a function, not an array of other values",
  ],
  [{ onLog: {} }, "the client: `onLog` must be a function, not object"],
  [{ onRequest: { "acme/x": 5 } }, "the client: `onRequest` must be an object of functions by method, not object"],
  [{ extensions: {} }, "the client: `extensions` must be an array of extensions, not object"],
  [{ info: "x" }, "the client: `info` must be an object, not string"],
  [{ signal: 5 }, "the client: `signal` must be an AbortSignal, not number"],
  [{ headers: () => [] }, "the client: `headers` must be an object or pairs of strings, not function"],
  [{ headers: { a: 5 } }, "the client: header `a` must be a string, not number"],
  [{ headers: ["a"] }, 'the client: `headers` must have pairs of strings, such as ["x-tenant", "7"]'],
  [{ maxInputRounds: "3" }, "`maxInputRounds` must be a whole number, not string"],
  [{ checkOutput: "no" }, "`checkOutput` must be a boolean, not string"],
  [{ era: "old" }, /`era`.*`old`, expected `legacy` or `modern`/],
];

for (const [options, message] of OPTIONS) {
  test(`a client refuses ${JSON.stringify(options)}`, async () => {
    await assert.rejects(Client.memory(makeServer(), options), refused(message));
  });
}

test("a client over HTTP refuses headers of another form", async () => {
  const url = "http://127.0.0.1:1/mcp";
  const message = "the client: `headers` must be an object or pairs of strings, not function";
  await assert.rejects(Client.connect(url, { headers: () => [] }), refused(message));
  await assert.rejects(Client.connect(url, { maxRedirects: "3" }), refused(/^`maxRedirects` must be a whole number/));
});

test("a client of a program refuses variables that are no strings", async () => {
  const message = "the client: `PORT` of `env` must be a string, not number";
  await assert.rejects(Client.spawn("true", [], { env: { PORT: 80 } }), refused(message));
});

test("headers are an object, a map, pairs or `Headers`", async (t) => {
  const server = makeServer().tool("tenant", {}, (_, ctx) => ctx.headers.get("x-tenant"));
  const pair = ["x-tenant", "7"];
  for (const headers of [Object.fromEntries([pair]), new Map([pair]), [pair], new Headers([pair])]) {
    const client = await Client.memory(server, { headers });
    t.after(() => client.close());
    const { content } = await client.callTool("tenant");
    assert.equal(content[0].text, "7");
  }
});

const UNKNOWN = "unknown option `timout`; did you mean `timeout`?";
const REQUESTS = {
  callTool: [(client, options) => client.callTool("work", {}, options), "tools/call"],
  readResource: [(client, options) => client.readResource("a://b", options), "resources/read"],
  getPrompt: [(client, options) => client.getPrompt("ask", {}, options), "prompts/get"],
  complete: [
    (client, options) => client.complete({ prompt: "ask" }, { name: "a", value: "" }, options),
    "completion/complete",
  ],
  request: [(client, options) => client.request("tools/list", {}, options), "tools/list"],
  listTools: [(client, options) => client.listTools(options), "tools/list"],
  resources: [(client, options) => client.resources(options).next(), "resources/list"],
  ping: [(client, options) => client.ping(options), "ping"],
  setLogLevel: [(client, options) => client.setLogLevel("info", options), "logging/setLevel"],
  subscribe: [(client, options) => client.subscribe("a://b", options), "resources/subscribe"],
};

for (const [name, [send, method]] of Object.entries(REQUESTS)) {
  test(`${name} refuses unknown options`, async (t) => {
    const client = await Client.memory(makeServer());
    t.after(() => client.close());
    await assert.rejects(send(client, { timout: 5 }), refused(`request \`${method}\`: ${UNKNOWN}`));
    await assert.rejects(send(client, { signal: 5 }), refused(/`signal` must be an AbortSignal, not number$/));
  });
}

test("requests refuse option values of another form before middleware sees them", async (t) => {
  const seen = [];
  const client = await Client.memory(makeServer(), {
    middleware: [
      (request, next) => {
        seen.push(request.method);
        return next();
      },
    ],
  });
  t.after(() => client.close());
  const call = (options) => client.callTool("work", {}, options);
  await assert.rejects(call({ onProgress: true }), refused(/`onProgress` must be a function, not boolean$/));
  await assert.rejects(call({ fresh: 1 }), refused(/`fresh` must be a boolean, not number$/));
  await assert.rejects(call({ meta: [] }), refused(/`meta` must be an object, not an array$/));
  await assert.rejects(call(5), refused("request `tools/call`: options must be an object, not number"));
  await assert.rejects(
    client.ping({ fresh: true }),
    refused(/unknown option `fresh`; the options are signal, timeout/),
  );
  assert.deepEqual(seen, []);
  const { content } = await call({ timeout: undefined, unknown: undefined });
  assert.equal(content[0].text, "done");
});

test("arguments in the form of other libraries are refused, with the call to write", async (t) => {
  const client = await Client.memory(new Server({ name: "test", version: "1" }));
  t.after(() => client.close());
  const argument = { name: "a", value: "" };
  for (const [call, message] of [
    [
      () => client.callTool({ name: "add", arguments: {} }),
      '`callTool`: the name of the tool must be a string, not object: call `callTool("add", { … })`',
    ],
    [() => client.callTool(), "`callTool`: the name of the tool must be a string, not undefined"],
    [
      () => client.getPrompt({ name: "greet" }),
      '`getPrompt`: the name of the prompt must be a string, not object: call `getPrompt("greet", { … })`',
    ],
    [
      () => client.readResource({ uri: "a://b" }),
      '`readResource`: the URI must be a string or a URL, not object: call `readResource("a://b")`',
    ],
    [
      () => client.subscribe({ uri: "a://b" }),
      '`subscribe`: the URI must be a string or a URL, not object: call `subscribe("a://b")`',
    ],
    [() => client.unsubscribe(5), "`unsubscribe`: the URI must be a string or a URL, not number"],
    [
      () => client.complete({ type: "ref/resource", uri: "a://{b}" }, argument),
      '`complete`: the first argument must be { template: "a://{b}" }',
    ],
    [
      () => client.complete({ type: "ref/prompt", name: "greet" }, argument),
      '`complete`: the first argument must be { prompt: "greet" }',
    ],
    [
      () => client.complete("greet", argument),
      "`complete`: the first argument must be { prompt: … } or { template: … }",
    ],
  ]) {
    await assert.rejects(call(), { name: "UsageError", message });
  }
});
