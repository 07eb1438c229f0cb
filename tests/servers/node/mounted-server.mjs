// The everything-server within another HTTP server: `mounted-server.mjs handler|fetch --http PORT …`.
import { createServer } from "node:http";

import { everything } from "./everything.mjs";
import { fetching } from "./fetching.mjs";
import { readOptions } from "./options.mjs";

const { port, settings, http, parts, positionals } = readOptions();
const server = everything(settings, parts);
const mcp = Object.keys(http).length === 0 ? server : server.httpApp(http);

const mounted = positionals[0] === "fetch" ? fetching(mcp) : mcp.handler;
const app = createServer((incoming, outgoing) => {
  if (["/mcp", "/sse", "/messages"].includes(incoming.url.split("?")[0])) {
    void mounted(incoming, outgoing);
  } else {
    outgoing.writeHead(404).end();
  }
});
app.listen(port, "localhost");
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await server.close();
    app.close();
  });
}
