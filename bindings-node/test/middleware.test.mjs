// Middleware (`server.use`): what it sees, what it can change, and how requests end around it.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import {
  auditLog,
  Client,
  ClosedError,
  concurrencyLimit,
  InputRequired,
  elicitForm,
  rateLimit,
  redaction,
  RequestCancelledError,
  responseCache,
  responseSizeLimit,
  result,
  RpcError,
  Server,
  serverToolPolicy,
  text,
  ToolError,
  UrlElicitationRequiredError,
  UsageError,
} from "mcpline";
import * as z from "zod";

import { ask, call, textOf } from "./fetching.mjs";
import { Child, messageOf, posted } from "./peer.mjs";

const REVISIONS = ["2025-11-25", "2026-07-28"];

/** A server with features of each kind. Options are those of the server. */
function make(options = {}) {
  const server = new Server({ name: "layers", version: "1", ...options });
  const input = { type: "object" };
  server.tool("echo", { input }, (args) => JSON.stringify(args));
  server.tool("admin", { input, tags: ["admin"] }, (args) => JSON.stringify(args));
  server.resource("note://all", { name: "all" }, () => "all notes");
  server.resource("note://by/{id}", { name: "note", complete: { id: ["1"] } }, ({ id }) => `note ${id}`);
  server.prompt("review", { arguments: { id: { complete: ["7"] } } }, ({ id }) => `Review ${id}.`);
  server.onRequest("notes/count", {}, () => ({ count: 2 }));
  return server;
}

async function connected(t, server, options) {
  const client = await Client.memory(server, options);
  t.after(() => client.close());
  return client;
}

/** Runs a test with a client of each revision with different handling of requests. */
function testRevisions(name, body) {
  for (const revision of REVISIONS) {
    test(`${name} (${revision})`, (t) => body(t, { revisions: [revision] }));
  }
}

function settable() {
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}

/** Collects the warnings of the process while `body` runs. */
async function warnings(body) {
  const messages = [];
  const listener = (warning) => messages.push(warning.message);
  process.on("warning", listener);
  try {
    await body();
    await new Promise(setImmediate);
  } finally {
    process.off("warning", listener);
  }
  return messages;
}

testRevisions("the first middleware is the outermost", async (t, options) => {
  const seen = [];
  const record = (name) => async (request, next) => {
    seen.push(`${name} ${request.method} ${request.name}`);
    const answer = await next(request);
    seen.push(`${name} end`);
    return answer;
  };
  const server = make().use(record("a")).use(record("b"));
  const client = await connected(t, server, options);
  assert.equal(textOf(await client.callTool("echo", { x: 1 })), '{"x":1}');
  assert.deepEqual(seen, ["a tools/call echo", "b tools/call echo", "b end", "a end"]);
});

test("a middleware sees every kind of request, with its name and parameters", async (t) => {
  const seen = [];
  const server = make().use((request, next) => {
    const { _meta, ...params } = request.params;
    seen.push([request.method, request.name, params]);
    return next();
  });
  const client = await connected(t, server);
  await client.callTool("echo", { x: 1 });
  await client.listTools();
  await client.listResources();
  await client.readResource("note://by/7");
  await client.getPrompt("review", { id: "7" });
  await client.complete({ prompt: "review" }, { name: "id", value: "" });
  await client.complete({ template: "note://by/{id}" }, { name: "id", value: "" });
  await client.request("notes/count");
  assert.deepEqual(seen, [
    ["tools/call", "echo", { name: "echo", arguments: { x: 1 } }],
    ["tools/list", undefined, {}],
    ["resources/list", undefined, {}],
    ["resources/read", "note://by/7", { uri: "note://by/7" }],
    ["prompts/get", "review", { name: "review", arguments: { id: "7" } }],
    [
      "completion/complete",
      "review",
      { ref: { type: "ref/prompt", name: "review" }, argument: { name: "id", value: "" } },
    ],
    [
      "completion/complete",
      "note://by/{id}",
      { ref: { type: "ref/resource", uri: "note://by/{id}" }, argument: { name: "id", value: "" } },
    ],
    ["notes/count", undefined, {}],
  ]);
});

test("a scope selects requests by method, kind, name and tag", async (t) => {
  const seen = [];
  const server = make();
  const scopes = {
    methods: { methods: ["tools/call", "notes/count"] },
    kinds: { kinds: ["prompt"] },
    names: { names: ["echo", "note://by/{id}"] },
    tags: { methods: ["tools/call"], tags: ["admin"] },
    none: { names: [] },
  };
  for (const [name, scope] of Object.entries(scopes)) {
    server.use(scope, (request, next) => {
      seen.push(`${name} ${request.name ?? request.method}`);
      return next(request);
    });
  }
  const client = await connected(t, server);
  await client.callTool("echo");
  await client.callTool("admin");
  await client.listTools();
  await client.readResource("note://by/7");
  await client.readResource("note://all");
  await client.getPrompt("review", { id: "7" });
  await client.request("notes/count");
  assert.deepEqual(seen, [
    "methods echo",
    "names echo",
    "methods admin",
    "tags admin",
    "names note://by/7",
    "kinds review",
    "methods notes/count",
  ]);
});

test("arguments and parameters are changed by a new request", async (t) => {
  const server = make();
  server.use({ methods: ["tools/call"] }, (request, next) => {
    const changed = request.with({ arguments: { ...request.arguments, y: "\ud83d\ude00" } });
    assert.deepEqual([request.arguments, changed.arguments], [{ x: 1 }, { x: 1, y: "😀" }]);
    assert.equal(changed.name, request.name);
    return next(changed);
  });
  server.use({ methods: ["resources/read"] }, (request, next) => {
    const changed = request.with({ params: { ...request.params, uri: "note://all" } });
    assert.deepEqual([request.name, changed.name], ["note://by/7", "note://all"]);
    return next(changed);
  });
  const client = await connected(t, server);
  assert.equal(textOf(await client.callTool("echo", { x: 1 })), '{"x":1,"y":"😀"}');
  assert.equal((await client.readResource("note://by/7")).contents[0].text, "all notes");
});

