// The everything-server within another HTTP server: `mounted-server.mjs handler|fetch --http PORT [--page-size N]`.
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";

import { everything } from "./everything.mjs";

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: { http: { type: "string" }, "page-size": { type: "string" } },
});
const server = everything(options["page-size"] === undefined ? {} : { pageSize: Number(options["page-size"]) });

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
    response = await server.fetch(request);
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
      outgoing.write(piece);
    }
  } catch {
    // The client has left in mid-stream.
  }
  outgoing.end();
}

const mounted = positionals[0] === "fetch" ? fetching : server.handler;
const app = createServer((incoming, outgoing) => {
  if (incoming.url === "/mcp") {
    void mounted(incoming, outgoing);
  } else {
    outgoing.writeHead(404).end();
  }
});
app.listen(Number(options.http), "localhost");
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await server.close();
    app.close();
  });
}
