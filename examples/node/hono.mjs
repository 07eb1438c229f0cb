// Serves weather.mjs beside other routes of a Hono application: `node hono.mjs [PORT]`.
// Any framework with web-standard `Request` and `Response` mounts it the same way: Next.js, Bun, Deno.
import { serve } from "@hono/node-server";
import { Hono } from "hono";

import { server } from "./weather.mjs";

const app = new Hono();
app.get("/", (context) => context.text("A page of its own; the weather is at /mcp.\n"));
app.all("/mcp", (context) => server.fetch(context.req.raw));

const listening = serve(
  { fetch: app.fetch, hostname: "localhost", port: Number(process.argv[2] ?? 8000) },
  (address) => {
    console.log(`listening on http://localhost:${address.port}/mcp`);
  },
);

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await server.close();
    listening.close();
  });
}