test("a request cannot be changed in place", async (t) => {
  const server = make().use({ methods: ["tools/call"] }, (request, next) => {
    assert.throws(() => (request.arguments.list.push(2), undefined), TypeError);
    assert.throws(() => (request.params.name = "admin"), TypeError);
    return next(request);
  });
  const client = await connected(t, server);
  assert.equal(textOf(await client.callTool("echo", { list: [1] })), '{"list":[1]}');
});

test("a name that contains the text of a member is read as it is", async (t) => {
  const name = '","params":{"x":1}';
  const server = make().use((request, next) => {
    assert.equal(request.name, name);
    return next(request);
  });
  server.resource("note://odd", { name: "odd" }, () => "");
  const client = await connected(t, server);
  await assert.rejects(client.readResource(name), RpcError);
});

testRevisions("a middleware changes results, in place or by a copy", async (t, options) => {
  const server = make();
  server.use({ methods: ["tools/call"] }, async (request, next) => {
    const answer = await next(request);
    answer.content.push(text("in place"));
    return answer;
  });
  server.use({ methods: ["tools/call"] }, async (request, next) => ({
    ...(await next(request)),
    content: [text("copy")],
  }));
  server.use({ methods: ["tools/list"] }, async (request, next) => {
    const { tools, ...rest } = await next(request);
    return { ...rest, tools: tools.filter(({ name }) => name !== "admin") };
  });
  const client = await connected(t, server, options);
  assert.equal(textOf(await client.callTool("echo")), "copy\nin place");
  assert.deepEqual(
    (await client.listTools()).map(({ name }) => name),
    ["echo"],
  );
});

test("a result that is passed on unchanged is sent as it was", async (t) => {
  const server = make();
  // JavaScript would write this number with other digits, and a handler in JavaScript cannot return it as a number.
  const document = { openapi: "3.1.0", info: { title: "n", version: "1" }, paths: {} };
  document.paths["/n"] = { get: { operationId: "number", responses: { 200: { description: "n" } } } };
  const body = '{"n":12345678901234567890,"pair":"\\ud83d\\ude00"}';
  const api = createServer((_, response) => {
    response.setHeader("content-type", "application/json").end(body);
  }).listen(0, "127.0.0.1");
  await once(api, "listening");
  t.after(() => api.close());
  server.addOpenApi(document, { baseUrl: `http://127.0.0.1:${api.address().port}` });
  const read = async (middleware) => {
    const layered = new Server({ name: "layered", version: "1" }).mount(server);
    if (middleware !== undefined) {
      layered.use(middleware);
    }
    const response = await layered.fetch(new Request("http://localhost/mcp", posted("tools/call", { name: "number" })));
    return (await response.text()).replaceAll(/^(event|id):.*\n/gm, "");
  };
  const plain = await read();
  assert.match(plain, /12345678901234567890/);
  const looking = async (request, next) => {
    const answer = await next(request);
    assert.equal(answer.isError, undefined);
    return answer;
  };
  for (const middleware of [(request, next) => next(request), looking]) {
    assert.equal((await read(middleware)).replace(/"layered"/, ""), plain.replace(/"layered"/, ""));
  }
});

testRevisions("a middleware answers instead of the handler", async (t, options) => {
  const answers = {
    text: () => "text",
    block: async () => text("block"),
    list: () => ["a", text("b")],
    helper: () => result({ content: "helped", structuredContent: { n: 1 }, _meta: { "example.com/id": 7 } }),
    structured: () => ({ structuredContent: { n: 2 } }),
    failed: () => ({ content: [text("no")], isError: true }),
  };
  const server = make();
  server.use({ methods: ["tools/call"] }, (request) => answers[request.arguments.as]());
  server.use({ methods: ["notes/count"] }, () => ({ count: 3 }));
  const client = await connected(t, server, options);
  const read = async (as) => {
    const { content, structuredContent, isError } = await client.callTool("echo", { as });
    return [content.map(({ text }) => text), structuredContent, isError ?? false];
  };
  assert.deepEqual(await read("text"), [["text"], undefined, false]);
  assert.deepEqual(await read("block"), [["block"], undefined, false]);
  assert.deepEqual(await read("list"), [["a", "b"], undefined, false]);
  assert.deepEqual(await read("helper"), [["helped"], { n: 1 }, false]);
  assert.deepEqual(await read("structured"), [['{"n":2}'], { n: 2 }, false]);
  assert.deepEqual(await read("failed"), [["no"], undefined, true]);
  assert.equal((await client.request("notes/count")).count, 3);
});

testRevisions("a `ToolError` of a middleware is for the model", async (t, options) => {
  const server = make().use(() => {
    throw new ToolError("not now");
  });
  const client = await connected(t, server, options);
  const { content, isError } = await client.callTool("echo");
  assert.deepEqual([content[0].text, isError], ["not now", true]);
  await assert.rejects(client.readResource("note://all"), { code: -32603, rpcMessage: "not now" });
});

