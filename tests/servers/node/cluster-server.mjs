// The everything-server in Node's cluster: `cluster-server.mjs --http PORT … WORKERS`. Workers that end are replaced. Each response
// names the process in `x-backend`.
import cluster from "node:cluster";
import { createServer } from "node:http";

import { everything } from "./everything.mjs";
import { readOptions } from "./options.mjs";

const { port, settings, parts, positionals } = readOptions();
if (cluster.isPrimary) {
  for (let number = 0; number < Number(positionals[0]); number++) {
    cluster.fork();
  }
  cluster.on("exit", () => cluster.fork());
} else {
  const server = everything(settings, parts);
  createServer((incoming, outgoing) => {
    outgoing.setHeader("x-backend", String(process.pid));
    void server.handler(incoming, outgoing);
  }).listen(port, "localhost");
}
