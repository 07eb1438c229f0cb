// A program to bundle: a server, and a client of it.
const { Client, Server } = require("mcpline");

async function main() {
  const server = new Server({ name: "bundled", version: "1.0.0" }).tool("hello", {}, () => "hello");
  const client = await Client.memory(server);
  const { content } = await client.callTool("hello");
  console.log(content[0].text);
  await client.close();
}

void main();
