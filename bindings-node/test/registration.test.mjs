// Mistakes in options and handlers are refused where they are made, with a suggestion.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Extension, OAuth, Server } from "mcpline";
import Type from "typebox";
import * as z from "zod";
import * as mini from "zod/mini";
import * as z3 from "zod/v3";

const done = () => "";
const make = (options = {}) => new Server({ name: "registration", version: "1", ...options });

/** Calls that are refused, and their messages. */
const REFUSED = {
  "a misspelt option of a tool": [
    (server) => server.tool("x", { descripton: "" }, done),
    "tool `x`: unknown option `descripton`; did you mean `description`?",
  ],
  "an option in snake case": [
    (server) => server.tool("x", { run_once: true }, done),
    "tool `x`: unknown option `run_once`; did you mean `runOnce`?",
  ],
  "an option of another library": [
    (server) => server.tool("x", { inputSchema: z.object({}) }, done),
    "tool `x`: unknown option `inputSchema`; did you mean `input`?",
  ],
  "JSON Schema without `properties`": [
    (server) => server.tool("x", { input: { city: { type: "string" } } }, done),
    /the input schema of the tool x .*: "city" is not a keyword of JSON Schema; .* \{"type": "object", "properties": \{"city": …\}\}/,
  ],
  "an output schema without `properties`": [
    (server) => server.tool("x", { output: { city: { type: "string" } } }, done),
    /the output schema of the tool x .*: "city" is not a keyword of JSON Schema/,
  ],
  "the params schema of a method without `properties`": [
    (server) => server.onRequest("acme/x", { params: { city: { type: "string" } } }, done),
    /method "acme\/x": unusable params schema: "city" is not a keyword of JSON Schema/,
  ],
  "schemas of TypeBox without an object around them": [
    (server) => server.tool("x", { input: { city: Type.String() } }, done),
    /"city" is not a keyword of JSON Schema/,
  ],
  "a misspelt keyword of JSON Schema": [
    (server) => server.tool("x", { input: { type: "object", propertes: { city: { type: "string" } } } }, done),
    /"propertes" is not a keyword of JSON Schema; did you mean "properties"\?/,
  ],
  "names of types as a schema": [
    (server) => server.tool("x", { input: { city: "string" } }, done),
    /"city" is not a keyword of JSON Schema/,
  ],
  "a constructor as a schema": [
    (server) => server.tool("x", { input: String }, done),
    /^tool `x`: `input` must be a schema, such as \{ city: z\.string\(\) \} or .*, not function$/,
  ],
  "null as a schema": [(server) => server.tool("x", { output: null }, done), /`output` must be a schema, .* not null$/],
  "the module of a library as a schema": [
    (server) => server.tool("x", { input: z }, done),
    /^tool `x`: .*`\w+` is not a schema, but other properties are$|^tool `x`: `input` is not a schema: its member `\w+` is a function$/,
  ],
  "a schema of zod 3": [
    (server) => server.tool("x", { input: z3.object({ a: z3.string() }) }, done),
    /^tool `x`: `input` cannot be converted to JSON Schema: use schemas of zod 4\.2 or later, /,
  ],
  "a schema of zod 3 before Standard Schema": [
    (server) => server.tool("x", { input: { a: { _def: {}, parse() {}, safeParse() {} } } }, done),
    /^tool `x`: `input` cannot be converted to JSON Schema: use schemas of zod 4\.2 or later, /,
  ],
  "a schema of zod mini": [
    (server) => server.tool("x", { input: mini.object({ a: mini.string() }) }, done),
    /^tool `x`: `input` cannot be converted to JSON Schema: use schemas of zod 4\.2 or later, /,
  ],
  "middleware for a misspelt method": [
    (server) => server.use({ methods: ["tools/cal"] }, (request, next) => next(request)),
    'the scope of a middleware has the method "tools/cal", which does not exist; did you mean "tools/call"?',
  ],
  "an update of a mounted tool": [
    (server) => {
      const mounted = make();
      mounted.tool("x", {}, done);
      server.mount(mounted);
      server.transformTool("x", { name: "y" });
    },
    /the tool x is one of a mounted server: update it there, or pass its changes when you mount the server \(`tools`\)/,
  ],
  "an option that is like no other": [
    (server) => server.tool("x", { colour: 1 }, done),
    /`colour`; the options are title, /,
  ],
  "missing options": [
    (server) => server.tool("x", done),
    "tool `x`: options must be an object, not function: pass `{}` before the handler",
  ],
  "a misspelt annotation of a tool": [
    (server) => server.tool("x", { annotations: { readonlyHint: true } }, done),
    "tool `x`: `annotations`: unknown option `readonlyHint`; did you mean `readOnlyHint`?",
  ],
  "an annotation of a tool that is no boolean": [
    (server) => server.tool("x", { annotations: { readOnlyHint: "yes" } }, done),
    "tool `x`: `annotations`: `readOnlyHint` must be a boolean, not string",
  ],
  "annotations that are no object": [
    (server) => server.tool("x", { annotations: [] }, done),
    "tool `x`: `annotations` must be an object, not an array",
  ],
  "an unknown annotation of a resource": [
    (server) => server.resource("a://b", { name: "b", annotations: { lastChange: "2026-01-01" } }, done),
    "resource `a://b`: `annotations`: unknown option `lastChange`; the options are audience, priority, lastModified",
  ],
  "scopes that are no array": [
    (server) => server.tool("x", { scopes: "read" }, done),
    "tool `x`: `scopes` must be an array of strings, not string",
  ],
  "tags that are no strings": [
    (server) => server.prompt("x", { tags: [1] }, done),
    "prompt `x`: `tags` must be an array of strings, not an array of other values",
  ],
  "a description that is no string": [
    (server) => server.resource("a://{b}", { name: "b", description: 5 }, done),
    "resource template `a://{b}`: `description` must be a string, not number",
  ],
  "metadata that is no object": [
    (server) => server.tool("x", { meta: 5 }, done),
    "tool `x`: `meta` must be an object, not number",
  ],
  "icons that are no array": [
    (server) => server.tool("x", { icons: "a.png" }, done),
    /^tool `x`: `icons` must be an array of icons, such as .*, not string$/,
  ],
  "an icon without an address": [
    (server) => server.tool("x", { icons: [{ url: "a.png" }] }, done),
    /^tool `x`: `icons` must be an array of icons/,
  ],
  "a media type that is no string": [
    (server) => server.resource("a://b", { name: "b", mimeType: 1 }, done),
    "resource `a://b`: `mimeType` must be a string, not number",
  ],
  "scopes of a method that are no array": [
    (server) => server.onRequest("acme/x", { scopes: "read" }, done),
    "method `acme/x`: `scopes` must be an array of strings, not string",
  ],
  "a changed annotation that is misspelt": [
    (server) => {
      server.tool("x", {}, done);
      server.updateTool("x", { title: null, annotations: { readonly: true } });
    },
    /^tool `x`: `annotations`: unknown option `readonly`/,
  ],
  "options of a server as a second argument": [
    () => new Server({ name: "a", version: "1" }, { instructions: "Use x." }),
    /^the server: all options are in one object: `new Server\(\{ name, version, instructions \}\)`; capabilities follow/,
  ],
  "a missing handler": [(server) => server.tool("x", {}), "tool `x`: the handler must be a function, not undefined"],
  "a description in the place of options": [
    (server) => server.tool("x", "Does x", done),
    /options must be an object, not string/,
  ],
  "a schema in the place of options": [
    (server) => server.tool("x", z.object({ a: z.string() }), done),
    /option `input`/,
  ],
  "a shape in the place of options": [(server) => server.tool("x", { a: z.string() }, done), /option `input`/],
  "a tool without a name": [
    (server) => server.tool(undefined, {}, done),
    /the name of a tool must be a string, not undefined/,
  ],
  "a rate without burst": [(server) => server.tool("x", { rate: { perSecond: 1 } }, done), /`rate.burst`/],
  "a misspelt option of a resource": [
    (server) => server.resource("a://b", { name: "b", mimetype: "text/plain" }, done),
    "resource `a://b`: unknown option `mimetype`; did you mean `mimeType`?",
  ],
  "a resource without a name": [(server) => server.resource("a://b", {}, done), /`name` must be a string/],
  "a resource without a handler": [
    (server) => server.resource("a://b", { name: "b" }),
    /the handler must be a function/,
  ],
  "a completion of an unknown variable": [
    (server) => server.resource("a://{b}/{+c*}{?d:3}", { name: "b", complete: { e: [] } }, done),
    "resource template `a://{b}/{+c*}{?d:3}`: `complete` names no variable of the template: `e`; it has b, c, d",
  ],
  "candidates that are no strings": [
    (server) => server.resource("a://{b}", { name: "b", complete: { b: [1] } }, done),
    /`complete.b` must be an array of strings or a function/,
  ],
  "a misspelt option of a prompt": [
    (server) => server.prompt("x", { argsSchema: {} }, done),
    "prompt `x`: unknown option `argsSchema`; did you mean `arguments`?",
  ],
  "a misspelt option of an argument": [
    (server) => server.prompt("x", { arguments: { a: { require: false } } }, done),
    "prompt `x`: argument `a`: unknown option `require`; did you mean `required`?",
  ],
  "a misspelt option of a method": [
    (server) => server.onRequest("acme/x", { parms: {} }, done),
    "method `acme/x`: unknown option `parms`; did you mean `params`?",
  ],
  "a method without options": [(server) => server.onNotification("acme/x", done), /pass `{}` before the handler/],
  "a completion without a handler": [(server) => server.completion(), /the handler must be a function/],
  "an event without a handler": [(server) => server.onInitialized({}), /the handler must be a function/],
  "a misspelt option of a server": [
    () => make({ instuctions: "" }),
    "the server: unknown option `instuctions`; did you mean `instructions`?",
  ],
  "a server without a version": [
    () => new Server({ name: "x" }),
    "`version` of the server must be a string, not undefined",
  ],
  "a misspelt setting": [
    () => make({ settings: { pageSzie: 1 } }),
    "`settings`: unknown option `pageSzie`; did you mean `pageSize`?",
  ],
  "a setting of another type": [
    () => make({ settings: { pageSize: "ten" } }),
    "`pageSize` must be a whole number, not string",
  ],
  "a time of another type": [
    () => make({ settings: { inputRequestTimeout: "1s" } }),
    "`inputRequestTimeout` must be a time in milliseconds, not string",
  ],
  "a setting out of range": [() => make({ settings: { clientShare: 2 } }), /^clientShare: 2 /],
  "a misspelt setting of HTTP": [
    (server) => server.httpApp({ allowdHosts: [] }),
    "the HTTP settings: unknown option `allowdHosts`; did you mean `allowedHosts`?",
  ],
  "hosts that are no list": [
    (server) => server.httpApp({ allowedHosts: "*" }),
    /`allowedHosts` must be an array of strings/,
  ],
  "paths of HTTP+SSE that are a number": [
    (server) => server.httpApp({ sse: 5 }),
    '`sse` must be two paths, such as ["/sse", "/messages"], or false, not 5',
  ],
  "one path of HTTP+SSE": [(server) => server.httpApp({ sse: ["/sse"] }), /^`sse` must be two paths/],
  "HTTP+SSE that is true": [(server) => server.httpApp({ sse: true }), /or false, not boolean$/],
  "a path of the health check that is true": [
    (server) => server.httpApp({ health: true }),
    "`health` must be a path or false, not boolean",
  ],
  "a path of the readiness check that is true": [
    (server) => server.httpApp({ ready: true }),
    "`ready` must be a path or false, not boolean",
  ],
  "a misspelt setting of authorization": [
    (server) => server.httpApp({ auth: { resource: "https://a.example/mcp", issuer: "https://b.example" } }),
    "`auth`: unknown option `issuer`; did you mean `issuers`?",
  ],
  "a misspelt option of an extension": [
    () => new Extension("com.example/a", { setting: {} }),
    "extension `com.example/a`: unknown option `setting`; did you mean `settings`?",
  ],
  "a method of an extension without a handler": [
    () => new Extension("com.example/a").onRequest("a/b", {}),
    /the handler must be a function/,
  ],
  "a misspelt option of OAuth": [() => new OAuth({ clientname: "x" }), /did you mean `clientName`/],
};

