// A server that pages of one origin may use: `cors-server.mjs standalone|handler|fetch --http PORT --origin ORIGIN`.
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import { Server } from "mcpline";

import { fetching } from "../../servers/node/fetching.mjs";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { http: { type: "string" }, origin: { type: "string" } },
});
const port = Number(values.http);
const settings = { allowedOrigins: [values.origin] };

const input = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const server = new Server({ name: "pages", version: "1.0.0" }).tool("greet", { input }, ({ name }, ctx) => {
  ctx.progress(1);
  return `Hello, ${name}!`;
});

if (positionals[0] === "standalone") {
  await server.listen({ ...settings, port });
  server.closeOnSignals();
} else {
  const app = server.httpApp(settings);
  const outer = createServer(positionals[0] === "fetch" ? fetching(app) : app.handler).listen(port, "localhost");
  process.once("SIGTERM", async () => {
    await server.close();
    outer.close();
    // Browsers open connections that they may need later.
    outer.closeAllConnections();
  });
}
