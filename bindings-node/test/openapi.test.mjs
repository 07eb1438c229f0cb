// HTTP APIs as tools and resources, with an API on this machine.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { Client, Server, UsageError } from "mcpline";

import { called } from "./peer.mjs";

const make = (name) => new Server({ name, version: "1" });

function pets(changes = {}) {
  const schema = { $ref: "pet.json" };
  return {
    openapi: "3.0.3",
    info: { title: "Pets", version: "1" },
    security: [{ login: [] }],
    components: { securitySchemes: { login: { type: "http", scheme: "basic" } } },
    paths: {
      "/pets/{id}": {
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
        get: {
          operationId: "getPet",
          summary: "Get a pet",
          tags: ["read"],
          responses: { 200: { description: "", content: { "application/json": { schema } } } },
        },
        delete: { deprecated: true, responses: { 204: { description: "" } } },
      },
    },
    ...changes,
  };
}

const externalDocuments = {
  "pet.json": { type: "object", required: ["id"], properties: { id: { type: "integer" }, name: { type: "string" } } },
};

/** An API that answers with the pet of the path. */
async function api(t) {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push([request.url, request.headers.authorization, request.headers["x-tenant"]]);
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ id: Number(request.url.split("/").at(-1)), name: "Rex" }));
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

test("a call becomes a request", async (t) => {
  const { baseUrl, seen } = await api(t);
  const server = make("pets");
  const added = server.addOpenApi(pets(), {
    baseUrl,
    headers: { "X-Tenant": "acme" },
    credentials: { login: { username: "ada", password: "s3cret" } },
    externalDocuments,
    names: { "DELETE /pets/{id}": "remove" },
    timeout: 5_000,
  });
  assert.deepEqual(added, ["getPet", "remove"]);
  const client = await connected(t, server);
  const result = await client.callTool("getPet", { id: 7 });
  assert.deepEqual(result.structuredContent, { id: 7, name: "Rex" });
  assert.deepEqual(seen, [["/v1/pets/7", "Basic YWRhOnMzY3JldA==", "acme"]]);
  const [, remove] = await client.listTools();
  assert.deepEqual(remove.annotations, { readOnlyHint: false, idempotentHint: true, destructiveHint: true });
});

test("`select` decides what an operation becomes", async (t) => {
  const { baseUrl } = await api(t);
  const server = make("pets");
  const seen = [];
  const added = server.addOpenApi(JSON.stringify(pets()), {
    baseUrl,
    externalDocuments,
    select: (operation) => {
      seen.push(operation);
      return operation.tags.includes("read") ? "resource" : undefined;
    },
  });
  assert.deepEqual(added, ["api://pets/{id}"]);
  assert.deepEqual(
    seen.map(({ id, method, name, summary, deprecated }) => [id, method, name, summary, deprecated]),
    [
      ["getPet", "GET", "getPet", "Get a pet", false],
      [null, "DELETE", "delete_pets_id", null, true],
    ],
  );
  const client = await connected(t, make("all").mount(server, { prefix: "v1" }));
  const { contents } = await client.readResource("api://v1/pets/3");
  assert.deepEqual(JSON.parse(contents[0].text), { id: 3, name: "Rex" });
});

test("an API has tools beside others, which can be removed", async (t) => {
  const { baseUrl } = await api(t);
  const server = make("pets");
  server.tool("ping", {}, () => "pong");
  server.addOpenApi(pets(), { baseUrl, externalDocuments });
  const client = await connected(t, server);
  assert.ok(server.removeTool("getPet"));
  assert.deepEqual(
    (await client.listTools()).map(({ name }) => name),
    ["ping", "delete_pets_id"],
  );
  assert.equal((await client.callTool("ping")).content[0].text, "pong");
});

test("a mounted application sends the requests of an API", async (t) => {
  const { baseUrl } = await api(t);
  const server = make("pets");
  server.addOpenApi(pets(), { baseUrl, externalDocuments });
  const fetch = (request) => server.fetch(request);
  const results = await Promise.all([1, 2, 3].map((id) => called(fetch, "getPet", { id })));
  assert.deepEqual(
    results.map(({ structuredContent }) => structuredContent.id),
    [1, 2, 3],
  );
});

test("invalid documents and options are refused", () => {
  const nothing = () => null;
  for (const [document, options, message] of [
    [{ swagger: "2.0" }, {}, /convert it to OpenAPI 3 first/],
    ["openapi: 3.0.0", {}, /parse it first/],
    [7, {}, /not number/],
    [pets(), {}, /`externalDocuments`/],
    [pets(), { baseUri: "x" }, /did you mean `baseUrl`/],
    [pets(), { select: "getPet" }, /must be a function/],
    [pets(), { select: () => "prompt" }, /not "prompt"/],
    [pets(), { select: ({ deprecated }) => deprecated }, /set `baseUrl`/],
    [pets(), { select: nothing, credentials: { other: "x" } }, /it has "login"/],
    [pets(), { select: nothing, credentials: { login: "x" } }, /a user name and a password/],
    [pets(), { select: nothing, headers: { X: "a\r\nb" } }, /HTTP does not allow/],
    [pets(), { select: nothing, headers: () => ({}) }, /`headers` must be an object or pairs of strings, not function/],
    [pets(), { select: nothing, headers: { X: 5 } }, /header `X` must be a string, not number/],
    [pets(), { select: nothing, credentials: "x" }, /`credentials` must be an object, not string/],
    [pets(), { select: nothing, timeout: -1 }, /milliseconds/],
    [pets(), { base_url: "x" }, /unknown option `base_url`; did you mean `baseUrl`/],
    [pets(), { baseUrl: 7 }, /`baseUrl` must be a string, not number/],
    [pets(), { timeout: "5" }, /`timeout` must be a number, not string/],
    [pets(), { names: { getPet: 7 } }, /`names` must be an object of strings, not object/],
    [pets(), { maxResponseBytes: 1.5 }, /`maxResponseBytes` must be a whole number of bytes, not number/],
    [pets(), { outputSchemas: "no" }, /`outputSchemas` must be a boolean, not string/],
    [pets(), { allowPrivateAddresses: 1 }, /`allowPrivateAddresses` must be a boolean, not number/],
    [pets(), { externalDocuments: [] }, /`externalDocuments` must be an object, not an array/],
    [pets(), { tlsRoots: Buffer.from("") }, /`tlsRoots` must be a string, not object/],
    [pets(), { credentials: { login: 7 } }, /the credential `login` must be a string, or an object .* not number/],
    [pets(), { credentials: { login: { username: "s3cret" } } }, /not another object$/],
  ]) {
    assert.throws(
      () => make("pets").addOpenApi(document, options),
      (error) => error instanceof UsageError && message.test(error.message),
      String(message),
    );
  }
});

test("what `select` throws reaches the caller", () => {
  const fail = ({ path }) => {
    throw new RangeError(path);
  };
  assert.throws(() => make("pets").addOpenApi(pets(), { select: fail }), /RangeError: \/pets\/\{id\}/);
});
