// A server of a request of its own, acme/echo: `node custom-methods.mjs` serves stdio, with `--http 8000` HTTP.
import { Server } from "mcpline";
import { z } from "zod";

const server = new Server({ name: "custom-methods", version: "1.0.0" });

server.onRequest("acme/echo", { params: z.object({ text: z.string() }) }, ({ text }, ctx) => {
  ctx.progress(1, 2);
  ctx.notify("acme/echoing", { text });
  return { text };
});

if (process.argv[2] === "--http") {
  server.closeOnSignals();
  const { url } = await server.listen({ port: Number(process.argv[3]) });
  console.error(`listening on ${url}`);
} else {
  await server.run();
}
