// HTTP clients and functions for credentials that a program gives to `addOpenApi`.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { Client, Server, ToolError, UsageError } from "mcpline";

import { called } from "./peer.mjs";

const make = (options = {}) => new Server({ name: "pets", version: "1", ...options });
const baseUrl = "https://api.test/v1";

/** A document with a public operation, and two that need a token. */
function pets(changes = {}) {
  const responses = { 200: { description: "" } };
  const schema = { type: "object", properties: { name: { type: "string" } } };
  return {
    openapi: "3.1.0",
    info: { title: "Pets", version: "1" },
    security: [{ token: [] }],
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        login: { type: "http", scheme: "basic" },
        mutual: { type: "mutualTLS" },
      },
    },
    paths: {
      "/pets/{id}": {
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
        get: { operationId: "getPet", responses },
        put: { operationId: "putPet", requestBody: { content: { "application/json": { schema } } }, responses },
      },
      "/health": { get: { operationId: "health", security: [], responses } },
    },
    ...changes,
  };
}

/** An API that answers as a function says, or with what it received. */
async function api(t, answer = () => false) {
  const seen = [];
  const server = createServer(async (request, response) => {
    const received = { method: request.method, path: request.url, headers: request.headers, body: "" };
    for await (const piece of request) {
      received.body += piece;
    }
    seen.push(received);
    if (answer(received, response) === false) {
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify(received));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${server.address().port}/v1`, seen };
}

async function connected(t, server) {
  const client = await Client.memory(server);
  t.after(() => client.close());
  return client;
}

const echo = async (request) =>
  Response.json({ url: request.url, authorization: request.headers.get("authorization") });

const textOf = ({ content }) => content[0].text;

test("`fetch` sends the requests", async (t) => {
  const { baseUrl } = await api(t);
  const server = make();
  server.addOpenApi(pets(), { baseUrl, fetch, headers: { "X-Trace": "1" }, credentials: { token: "s3cret" } });
  const client = await connected(t, server);
  const { structuredContent: got } = await client.callTool("getPet", { id: 7 });
  assert.equal(got.path, "/v1/pets/7");
  assert.equal(got.headers["x-trace"], "1");
  assert.equal(got.headers.authorization, "Bearer s3cret");
  const { structuredContent: put } = await client.callTool("putPet", { id: 7, name: "Rex" });
  assert.deepEqual([put.method, put.body], ["PUT", '{"name":"Rex"}']);
  assert.equal(put.headers["content-type"], "application/json");
});

test("decoded bodies, redirects and errors arrive as `fetch` returns them", async (t) => {
  const { baseUrl } = await api(t, ({ path }, response) => {
    if (path.endsWith("/1")) {
      response.writeHead(200, { "Content-Type": "application/json", "Content-Encoding": "gzip" });
      response.end(gzipSync('{"name":"Rex"}'));
    } else if (path.endsWith("/2")) {
      response.writeHead(302, { Location: "/elsewhere?secret=1" });
      response.end();
    } else {
      response.writeHead(404, { "Content-Type": "text/plain" });
      response.end("x".repeat(100_000));
    }
  });
  const server = make();
  server.addOpenApi(pets(), { baseUrl, fetch });
  const client = await connected(t, server);
  assert.deepEqual((await client.callTool("getPet", { id: 1 })).structuredContent, { name: "Rex" });
  const redirected = await client.callTool("getPet", { id: 2 });
  assert.ok(redirected.isError);
  assert.match(textOf(redirected), /302.*\/elsewhere/s);
  assert.doesNotMatch(textOf(redirected), /secret/);
  const failed = await client.callTool("getPet", { id: 3 });
  assert.match(textOf(failed), /^HTTP 404/);
  assert.ok(textOf(failed).length < 5_000);
});

test("a body is read no further than its limit", async (t) => {
  const cancelled = [];
  const endless = (status) => {
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(1_000).fill(120)),
      cancel: () => cancelled.push(status),
    });
    return new Response(body, { status });
  };
  const server = make();
  server.addOpenApi(pets(), {
    baseUrl,
    fetch: async ({ url }) => endless(url.endsWith("/1") ? 200 : 500),
    maxResponseBytes: 10_000,
  });
  const client = await connected(t, server);
  const long = await client.callTool("getPet", { id: 1 });
  assert.match(textOf(long), /longer than 10000 bytes \(`max_response_bytes`\)/);
  const failed = await client.callTool("getPet", { id: 2 });
  assert.match(textOf(failed), /^HTTP 500/);
  assert.deepEqual(cancelled, [200, 500]);
});

test("a mount, and a mounted application, send requests with `fetch`", async () => {
  const server = make();
  server.addOpenApi(pets(), { baseUrl, fetch: echo });
  const outer = make().mount(server, { prefix: "v1" });
  const { structuredContent } = await called((request) => outer.fetch(request), "v1_getPet", { id: 3 });
  assert.equal(structuredContent.url, "https://api.test/v1/pets/3");
});

test("`fetch` runs in the asynchronous context of the request", async () => {
  const storage = new AsyncLocalStorage();
  const server = make();
  server.addOpenApi(pets(), {
    baseUrl,
    fetch: async () => new Response(storage.getStore()),
    credentials: { token: () => storage.getStore() },
  });
  const fetchServer = (request) => storage.run("of the request", () => server.fetch(request));
  assert.equal(textOf(await called(fetchServer, "getPet", { id: 3 })), "of the request");
});

for (const debug of [false, true]) {
  test(`errors of \`fetch\` are reported and not sent${debug ? ", but in debug mode" : ""}`, async (t) => {
    const reported = [];
    const onError = (error, { kind, name }) => void reported.push([kind, name, error.message]);
    const server = make({ settings: { debug }, onError });
    server.addOpenApi(pets(), {
      baseUrl,
      fetch: ({ url }) => {
        if (url.endsWith("/1")) {
          throw new RangeError("s3cret");
        }
        if (url.endsWith("/2")) {
          throw new ToolError("No pets today");
        }
        return "not a response";
      },
    });
    const client = await connected(t, server);
    const texts = [];
    for (const id of [1, 2, 3]) {
      texts.push(textOf(await client.callTool("getPet", { id })));
    }
    const message = "The API gave no response: the HTTP client failed";
    const wrong = "`fetch` must return a response, not string";
    assert.equal(texts[0], debug ? `${message}: RangeError: s3cret` : message);
    assert.equal(texts[1], "No pets today");
    assert.deepEqual(reported, [
      ["http_client", "fetch", "s3cret"],
      ["http_client", "fetch", wrong],
    ]);
  });
}

test("the signal of a request is aborted when it takes too long, and when the call is cancelled", async (t) => {
  const server = make();
  const waiting = [];
  const fetch = ({ signal }) =>
    new Promise((_, reject) => {
      waiting.shift()?.();
      signal.addEventListener("abort", () => reject(signal.reason));
      aborted.push(once(signal, "abort"));
    });
  const aborted = [];
  server.addOpenApi(pets(), { baseUrl, fetch, timeout: 50 });
  const patient = make();
  patient.addOpenApi(pets(), { baseUrl, fetch });
  const client = await connected(t, server);
  assert.match(textOf(await client.callTool("getPet", { id: 1 })), /did not answer within 0.05 s \(`timeout`\)/);
  await aborted[0];
  const other = await connected(t, patient);
  const controller = new AbortController();
  const begun = new Promise((resolve) => waiting.push(resolve));
  const calling = other.callTool("getPet", { id: 1 }, { signal: controller.signal });
  await begun;
  controller.abort();
  await assert.rejects(calling);
  await aborted[1];
});

test("the signal of a request is aborted while its body is read", async (t) => {
  const server = make();
  let begun;
  const reading = new Promise((resolve) => (begun = resolve));
  let aborted;
  let cancelled;
  const bodyCancelled = new Promise((resolve) => (cancelled = resolve));
  server.addOpenApi(pets(), {
    baseUrl,
    fetch: async ({ signal }) => {
      aborted = once(signal, "abort");
      return new Response(new ReadableStream({ pull: () => begun(), cancel: cancelled }, { highWaterMark: 0 }));
    },
  });
  const client = await connected(t, server);
  const controller = new AbortController();
  const calling = client.callTool("getPet", { id: 1 }, { signal: controller.signal });
  await reading;
  controller.abort();
  await assert.rejects(calling);
  await Promise.all([aborted, bodyCancelled]);
});

test("credentials are computed for each request that needs them", async (t) => {
  const tokens = ["a", "b"];
  const contexts = [];
  const server = make();
  server.addOpenApi(pets(), {
    baseUrl,
    fetch: echo,
    credentials: {
      token: async (ctx) => {
        contexts.push(ctx.server);
        return tokens.shift();
      },
    },
  });
  const client = await connected(t, server);
  const sent = [];
  for (const [tool, args] of [["getPet", { id: 1 }], ["health"], ["putPet", { id: 1 }]]) {
    sent.push((await client.callTool(tool, args)).structuredContent.authorization);
  }
  assert.deepEqual(sent, ["Bearer a", null, "Bearer b"]);
  assert.deepEqual(contexts, [server, server]);
});

test("the built-in client sends the credentials of functions", async (t) => {
  const { baseUrl } = await api(t);
  const server = make();
  server.addOpenApi(pets({ security: [{ token: [], login: [] }, { login: [] }] }), {
    baseUrl,
    credentials: { login: () => ({ username: "ada", password: "pw" }) },
  });
  const client = await connected(t, server);
  const { structuredContent } = await client.callTool("getPet", { id: 1 });
  assert.equal(structuredContent.headers.authorization, "Basic YWRhOnB3");
});

test("errors of functions for credentials are reported and not sent", async (t) => {
  const outcomes = [
    () => {
      throw new RangeError("s3cret");
    },
    () => Promise.reject(new ToolError("Sign in first")),
    () => 7,
    () => ({ username: "ada", password: "pw" }),
    () => "",
  ];
  const reported = [];
  const onError = (error, { kind, name }) => void reported.push([kind, name, error.message]);
  const server = make({ onError });
  let requests = 0;
  server.addOpenApi(pets(), {
    baseUrl,
    fetch: async () => {
      requests++;
      return new Response();
    },
    credentials: { token: () => outcomes.shift()() },
  });
  const client = await connected(t, server);
  const texts = [];
  for (let id = 0; id < 5; id++) {
    texts.push(textOf(await client.callTool("getPet", { id })));
  }
  const message = 'The credential "token" for the API could not be obtained';
  assert.deepEqual(texts, [message, "Sign in first", message, message, message]);
  assert.equal(requests, 0);
  assert.deepEqual(reported, [
    ["credential", "token", "s3cret"],
    [
      "credential",
      "token",
      "the credential `token` must be a string, or an object with `username` and `password`, not number",
    ],
  ]);
});

test("other values are refused", () => {
  for (const [options, message] of [
    [{ fetch: 7 }, /`fetch`: the handler must be a function, not number/],
    [{ fetch: echo, baseUrl: undefined }, /an HTTP client of your own needs `baseUrl`.*`allowPrivateAddresses`/],
    [{ fetch: echo, proxy: "direct" }, /`proxy` is an option of the built-in HTTP client/],
    [{ fetch: echo, onlyTlsRoots: true }, /`onlyTlsRoots` is an option/],
    [{ credentials: { other: () => "" } }, /no such security scheme/],
    [{ credentials: { mutual: () => "" } }, /schemes of this type are not supported/],
    [{ Fetch: echo }, /unknown option `Fetch`; did you mean `fetch`/],
  ]) {
    assert.throws(
      () => make().addOpenApi(pets(), { baseUrl, ...options }),
      (error) => error instanceof UsageError && message.test(error.message),
      String(message),
    );
  }
  const document = pets({ servers: [{ url: "http://10.0.0.1" }] });
  assert.equal(make().addOpenApi(document, { fetch: echo, allowPrivateAddresses: true }).length, 3);
});