testRevisions("an error of the request reaches the middleware, and the client unchanged", async (t, options) => {
  const caught = [];
  const server = make().use(async (request, next) => {
    try {
      return await next(request);
    } catch (error) {
      caught.push(error);
      throw error;
    }
  });
  server.tool("rpc", {}, () => {
    throw new RpcError(-31050, "no such\u202e thing", { why: [1, null] });
  });
  const plain = await connected(t, make(), options);
  const client = await connected(t, server, options);
  await assert.rejects(client.callTool("rpc"), {
    code: -31050,
    rpcMessage: "no such\u202e thing",
    data: { why: [1, null] },
  });
  const [error] = caught;
  assert.ok(error instanceof RpcError);
  assert.deepEqual([error.code, error.rpcMessage, error.data], [-31050, "no such\u202e thing", { why: [1, null] }]);
  assert.doesNotMatch(error.message, /\u202e/);
  const missing = async (client, read) =>
    read(client).then(assert.fail, ({ code, rpcMessage, data }) => [code, rpcMessage, data]);
  for (const read of [(client) => client.readResource("note://none"), (client) => client.callTool("none")]) {
    assert.deepEqual(await missing(client, read), await missing(plain, read));
  }
  assert.equal(caught.length, 3);
});

testRevisions("other errors of a middleware are reported and masked", async (t, options) => {
  const reports = [];
  const server = make({
    onError: (error, { kind, name, ctx }) => reports.push([error.message, kind, name, ctx.revision]),
  });
  server.use(function broken({ name }) {
    throw new TypeError(`broken ${name}`);
  });
  const client = await connected(t, server, options);
  const logged = await warnings(async () => {
    await assert.rejects(client.callTool("echo"), { code: -32603, rpcMessage: "tools/call failed" });
    await assert.rejects(client.readResource("note://all"), { code: -32603, rpcMessage: "resources/read failed" });
  });
  const [revision] = options.revisions;
  assert.deepEqual(reports, [
    ["broken echo", "middleware", "broken", revision],
    ["broken note://all", "middleware", "broken", revision],
  ]);
  assert.equal(logged.filter((message) => /TypeError: broken/.test(message)).length, 2);
});

test("return values that are no results fail the request and name the mistake", async () => {
  const reports = [];
  const asking = Promise.reject(new UrlElicitationRequiredError({ message: "Sign in", url: "https://example.com" }));
  asking.catch(() => undefined);
  const values = [
    asking,
    undefined,
    { answer: 1 },
    5,
    null,
    new InputRequired({ a: elicitForm("?") }),
    5,
    ["x"],
    undefined,
  ];
  const server = make({ onError: (error) => reports.push(error) });
  server.use(() => values.shift());
  for (let times = 0; times < 6; times++) {
    await assert.rejects(call(server, "echo"), { code: -32603 });
  }
  for (let times = 0; times < 3; times++) {
    await assert.rejects(ask(server, "tools/list"), { code: -32603 });
  }
  assert.ok(reports.every((error) => error instanceof UsageError));
  const rest = "for tools/call: return the result of `next`, text, content blocks or `result({ … })`";
  assert.deepEqual(
    reports.map(({ message }) => message),
    [
      "a middleware cannot throw `UrlElicitationRequiredError`: only handlers can",
      "a middleware returned undefined for tools/call: return the result of `next`, as in `return next(request)`",
      `a middleware returned an object that is not a result ${rest}`,
      `a middleware returned number ${rest}`,
      `a middleware returned null ${rest}`,
      "a middleware cannot return `InputRequired`: only handlers can",
      "a middleware must return the result of tools/list, an object, not number",
      "a middleware must return the result of tools/list, an object, not an array",
      "a middleware returned undefined for tools/list: return the result of `next`, as in `return next(request)`",
    ],
  );
});

testRevisions("a middleware tries again", async (t, options) => {
  let runs = 0;
  const server = make().use({ names: ["flaky"] }, async (request, next) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await next(request.with({ arguments: { attempt } }));
      } catch (error) {
        if (attempt === 3) {
          throw error;
        }
      }
    }
  });
  server.tool("flaky", { input: { type: "object" } }, ({ attempt }) => {
    runs++;
    if (attempt < 3) {
      throw new RpcError(-31050, "busy");
    }
    return `attempt ${attempt}`;
  });
  const client = await connected(t, server, options);
  assert.equal(textOf(await client.callTool("flaky")), "attempt 3");
  assert.equal(runs, 3);
});

testRevisions("the client cancels: `signal` is aborted and `next` rejects", async (t, options) => {
  const started = settable();
  const ended = settable();
  const reports = [];
  const server = make({ onError: (error) => reports.push(error) }).use(async (request, next) => {
    const { signal } = request.context;
    try {
      return await next(request);
    } catch (error) {
      ended.resolve([error, signal.aborted, request.context.cancelled]);
      throw error;
    }
  });
  const aborted = settable();
  server.tool("waits", {}, async (_, ctx) => {
    ctx.signal.addEventListener("abort", () => aborted.resolve());
    started.resolve();
    await aborted.promise;
    return "late";
  });
  const client = await connected(t, server, options);
  const giveUp = new AbortController();
  const called = client.callTool("waits", {}, { signal: giveUp.signal });
  await started.promise;
  giveUp.abort();
  await assert.rejects(called);
  await aborted.promise;
  const [error, ...flags] = await ended.promise;
  assert.ok(error instanceof RequestCancelledError, String(error));
  assert.deepEqual(flags, [true, true]);
  await new Promise(setImmediate);
  assert.deepEqual(reports, []);
});

test("a middleware that answers first cancels the handler, and its `next` rejects", async (t) => {
  const aborted = settable();
  const rejected = settable();
  const server = make().use({ names: ["waits"] }, (request, next) => {
    const passed = next(request);
    passed.catch(rejected.resolve);
    return Promise.race([passed, started.promise.then(() => "too late")]);
  });
  const started = settable();
  server.tool("waits", {}, async (_, ctx) => {
    ctx.signal.addEventListener("abort", () => aborted.resolve());
    started.resolve();
    await aborted.promise;
    return "";
  });
  const client = await connected(t, server);
  assert.equal(textOf(await client.callTool("waits")), "too late");
  await aborted.promise;
  assert.ok((await rejected.promise) instanceof Error);
});

