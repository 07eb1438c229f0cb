// The small server on `@modelcontextprotocol/server` 2.x, over stdio, or over HTTP with `--http PORT`.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { McpServer, ResourceTemplate, completable, createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
import { port, small } from "./small.mjs";

const running = ({ mcpReq }) => ({
  signal: mcpReq.signal,
  progress: async (progress, total) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined) return;
    await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total } });
  },
});
const made = () => small({ McpServer, ResourceTemplate, completable, shape: z.object }, running);

if (port === 0) {
  serveStdio(made);
} else {
  const handler = createMcpHandler(made);
  createServer(async (request, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const withBody = request.method === "POST";
    const answer = await handler.fetch(
      new Request(`http://127.0.0.1:${port}${request.url}`, {
        method: request.method,
        headers: Object.entries(request.headers),
        body: withBody ? Readable.toWeb(request) : undefined,
        duplex: "half",
        signal: gone.signal,
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (!answer.body) return response.end();
    const body = Readable.fromWeb(answer.body);
    response.on("close", () => body.destroy());
    // The client may disconnect during a stream.
    body.on("error", () => response.destroy());
    body.pipe(response);
  }).listen(port, "127.0.0.1");
}
