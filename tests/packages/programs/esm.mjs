// An ESM program in a folder with only mcpline installed: a server and a client in memory, and a host.
import assert from "node:assert/strict";

import { Client, Server, ToolError } from "mcpline";

const server = new Server({ name: "installed", version: "1" });
server.tool("fails", { description: "Fails" }, () => {
  throw new ToolError("as it should");
});

const memory = await Client.memory(server);
const failed = await memory.callTool("fails");
assert.equal(failed.isError, true);
await memory.close();

const host = await Client.spawn(process.execPath, [process.argv[2]]);
const sum = await host.callTool("add", { a: 2, b: 3.5 });
assert.equal(sum.content[0].text, "5.5");
await host.close();
