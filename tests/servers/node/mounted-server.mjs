// The everything-server within another HTTP server: `mounted-server.mjs handler|fetch --http PORT …`.
import { once } from "node:events";
import { createServer } from "node:http";
import { Readable } from "node:stream";

import { everything } from "./everything.mjs";
import { readOptions } from "./options.mjs";

const { port, settings, http, hasExtras, positionals } = readOptions();
const server = everything(settings, hasExtras);
const mcp = Object.keys(http).length === 0 ? server : server.httpApp(http);

/** What `server.fetch` is mounted in: a `node:http` server that speaks the Fetch API, as those of frameworks do. */
async function fetching(incoming, outgoing) {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method,
    headers: Object.entries(incoming.headers),
    body: incoming.method === "POST" ? Readable.toWeb(incoming) : null,
    duplex: "half",
    signal: gone.signal,
  });
  let response;
  try {
    response = await mcp.fetch(request);
  } catch (error) {
    if (!gone.signal.aborted) {
      throw error;
    }
    return;
  }
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  try {
    for await (const piece of response.body ?? []) {
      if (!outgoing.write(piece)) {
        await once(outgoing, "drain", { signal: gone.signal });
      }
    }
  } catch {
    // The client has left in mid-stream.
  }
  outgoing.end();
}

const mounted = positionals[0] === "fetch" ? fetching : mcp.handler;
const app = createServer((incoming, outgoing) => {
  if (incoming.url === "/mcp") {
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
