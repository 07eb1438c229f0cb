// A Fetch API server within a `node:http` server, like those of frameworks.
import { once } from "node:events";
import { Readable } from "node:stream";

/** Returns a `node:http` listener that answers with the `fetch` of a server or of an application. */
export function fetching(server) {
  return async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    let request;
    try {
      request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
        method: incoming.method,
        headers: Object.entries(incoming.headers),
        body: incoming.method === "POST" ? Readable.toWeb(incoming) : null,
        duplex: "half",
        signal: gone.signal,
      });
    } catch {
      // An invalid URL, or one with credentials.
      outgoing.writeHead(400, { connection: "close" }).end();
      return;
    }
    let response;
    try {
      response = await server.fetch(request);
    } catch (error) {
      if (!gone.signal.aborted) {
        throw error;
      }
      return;
    }
    if (!incoming.complete) {
      // The rest of a refused body would have to be read before the next request.
      outgoing.setHeader("connection", "close");
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
      // The client has disconnected during the stream, or reads nothing.
      outgoing.destroy();
    }
    outgoing.end();
  };
}
