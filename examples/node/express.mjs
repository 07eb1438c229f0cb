// Serves weather.mjs beside other routes of an Express application: `node express.mjs [PORT]`.
import express from "express";

import { server } from "./weather.mjs";

const app = express();
app.get("/", (_request, response) => response.type("text").send("A page of its own; the weather is at /mcp.\n"));
app.all("/mcp", server.handler);

const listening = app.listen(Number(process.argv[2] ?? 8000), "localhost", () => {
  const { port } = /** @type {import("node:net").AddressInfo} */ (listening.address());
  console.log(`listening on http://localhost:${port}/mcp`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await server.close();
    listening.close();
  });
}
