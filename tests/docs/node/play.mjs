// Plays a page's program, given as a compiled file: runs it, lists what its servers offer, and runs its `check`.
import { pathToFileURL } from "node:url";

import { Client, RpcError, Server } from "mcpline";

const METHOD_NOT_FOUND = -32601;

// Every server of the page is known by what is registered with it.
const servers = new Set();
for (const method of ["tool", "resource", "resourceTemplate", "prompt"]) {
  const registers = Server.prototype[method];
  Server.prototype[method] = function (...given) {
    servers.add(this);
    return registers.apply(this, given);
  };
}

// A page may show `await server.run()` bare, and the ports of pages are for show; here no pipe is to be served.
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

/** Whether the server has nothing of that kind. */
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
