// A server whose calls never end by themselves, over stdio, a Unix socket, HTTP, or mounted in node:http.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { Server } from "mcpline";

import { fetching } from "../../../servers/node/fetching.mjs";

const server = new Server({ name: "shutdown", version: "1", settings: { shutdownTimeout: 1000 } });
const input = { type: "object", properties: { label: { type: "string" } }, required: ["label"] };

server.tool("waits", { description: "Waits until it is cancelled", input }, async ({ label }, ctx) => {
  ctx.progress(0, 1);
  ctx.signal.addEventListener("abort", () => console.error(`cancelled ${label}`));
  console.error(`waiting ${label}`);
  await sleep(600_000, undefined, { signal: ctx.signal });
});

server.tool("ignores", { description: "Waits, and doesn't look at its signal", input }, async ({ label }, ctx) => {
  ctx.progress(0, 1);
  console.error(`waiting ${label}`);
  await sleep(600_000);
});

const [way, place] = process.argv.slice(2);
if (way === undefined) {
  await server.run();
} else {
  server.closeOnSignals();
  if (way === "http") {
    await server.listen({ port: Number(place) });
  } else if (way === "unix") {
    await server.listenUnix(place);
  } else {
    const app = createServer(way === "fetch" ? fetching(server) : server.handler);
    app.listen(Number(place), "127.0.0.1");
    process.once("SIGTERM", () => app.close());
  }
}
