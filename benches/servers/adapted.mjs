// Serves a fetch function with node:http, with minimal overhead.

export function adapted(port, fetch) {
  return async (request, response) => {
    const init = { method: request.method, headers: request.headers };
    if (request.method === "POST") {
      const chunks = [];
      for await (const chunk of request) {
        chunks.push(chunk);
      }
      init.body = Buffer.concat(chunks);
    }
    const answer = await fetch(new Request(`http://127.0.0.1:${port}${request.url}`, init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.headers.get("content-type")?.startsWith("text/event-stream")) {
      for await (const piece of answer.body) {
        response.write(piece);
      }
      response.end();
    } else {
      response.end(await answer.text());
    }
  };
}