test("`next` that is not awaited does not end the process, and fails later", async (t) => {
  const kept = [];
  const server = make().use((request, next) => {
    kept.push(() => next(request));
    void next(request);
    return "done";
  });
  const client = await connected(t, server);
  assert.equal(textOf(await client.callTool("echo")), "done");
  await assert.rejects(kept[0](), ClosedError);
});

test("`next` takes only the request or a changed one", async (t) => {
  const errors = [];
  let other;
  const server = make().use(async (request, next) => {
    other ??= request;
    for (const passed of [{ ...request }, new Error("down"), null, other]) {
      if (passed !== request) {
        await next(passed).catch((error) => errors.push(error.message));
      }
    }
    return next(request);
  });
  const client = await connected(t, server);
  await client.callTool("echo");
  await client.callTool("echo");
  const message = "`next` takes the request, or one that `request.with` returned";
  const first = [message, `${message}: throw an error instead of passing it`, message];
  assert.deepEqual(errors, [...first, ...first, message]);
});

test("`with` refuses what is not an object", async (t) => {
  const errors = [];
  const server = make().use((request, next) => {
    for (const changes of [{ args: {} }, { arguments: [] }, { params: null }, undefined]) {
      try {
        request.with(changes);
      } catch (error) {
        errors.push(`${error.name}: ${error.message}`);
      }
    }
    return next(request);
  });
  const client = await connected(t, server);
  await client.callTool("echo");
  assert.deepEqual(errors, [
    "UsageError: `with` of a request: unknown option `args`; did you mean `arguments`?",
    "UsageError: `with` of a request: `arguments` must be an object, not an array",
    "UsageError: `with` of a request: `params` must be an object, not null",
    "UsageError: `with` of a request: options must be an object, not undefined",
  ]);
});

testRevisions("the context is that of the call", async (t, options) => {
  const server = make({ state: { salt: 1 }, createContext: () => ({ user: "ada" }) });
  const seen = [];
  server.use({ methods: ["tools/call"] }, (request, next) => {
    const { revision, client, context, state, server: own, meta } = request.context;
    seen.push([revision, client.name, context, state, own === server, typeof meta]);
    request.context.info("called");
    request.context.progress(1, 2);
    return next(request);
  });
  const logs = [];
  const client = await connected(t, server, {
    ...options,
    name: "host",
    version: "1",
    onLog: ({ data }) => logs.push(data),
  });
  const progress = [];
  await client.callTool("echo", {}, { onProgress: ({ progress: value }) => progress.push(value) });
  const name = seen[0][1];
  assert.equal(typeof name, "string");
  assert.deepEqual(seen, [[options.revisions[0], name, { user: "ada" }, { salt: 1 }, true, "object"]]);
  assert.deepEqual(progress, [1]);
});

testRevisions("a tool under middleware asks the user", async (t, options) => {
  const methods = [];
  const server = make().use(async (request, next) => {
    const answer = await next(request);
    methods.push([request.method, answer.resultType]);
    return answer;
  });
  server.tool("greet", {}, async (_, ctx) => {
    const { content } = await ctx.elicit("Who?", z.object({ name: z.string() }));
    return `Hello, ${content.name}!`;
  });
  const elicit = () => ({ action: "accept", content: { name: "Ada" } });
  const client = await connected(t, server, { ...options, elicit });
  assert.equal(textOf(await client.callTool("greet")), "Hello, Ada!");
  const rounds = { "2025-11-25": [undefined], "2026-07-28": ["input_required", "complete"] };
  assert.deepEqual(
    methods,
    rounds[options.revisions[0]].map((type) => ["tools/call", type]),
  );
});

test("a middleware asks the user before 2026-07-28", async (t) => {
  const asked = [];
  const server = make().use({ methods: ["tools/call"] }, async (request, next) => {
    const answer = await request.context.elicit("Sure?").catch((error) => error);
    asked.push(answer instanceof Error ? answer.constructor : answer.action);
    return next(request);
  });
  for (const revision of REVISIONS) {
    const client = await connected(t, server, { revisions: [revision], elicit: () => "decline" });
    assert.equal(textOf(await client.callTool("echo")), "{}");
  }
  assert.deepEqual(asked, ["decline", UsageError]);
});

test("middleware of a mounted server sees its features, by their names there", async (t) => {
  const seen = [];
  const record = (name) => (request, next) => {
    seen.push(`${name} ${request.name ?? request.method}`);
    return next(request);
  };
  const inner = make().use(record("inner"));
  const server = new Server({ name: "outer", version: "1" }).use(record("outer")).mount(inner, { prefix: "work" });
  const client = await connected(t, server);
  await client.callTool("work_echo");
  await client.readResource("note://work/by/7");
  await client.listTools();
  await client.request("notes/count");
  assert.deepEqual(seen, [
    "outer work_echo",
    "inner echo",
    "outer note://work/by/7",
    "inner note://by/7",
    "outer tools/list",
    "outer notes/count",
    "inner notes/count",
  ]);
});

test("middleware of a mounted server changes arguments but not the target", async (t) => {
  const inner = make().use({ methods: ["tools/call"] }, (request, next) => {
    const { to, ...rest } = request.arguments;
    return to === undefined
      ? next(request.with({ arguments: { ...rest, by: "inner" } }))
      : next(request.with({ params: { ...request.params, name: to } }));
  });
  const client = await connected(t, new Server({ name: "o", version: "1" }).mount(inner, { prefix: "work" }));
  assert.equal(textOf(await client.callTool("work_echo", { x: 1 })), '{"x":1,"by":"inner"}');
  await assert.rejects(client.callTool("work_echo", { to: "work_admin" }), { code: -32603 });
});

