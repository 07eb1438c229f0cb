// Mistakes in options and handlers are refused where they are made, with a suggestion.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Extension, OAuth, Server } from "mcpline";
import * as z from "zod";

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
  "an option that is like no other": [
    (server) => server.tool("x", { colour: 1 }, done),
    /`colour`; the options are title, /,
  ],
  "missing options": [
    (server) => server.tool("x", done),
    "tool `x`: options must be an object, not function: pass `{}` before the handler",
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
    () => make({ settings: { askTimeout: "1s" } }),
    "`askTimeout` must be a time in milliseconds, not string",
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
    /"timout"; did you mean `timeout`/,
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

test("an address in use is named", async (t) => {
  const listening = await make().listen();
  t.after(() => listening.close());
  await assert.rejects(make().listen({ port: listening.port }), (error) => {
    assert.equal(error.name, "TransportError");
    assert.ok(
      error.message.startsWith(`cannot listen on 127.0.0.1:${listening.port}: Address already in use`),
      error.message,
    );
    return true;
  });
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
