// Runs a page's program, given as a compiled file, lists the features of its servers, and runs its `check`.
import { pathToFileURL } from "node:url";

import { Client, RpcError, Server } from "mcpline";

const METHOD_NOT_FOUND = -32601;

// Servers of the page are found when something is registered with them.
const servers = new Set();
for (const method of ["tool", "resource", "prompt"]) {
  const registers = Server.prototype[method];
  Server.prototype[method] = function (...given) {
    servers.add(this);
    return registers.apply(this, given);
  };
}

// A page may call `await server.run()`, or listen on a port. Here nothing is served.
Server.prototype.run = async () => {};
const listens = Server.prototype.listen;
Server.prototype.listen = function (options) {
  return listens.call(this, { ...options, port: 0 });
};

async function list(server) {
  const client = await Client.memory(server);
  try {
    for (const lists of ["listTools", "listResources", "listResourceTemplates", "listPrompts"]) {
      try {
        await client[lists]();
      } catch (error) {
        if (!isAbsent(error)) {
          throw error;
        }
      }
    }
  } finally {
    await client.close();
  }
}

/** Whether the server has no features of that kind. */
function isAbsent(error) {
  return error.kind === "not_supported" || (error instanceof RpcError && error.code === METHOD_NOT_FOUND);
}

const page = await import(pathToFileURL(process.argv[2]).href);
for (const server of servers) {
  await list(server);
}
await page.check?.();
for (const server of servers) {
  await server.close();
}