const storage = new AsyncLocalStorage();

/** A server with two middlewares that set the store, and tools that return it. */
function stored() {
  const server = make();
  const store = () => String(storage.getStore());
  server.use(async (request, next) => {
    const { user = "none" } = request.arguments;
    const answer = await storage.run(user, () => next(request));
    assert.notEqual(storage.getStore(), user);
    return answer;
  });
  server.use((request, next) => {
    const outer = store();
    return storage.run(`${outer} inner`, () => next());
  });
  const input = { type: "object" };
  server.tool("now", { input }, store);
  server.tool("later", { input }, async () => {
    await new Promise(setImmediate);
    return store();
  });
  return server;
}

testRevisions("values of AsyncLocalStorage reach the handler", async (t, options) => {
  const server = stored();
  const clients = [await connected(t, server, options), await connected(t, server, options)];
  for (const tool of ["now", "later"]) {
    // The requests of both clients have the same ids.
    const calls = ["ada", "ben"].map((user, index) => clients[index].callTool(tool, { user }));
    assert.deepEqual((await Promise.all(calls)).map(textOf), ["ada inner", "ben inner"]);
  }
});

test("values of AsyncLocalStorage reach the handler over fetch and stdio", async () => {
  const server = stored();
  const users = ["ada", "ben", "cyd"];
  for (const tool of ["now", "later"]) {
    const results = await Promise.all(users.map((user) => call(server, tool, { user })));
    assert.deepEqual(
      results.map(textOf),
      users.map((user) => `${user} inner`),
    );
  }
  const child = new Child(`
    import { AsyncLocalStorage } from "node:async_hooks";
    import { Server } from "mcpline";
    const storage = new AsyncLocalStorage();
    const server = new Server({ name: "contexts", version: "1" });
    server.use((request, next) => storage.run(request.name ?? request.method, () => next(request)));
    server.tool("now", {}, () => String(storage.getStore()));
    await server.run();
  `);
  await child.open();
  child.call(1, "now");
  assert.equal(textOf((await child.receive()).result), "now");
  child.process.stdin.end();
  await child.ended;
});

test("after a retry, the handler has the values of that retry", async (t) => {
  const seen = [];
  const server = make().use({ names: ["flaky"] }, async (request, next) => {
    await storage.run("first", () => next(request)).catch(() => undefined);
    return storage.run("second", () => next(request));
  });
  server.tool("flaky", {}, () => {
    seen.push(storage.getStore());
    if (seen.length === 1) {
      throw new RpcError(-31050, "busy");
    }
    return "";
  });
  const client = await connected(t, server);
  await client.callTool("flaky");
  assert.deepEqual(seen, ["first", "second"]);
});

test("a request that is passed on several times at once has the values of each", async (t) => {
  const seen = [];
  const server = make();
  server.use({ names: ["store"] }, async (request, next) => {
    const runs = ["a", "b", "c"].map((value) => storage.run(value, () => next(request.with({ arguments: { value } }))));
    return (await Promise.all(runs))[0];
  });
  server.use({ names: ["store"] }, (request, next) => storage.run(`${storage.getStore()}2`, () => next(request)));
  server.tool("store", { input: { type: "object" } }, ({ value }) => {
    seen.push([value, storage.getStore()]);
    return "";
  });
  const client = await connected(t, server);
  await client.callTool("store");
  assert.deepEqual(seen, [
    ["a", "a2"],
    ["b", "b2"],
    ["c", "c2"],
  ]);
});

test("the HTTP request of a mounted server is in the context of a middleware", async () => {
  const server = make().use((request, next) => {
    assert.equal(request.context.headers.get("x-user"), "ada");
    assert.ok(request.context.request instanceof Request);
    return next(request);
  });
  const init = posted("tools/call", { name: "echo", arguments: { x: 1 } });
  const request = new Request("http://localhost/mcp", { ...init, headers: { ...init.headers, "x-user": "ada" } });
  assert.equal(textOf((await messageOf(await server.fetch(request))).result), '{"x":1}');
});

test("a middleware that is added later applies to connected clients", async (t) => {
  const server = make();
  const client = await connected(t, server);
  assert.equal(textOf(await client.callTool("echo")), "{}");
  server.use({ names: ["echo"] }, () => "replaced");
  assert.equal(textOf(await client.callTool("echo")), "replaced");
});

test("invalid registrations are refused with a suggestion", () => {
  const server = make();
  const pass = (request, next) => next(request);
  const refused = (message, ...given) => assert.throws(() => server.use(...given), { name: "UsageError", message });
  refused("the scope of a middleware: unknown option `tools`; did you mean `names`?", { tools: ["echo"] }, pass);
  refused("the scope of a middleware: unknown option `method`; did you mean `methods`?", { method: "x" }, pass);
  refused("`methods` of the scope of a middleware must be an array of strings", { methods: "tools/call" }, pass);
  refused("the scope of a middleware: options must be an object, not null", null, pass);
  refused('`use`: the scope must be an object, such as { methods: ["tools/call"] }, not string', "tools/call", pass);
  refused("`use`: the middleware must be a function, not undefined");
  refused("`use`: the middleware must be a function, not object: pass it after the scope", { methods: ["tools/call"] });
  const several = "`use` takes one middleware, after its scope if it has one: call it for each middleware";
  refused(several, pass, pass);
  refused(several, {}, pass, pass);
  refused('unknown kind of feature "tools"', { kinds: ["tools"] }, pass);
  refused(/"initialize".*middleware sees lists/, { methods: ["initialize"] }, pass);
  for (let count = 0; count < 64; count++) {
    server.use(pass);
  }
  refused("a server has 64 middlewares at most", pass);
});

