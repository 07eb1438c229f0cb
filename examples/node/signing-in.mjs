// Signing in: an authorization server, a server that requires its tokens, and a client that gets one.
//
// Starts a small authorization server (tests/authorization), which needs the Rust toolchain. In your program, leave
// `browser` out: then the system's browser opens, and the user consents there.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

import { Client, OAuth, Server } from "mcpline";

const issuing = spawn("cargo", ["run", "--quiet", "--package", "authorization-server"], {
  stdio: ["pipe", "pipe", "inherit"],
});
const { value: line } = await createInterface(issuing.stdout)[Symbol.asyncIterator]().next();
const { issuer } = JSON.parse(line);

const port = Number(process.argv[2] ?? (await freePort()));
const resource = `http://127.0.0.1:${port}/mcp`;

const server = new Server({ name: "notes", version: "1.0.0" });
server.tool("whoami", {}, (_, ctx) => ctx.auth?.subject);
server.tool("publish", { scopes: ["publish"] }, (_, ctx) => `published, for ${ctx.auth?.subject} may`);
await server.listen({ port, auth: { resource, issuers: [issuer], requiredScopes: ["read"] } });

const oauth = new OAuth({
  clientName: "Example host",
  userAgent: { kind: "loopback", browser: (url) => fetch(url).then((page) => page.text()) },
});
const client = await Client.connect(resource, { auth: oauth });
try {
  const call = async (/** @type {string} */ tool) => {
    const { content } = await client.callTool(tool);
    return content.map((block) => (block.type === "text" ? block.text : block.type)).join();
  };
  const visible = async () => (await client.listTools()).map((tool) => tool.name).join(", ");
  console.log(`signed in as ${await call("whoami")}; tools: ${await visible()}`);
  // The token has the scope `read` only. The server's challenge names the scope that the tool needs, and the user
  // consents again.
  console.log(await call("publish"));
  console.log(`tools: ${await visible()}`);
} finally {
  await client.close();
  await server.close();
  issuing.stdin.end();
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (probe.address());
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
