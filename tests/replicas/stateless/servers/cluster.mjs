// Two processes behind one port, by node:cluster, without sessions: `cluster.mjs --http PORT`. The tool says which process it is.
import cluster from "node:cluster";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { http: { type: "string" } } });

if (cluster.isPrimary) {
  // Each connection goes to the next process.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const workers = [cluster.fork(), cluster.fork()];
  for (const worker of workers) {
    worker.once("exit", (code) => {
      process.exitCode ||= code ?? 1;
    });
  }
  process.once("SIGTERM", () => workers.forEach((worker) => worker.send("stop")));
} else {
  const { Server } = await import("mcpline");
  const server = new Server({ name: "stateless", version: "1" });
  server.tool("process", {}, () => String(process.pid));
  const app = createServer(server.httpApp({ stateless: true }).handler);
  app.listen(Number(values.http), "localhost");
  process.once("message", async () => {
    await server.close();
    app.close();
    app.closeAllConnections();
    process.disconnect();
  });
  // The primary gets it too, and says when to stop.
  process.on("SIGTERM", () => {});
}