// The middleware that the library provides

/** A server with tools that count their runs. */
function counting() {
  const runs = { count: 0, other: 0 };
  const server = new Server({ name: "counting", version: "1" });
  for (const name of Object.keys(runs)) {
    server.tool(name, { input: { type: "object" }, tags: [name] }, () => `run ${++runs[name]}`);
  }
  return { server, runs };
}

testRevisions("a rate limit refuses further calls, and says when to try again", async (t, options) => {
  const { server, runs } = counting();
  // Without shared state, a limit with a name counts in its process.
  const limit = rateLimit({ requests: 1, period: 3_600_000, per: ["client"], shared: "calls" });
  server.use({ methods: ["tools/call"] }, limit);
  const client = await connected(t, server, options);
  assert.equal(textOf(await client.callTool("count")), "run 1");
  await assert.rejects(client.callTool("other"), (error) => {
    assert.ok(error instanceof RpcError);
    assert.equal(error.code, -31000);
    assert.deepEqual(error.data, { retryAfter: 3600 });
    return true;
  });
  assert.deepEqual(runs, { count: 1, other: 0 });
  // Each client has a limit of its own, and lists are not in the scope.
  assert.equal((await client.listTools()).length, 2);
  const another = await connected(t, server, options);
  assert.equal(textOf(await another.callTool("count")), "run 2");
});

test("a rate limit allows as many requests at once as its burst, counted by target", async (t) => {
  const { server, runs } = counting();
  server.use({ kinds: ["tool"] }, rateLimit({ requests: 1, period: 3_600_000, burst: 2, per: ["target"] }));
  const client = await connected(t, server);
  for (const name of ["count", "count", "other", "other"]) {
    await client.callTool(name);
  }
  await assert.rejects(client.callTool("count"), { code: -31000 });
  await assert.rejects(client.callTool("other"), { code: -31000 });
  assert.deepEqual(runs, { count: 2, other: 2 });
});

test("a scope selects the requests of a middleware of the library", async (t) => {
  const { server } = counting();
  const limit = rateLimit({ requests: 1, period: 3_600_000 });
  server.use({ names: ["count"] }, limit).use({ tags: ["other"] }, limit);
  const client = await connected(t, server);
  // Each `use` counts on its own.
  assert.equal(textOf(await client.callTool("count")), "run 1");
  assert.equal(textOf(await client.callTool("other")), "run 1");
  await assert.rejects(client.callTool("count"), { code: -31000 });
  await assert.rejects(client.callTool("other"), { code: -31000 });
});

test("a middleware of the library without a scope sees every request", async (t) => {
  const { server } = counting();
  server.use(rateLimit({ requests: 1, period: 3_600_000 }));
  const client = await connected(t, server);
  await client.listTools();
  await assert.rejects(client.callTool("count"), { code: -31000 });
});

test("functions and middleware of the library run in the order of their registration", async (t) => {
  const { server, runs } = counting();
  const seen = [];
  const record = (name) => (request, next) => {
    seen.push(name);
    return next();
  };
  server.use(record("outer"));
  server.use({ methods: ["tools/call"] }, rateLimit({ requests: 1, period: 3_600_000 }));
  server.use(record("inner"));
  const client = await connected(t, server);
  await client.callTool("count");
  await assert.rejects(client.callTool("count"), { code: -31000 });
  assert.deepEqual(seen, ["outer", "inner", "outer"]);
  assert.equal(runs.count, 1);
});

test("a concurrency limit refuses calls that have no place, and lets others wait", async (t) => {
  const server = new Server({ name: "slow", version: "1" });
  const [begun, proceed] = [settable(), settable()];
  let runs = 0;
  server.tool("wait", { input: { type: "object" } }, async () => {
    const run = ++runs;
    begun.resolve();
    await proceed.promise;
    return `run ${run}`;
  });
  server.use({ names: ["wait"] }, concurrencyLimit({ maxRunning: 1, maxWaiting: 1, per: ["target"] }));
  const client = await connected(t, server);
  const first = client.callTool("wait");
  await begun.promise;
  // Of the two, which arrive in either order, one waits.
  const others = [client.callTool("wait"), client.callTool("wait")];
  await assert.rejects(Promise.race(others), (error) => {
    assert.ok(error instanceof RpcError);
    assert.equal(error.code, -31000);
    assert.equal(error.data, undefined);
    return true;
  });
  assert.equal(runs, 1);
  proceed.resolve();
  assert.equal(textOf(await first), "run 1");
  const ends = await Promise.allSettled(others);
  assert.deepEqual(ends.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  assert.equal(textOf(ends.find(({ status }) => status === "fulfilled").value), "run 2");
});

test("a concurrency limit has no queue unless it is given one", async (t) => {
  const server = new Server({ name: "slow", version: "1" });
  const [begun, proceed] = [settable(), settable()];
  server.tool("wait", { input: { type: "object" } }, async () => {
    begun.resolve();
    await proceed.promise;
    return "done";
  });
  server.use({ methods: ["tools/call"] }, concurrencyLimit({ maxRunning: 1 }));
  const client = await connected(t, server);
  const first = client.callTool("wait");
  await begun.promise;
  await assert.rejects(client.callTool("wait"), { code: -31000 });
  proceed.resolve();
  assert.equal(textOf(await first), "done");
});

testRevisions("a cache answers equal calls of the tools that it is given", async (t, options) => {
  const { server, runs } = counting();
  server.use(responseCache({ ttl: 3_600_000, tools: ["count"], maxBytes: 10_000 }));
  const client = await connected(t, server, options);
  assert.equal(textOf(await client.callTool("count", { a: 1 })), "run 1");
  assert.equal(textOf(await client.callTool("count", { a: 1 })), "run 1");
  assert.equal(textOf(await client.callTool("count", { a: 2 })), "run 2");
  assert.equal(textOf(await client.callTool("other")), "run 1");
  assert.equal(textOf(await client.callTool("other")), "run 2");
  assert.deepEqual(runs, { count: 2, other: 2 });
});

test("a cache without room keeps nothing", async (t) => {
  const { server, runs } = counting();
  server.use(responseCache({ ttl: Infinity, tools: ["count"], maxBytes: 1 }));
  const client = await connected(t, server);
  await client.callTool("count");
  await client.callTool("count");
  assert.equal(runs.count, 2);
});

testRevisions("a size limit cuts the longest text of a tool", async (t, options) => {
  const server = new Server({ name: "long", version: "1" });
  server.tool("text", { input: { type: "object" } }, () => "a".repeat(10_000));
  server.use(responseSizeLimit({ maxBytes: 1_000 }));
  const client = await connected(t, server, options);
  const answer = textOf(await client.callTool("text"));
  assert.match(answer, /^a{500,}\n\[\d+ of 10000 bytes are left out\]$/);
  assert.ok(answer.length < 1_000, `${answer.length}`);
});

testRevisions("a client reads in pages what was cut", async (t, options) => {
  const server = new Server({ name: "long", version: "1" });
  server.tool("text", { input: { type: "object" } }, () => "a".repeat(3_000));
  server.use(responseSizeLimit({ maxBytes: 1_000, pages: true, maxKeptBytes: 100_000, lifetime: 60_000 }));
  const client = await connected(t, server, options);
  const answer = textOf(await client.callTool("text"));
  const [, last] = answer.match(/result:\/\/[^ \]]+/g);
  const [, start, count] = /^(.*\/)(\d+)$/.exec(last);
  let text = "";
  for (let page = 1; page <= Number(count); page += 1) {
    text += (await client.readResource(`${start}${page}`)).contents[0].text;
  }
  assert.equal(text, "a".repeat(3_000));
});

