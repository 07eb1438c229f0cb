// The CommonJS version of esm.mjs. Both load one module, so the classes are the same.
const assert = require("node:assert/strict");

const { Client, Server, ToolError } = require("mcpline");

async function main() {
  const esm = await import("mcpline");
  assert.equal(esm.Server, Server);
  assert.equal(esm.ToolError, ToolError);

  const host = await Client.spawn(process.execPath, [process.argv[2]]);
  const sum = await host.callTool("add", { a: 2, b: 3 });
  assert.equal(sum.content[0].text, "5");
  await host.close();
}

main();
