// Serves weather.mjs beside other pages of a node:http server: `node plain.mjs [PORT]`.
import { createServer } from "node:http";

import { server } from "./weather.mjs";

const app = createServer((request, response) => {
  if (request.url === "/") {
    response.end("A page of its own; the weather is at /mcp.\n");
  } else {
    void server.handler(request, response);
  }
});

app.listen(Number(process.argv[2] ?? 8000), "localhost", () => {
  const { port } = /** @type {import("node:net").AddressInfo} */ (app.address());
  console.log(`listening on http://localhost:${port}/mcp`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await server.close();
    app.close();
  });
}
