// A server over stdio whose tool prints, and a client that gets what it prints from stderr, and its answers from stdout.
const assert = require("node:assert/strict");

const { Client, Server } = require("mcpline");

function serve() {
  const server = new Server({ name: "prints", version: "1.0.0" });
  server.tool("print", {}, () => {
    console.log("by console.log");
    process.stdout.write("by process.stdout\n");
    return "done";
  });
  return server.run();
}

async function main() {
  const lines = [];
  const client = await Client.spawn(process.execPath, [__filename, "serve"], { stderr: (line) => lines.push(line) });
  const result = await client.callTool("print");
  assert.equal(result.content[0].text, "done");
  await client.close();
  for (const line of ["by console.log", "by process.stdout"]) {
    assert.ok(
      lines.some((printed) => printed.includes(line)),
      `stderr has ${JSON.stringify(lines)}`,
    );
  }
}

(process.argv.includes("serve") ? serve() : main()).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