test("a size limit comes before a redaction", () => {
  const server = new Server({ name: "ordered", version: "1" });
  server.use(responseSizeLimit({ maxBytes: 1_000 }));
  server.use(redaction({ members: ["iban"] }));
  assert.throws(() => server.use(responseSizeLimit({ maxBytes: 2_000 })), /add it first/);
});

test("a result that cannot be cut becomes an error for the model", async (t) => {
  const server = new Server({ name: "long", version: "1" });
  const output = { type: "object", properties: { text: { type: "string" } } };
  server.tool("data", { input: { type: "object" }, output }, () => ({ text: "a".repeat(10_000) }));
  server.use(responseSizeLimit({ maxBytes: 1_000 }));
  const client = await connected(t, server);
  const answer = await client.callTool("data");
  assert.equal(answer.isError, true);
  assert.match(textOf(answer), /more than the limit of 1000\b/);
});

testRevisions("a tool policy hides tools and asks the user", async (t, options) => {
  const server = new Server({ name: "mail", version: "1" });
  const runs = [];
  server.tool("send", { input: { type: "object" } }, ({ to }) => {
    runs.push(to);
    return `sent to ${to}`;
  });
  server.tool("delete_all", { input: { type: "object" } }, () => assert.fail("it is denied"));
  server.use(serverToolPolicy({ denied: ["delete_*"], approval: ["send"] }));
  const asked = [];
  const elicit = ({ message }) => {
    asked.push(message);
    return { action: message.includes("ann") ? "accept" : "decline" };
  };
  const client = await connected(t, server, { ...options, elicit });
  assert.deepEqual(
    (await client.listTools()).map((tool) => tool.name),
    ["send"],
  );
  await assert.rejects(client.callTool("delete_all"), /Unknown tool: delete_all/);
  assert.equal(textOf(await client.callTool("send", { to: "ann" })), "sent to ann");
  const refused = await client.callTool("send", { to: "bob" });
  assert.equal(refused.isError, true);
  assert.match(textOf(refused), /did not allow the call of the tool send/);
  assert.equal(asked[0], 'Allow the call of the tool send with these arguments? {"to":"ann"}');
  assert.deepEqual(runs, ["ann"]);
});

test("callers with exempt scopes have every tool", async (t) => {
  const server = make();
  server.use(serverToolPolicy({ allowed: [], exemptScopes: ["admin"] }));
  // The user who runs the server.
  const client = await connected(t, server);
  assert.equal((await client.callTool("echo")).isError, undefined);
  assert.throws(() => server.use(serverToolPolicy({ exemptScopes: [] })), /every caller would be exempt/);
  assert.throws(() => serverToolPolicy({ denied: "delete_*" }), UsageError);
  assert.throws(() => serverToolPolicy({ pin: true }), UsageError);
});

