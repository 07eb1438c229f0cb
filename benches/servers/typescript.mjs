// The official TypeScript servers with an echo tool, over stdio, or over HTTP with `--http PORT`: sdk 1.x with
// `--sdk1`, otherwise server 2.x. HTTP keeps sessions and responds with JSON, which is their fastest mode; `--handler`
// is 2.x's handler for 2026-07-28. From the pinned installation of the tests with real servers.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { adapted } from "./adapted.mjs";

const given = new Set(process.argv);
const port = given.has("--http") ? Number(process.argv[process.argv.indexOf("--http") + 1]) : undefined;
const { resolve } = createRequire(new URL("../../tests/realservers/node/package.json", import.meta.url));
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { z } = await load("zod");
const isFirst = given.has("--sdk1");
const two = isFirst ? undefined : await load("@modelcontextprotocol/server");
const { McpServer } = two ?? (await load("@modelcontextprotocol/sdk/server/mcp.js"));

function made() {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  const inputSchema = isFirst ? { text: z.string() } : z.object({ text: z.string() });
  server.registerTool("echo", { description: "Echo", inputSchema }, async ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return server;
}

/** Finds or creates the transport of a request's session. */
function sessions(make) {
  const open = new Map();
  return async (id) => {
    const known = open.get(id);
    if (known !== undefined) return known;
    const transport = make({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: (session) => void open.set(session, transport),
    });
    await made().connect(transport);
    return transport;
  };
}

if (port === undefined && isFirst) {
  const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
  await made().connect(new StdioServerTransport());
} else if (port === undefined) {
  const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
  serveStdio(made);
} else if (isFirst) {
  const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const find = sessions((options) => new StreamableHTTPServerTransport(options));
  createServer(async (request, response) => {
    await (await find(request.headers["mcp-session-id"])).handleRequest(request, response);
  }).listen(port, "127.0.0.1");
} else if (given.has("--handler")) {
  const handler = two.createMcpHandler(made);
  createServer(adapted(port, (request) => handler.fetch(request))).listen(port, "127.0.0.1");
} else {
  const { NodeStreamableHTTPServerTransport } = await load("@modelcontextprotocol/node");
  const find = sessions((options) => new NodeStreamableHTTPServerTransport(options));
  createServer(async (request, response) => {
    await (await find(request.headers["mcp-session-id"])).handleRequest(request, response);
  }).listen(port, "127.0.0.1");
}
