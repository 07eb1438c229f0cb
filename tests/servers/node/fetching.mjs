// A Fetch API server within a `node:http` server, as those of frameworks do it.
import { once } from "node:events";
import { Readable } from "node:stream";

/** A listener of `node:http` that answers by the `fetch` of a server, or of an application of one. */
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
      // No URL, or one with credentials.
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
      // What is left of a body that was refused would have to be read before the next request.
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
      // The client has left in mid-stream, or reads nothing.
      outgoing.destroy();
    }
    outgoing.end();
  };
}