testRevisions("an audit log records calls in files that it rotates", async (t, options) => {
  const folder = mkdtempSync(join(tmpdir(), "mcpline-audit-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const server = make();
  const log = { path: join(folder, "audit.jsonl"), maxBytes: 600, maxFiles: 9, arguments: true, redact: ["A"] };
  server.use({ methods: ["tools/call"] }, auditLog({ ...log, results: true, required: true }));
  const client = await connected(t, server, options);
  for (let call = 0; call < 3; call++) {
    await client.callTool("echo", { a: [1], pin: 2 });
  }
  await assert.rejects(client.callTool("unknown"));
  const files = readdirSync(folder).sort().reverse();
  assert.ok(files.includes("audit.jsonl.1"), files);
  const records = files
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .flatMap((text) => text.trimEnd().split("\n"))
    .map((line) => JSON.parse(line));
  assert.equal(records.length, 4);
  assert.deepEqual(records.map(({ outcome }) => outcome).sort(), ["error", "ok", "ok", "ok"]);
  const first = records.find(({ outcome }) => outcome === "ok");
  assert.equal(first.name, "echo");
  assert.deepEqual(first.arguments, { a: "[redacted]", pin: "[redacted]" });
  assert.deepEqual(JSON.parse(first.result.content[0].text), { a: "[redacted]", pin: "[redacted]" });
});

const noFullDevice = existsSync("/dev/full") ? false : "needs a device that is always full, which Linux has";

test("a call fails if its audit log cannot be written and is required", { skip: noFullDevice }, async (t) => {
  for (const required of [true, false]) {
    const { server } = counting();
    server.use(auditLog({ path: "/dev/full", required }));
    const client = await connected(t, server);
    if (required) {
      await assert.rejects(client.callTool("count"), { code: -32603, message: /the audit log cannot be written/ });
    } else {
      assert.equal(textOf(await client.callTool("count")), "run 1");
    }
  }
});

testRevisions("a redaction replaces members and what patterns match", async (t, options) => {
  const server = make();
  server.use(redaction({ members: ["IBAN"], patterns: ["[0-9]{4}"], replacement: "#", arguments: true }));
  const client = await connected(t, server, options);
  const answer = await client.callTool("echo", { iban: 5, text: "born in 2001" });
  assert.deepEqual(JSON.parse(textOf(answer)), { iban: "#", text: "born in #" });
});

test("a middleware of the library is an object without visible members", () => {
  const limit = rateLimit({ requests: 1 });
  assert.equal(typeof limit, "object");
  assert.deepEqual(Object.keys(limit), []);
});

test("invalid options of middleware of the library are refused", () => {
  const refused = (make, message) => assert.throws(make, { name: "UsageError", message });
  refused(() => rateLimit(), "`rateLimit`: options must be an object, not undefined");
  refused(() => rateLimit({}), "`rateLimit`: `requests` is missing");
  refused(() => concurrencyLimit({ maxWaiting: 1 }), "`concurrencyLimit`: `maxRunning` is missing");
  refused(() => responseCache({ tools: [] }), "`responseCache`: `ttl` is missing");
  refused(() => responseSizeLimit({ maxBytes: undefined }), "`responseSizeLimit`: `maxBytes` is missing");
  refused(() => rateLimit({ request: 1 }), "`rateLimit`: unknown option `request`; did you mean `requests`?");
  refused(
    () => concurrencyLimit({ max_running: 1 }),
    "`concurrencyLimit`: unknown option `max_running`; did you mean `maxRunning`?",
  );
  refused(
    () => responseSizeLimit({ maxByte: 1 }),
    "`responseSizeLimit`: unknown option `maxByte`; did you mean `maxBytes`?",
  );
  refused(() => rateLimit({ requests: "60" }), "`requests` must be a whole number, not string");
  refused(() => rateLimit({ requests: 1.5 }), "`requests` must be a whole number, not 1.5");
  refused(() => rateLimit({ requests: 1, burst: -1 }), "`burst` must be a whole number, not -1");
  for (const period of [-1, NaN]) {
    refused(() => rateLimit({ requests: 1, period }), `\`period\` must be a time in milliseconds, not ${period}`);
  }
  refused(() => responseCache({ ttl: "1" }), "`ttl` must be a time in milliseconds, not string");
  refused(() => rateLimit({ requests: 1, per: "client" }), "`per` of `rateLimit` must be an array of strings");
  refused(() => responseCache({ ttl: 1, tools: [1] }), "`tools` of `responseCache` must be an array of strings");

  refused(() => auditLog({}), "`auditLog`: `path` is missing");
  refused(() => auditLog({ path: 1 }), "`path` must be a string, not 1");
  refused(() => auditLog({ path: "a", results: "yes" }), "`results` must be a boolean, not string");
  refused(() => redaction({ patterns: [/a/] }), "`patterns` of `redaction` must be an array of strings");

  // The core checks what values mean.
  const server = make();
  const refusedByCore = (message, ...given) => refused(() => server.use(...given), message);
  refusedByCore("`requests` is 0", rateLimit({ requests: 0 }));
  refusedByCore("`burst` is 0", rateLimit({ requests: 1, burst: 0 }));
  refusedByCore("`shared` is empty: name the limit", rateLimit({ requests: 1, shared: "" }));
  refusedByCore(/^`per`: unknown key "address": /, rateLimit({ requests: 1, per: ["address"] }));
  refusedByCore("`maxRunning` is 0", concurrencyLimit({ maxRunning: 0 }));
  refusedByCore(/^cannot open the audit log /, auditLog({ path: tmpdir() }));
  refusedByCore("a redaction needs `members` or `patterns`", redaction({}));
  refusedByCore(/^the pattern "\(a" is invalid: /, redaction({ patterns: ["(a"] }));
  refusedByCore("`maxBytes` is 0", responseSizeLimit({ maxBytes: 0 }));
  refusedByCore("`lifetime` has no effect without `pages`", responseSizeLimit({ maxBytes: 1, lifetime: 1 }));
  refusedByCore(/"ping".*middleware sees lists/, { methods: ["ping"] }, rateLimit({ requests: 1 }));
  refusedByCore("the scope of a middleware: unknown option `tools`; did you mean `names`?", { tools: ["a"] }, limit1());
  const several = "`use` takes one middleware, after its scope if it has one: call it for each middleware";
  refusedByCore(several, limit1(), limit1());
  for (let count = 0; count < 64; count++) {
    server.use(limit1());
  }
  refusedByCore("a server has 64 middlewares at most", limit1());
});

function limit1() {
  return rateLimit({ requests: 1 });
}