for (const [mistake, [call, message]] of Object.entries(REFUSED)) {
  test(`refuses ${mistake}`, () => {
    assert.throws(() => call(make()), { name: "UsageError", message });
  });
}

const REJECTED = {
  "an origin without a scheme": [
    (server) => server.listen({ allowedOrigins: ["app.example.com"] }),
    /^`allowedOrigins`: "app.example.com" has no scheme, .*: write "https:\/\/app.example.com"$/,
  ],
  "a host that is a URL": [
    (server) => server.listen({ allowedHosts: ["https://mcp.example.com"] }),
    /^`allowedHosts`: "https:\/\/mcp.example.com" is a URL, .*: write "mcp.example.com"$/,
  ],
  "a path without a slash": [
    (server) => server.listen({ path: "mcp" }),
    '`path`: "mcp" does not begin with a slash: write "/mcp"',
  ],
  "a misspelt option of listen": [
    (server) => server.listen({ prot: 1 }),
    "`listen`: unknown option `prot`; did you mean `port`?",
  ],
  "a port out of range": [
    (server) => server.listen({ port: 99_999 }),
    /`port` must be a whole number from 0 to 65535, not 99999/,
  ],
  "a port that is no number": [(server) => server.listen({ port: "8000" }), /`port` must be a whole number/],
  "a misspelt option of a client": [
    (server) => Client.memory(server, { timout: 1 }),
    "the client: unknown option `timout`; did you mean `timeout`?",
  ],
  "a setting of authorization of another form": [
    (server) =>
      server.listen({
        auth: { resource: "https://a.example/mcp", issuers: ["https://b.example"], jwksUrl: "x", jwks: {} },
      }),
    /`jwksUrl`/,
  ],
};

