// The small server on `@modelcontextprotocol/sdk` 1.x, over stdio, or over HTTP with `--http PORT`.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { port, small } from "./small.mjs";

const running = (extra) => ({
  signal: extra.signal,
  progress: async (progress, total) => {
    const progressToken = extra._meta?.progressToken;
    if (progressToken === undefined) return;
    await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total } });
  },
});
const made = () => small({ McpServer, ResourceTemplate, completable }, running);

if (port === 0) {
  await made().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  createServer(async (request, response) => {
    const named = request.headers["mcp-session-id"];
    let transport = sessions.get(named);
    if (!transport && named) return response.writeHead(404).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (session) => sessions.set(session, transport),
      });
      await made().connect(transport);
    }
    await transport.handleRequest(request, response);
  }).listen(port, "127.0.0.1");
}
