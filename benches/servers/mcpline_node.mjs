// mcpline for Node serving echo tools over stdio, or over HTTP with `--http PORT`.
//
// `echo` is an async function, `echo_sync` a plain one, `echo_stream` responds with an event stream. With `--handler`
// or `--fetch` the server is mounted in a node:http server; with `--bare` as well, that server responds without
// mcpline. With `--middleware` a middleware in JavaScript passes each call on.

import { Server } from "mcpline";

import { adapted } from "./adapted.mjs";

const given = new Set(process.argv);
const port = given.has("--http") ? Number(process.argv[process.argv.indexOf("--http") + 1]) : undefined;
const input = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

function made() {
  const server = new Server({ name: "bench", version: "1.0.0" });
  if (given.has("--middleware")) {
    server.use(async (request, next) => await next(request));
  }
  return server
    .tool("echo", { description: "Echo", input }, async ({ text }) => text)
    .tool("echo_sync", { description: "Echo", input }, ({ text }) => text)
    .tool("echo_stream", { description: "Echo after a progress notification", input }, async ({ text }, ctx) => {
      ctx.progress(1);
      return text;
    });
}

/** Responds like the bare hyper server, with only as much of the protocol as the generator needs. */
function bare(json) {
  const request = JSON.parse(json);
  const headers = { "content-type": "application/json" };
  if (request.method === "tools/call") {
    const content = [{ type: "text", text: request.params.arguments.text }];
    const body = JSON.stringify({ jsonrpc: "2.0", id: request.id, result: { content } });
    return { status: 200, headers, body };
  }
  if (request.method === "initialize") {
    headers["mcp-session-id"] = "0123456789abcdef0123456789abcdef";
    return { status: 200, headers, body: "" };
  }
  return { status: 202, headers, body: "" };
}

function bareHandler(request, response) {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const { status, headers, body } = bare(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
}

async function bareFetch(request) {
  const { status, headers, body } = bare(await request.text());
  return new Response(body, { status, headers });
}

if (port === undefined) {
  await made().run();
} else if (given.has("--handler") || given.has("--fetch")) {
  const { createServer } = await import("node:http");
  const isBare = given.has("--bare");
  const handler = isBare ? bareHandler : made().handler;
  createServer(given.has("--fetch") ? adapted(port, isBare ? bareFetch : made().fetch) : handler).listen(port, "127.0.0.1");
} else {
  await made().listen({ port });
}