for (const [mistake, [call, message]] of Object.entries(REJECTED)) {
  test(`refuses ${mistake}`, async () => {
    await assert.rejects(call(make()), { name: "UsageError", message });
  });
}

test("a mount refuses entries that no request can match", () => {
  assert.throws(() => make().httpApp({ allowedHosts: ["https://x"] }), { name: "UsageError", message: /write "x"$/ });
});

test("origins with a trailing slash or a default port are those without", async () => {
  const server = make().httpApp({ allowedOrigins: ["https://a.example/", "https://b.example:443"] });
  for (const origin of ["https://a.example", "https://b.example"]) {
    const request = new Request("http://localhost/mcp", {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
    const response = await server.fetch(request);
    assert.equal(response.headers.get("access-control-allow-origin"), origin);
  }
});

test("an address in use is named", async (t) => {
  const listening = await make().listen();
  t.after(() => listening.close());
  await assert.rejects(make().listen({ port: listening.port }), (error) => {
    assert.equal(error.name, "TransportError");
    assert.equal(error.code, "EADDRINUSE");
    assert.ok(
      error.message.startsWith(`cannot listen on 127.0.0.1:${listening.port}: Address already in use`),
      error.message,
    );
    return true;
  });
});

test("the refusal of a host names the option that allows it", async () => {
  const app = make().httpApp({});
  const response = await app.fetch(new Request("http://app.example.com/mcp", { method: "POST", body: "{}" }));
  assert.equal(response.status, 403);
  assert.match(await response.text(), /Host app\.example\.com is not allowed: .*`allowedHosts` in JavaScript/);
});

test("options that are undefined are not given", () => {
  const server = make({ instuctions: undefined });
  server.tool("x", { inputSchema: undefined, description: undefined }, done);
});

test("a refused feature is not registered in part", () => {
  const server = make();
  const wrong = { name: "b", complete: { c: [] } };
  assert.throws(() => server.resource("a://{b}", wrong, done));
  server.resource("a://{b}", { name: "b" }, done);
});
