// Serves weather.mjs over HTTP, to clients of every revision: `node http.mjs [PORT]`.
import { server } from "./weather.mjs";

const listening = await server.listen({ port: Number(process.argv[2] ?? 8000) });
console.log(`listening on ${listening.url}`);

server.closeOnSignals();
