// A host: starts stdio.mjs, lists its features, calls its tool, and answers its elicitation.
import { fileURLToPath } from "node:url";

import { Client } from "mcpline";

const program = fileURLToPath(new URL("stdio.mjs", import.meta.url));

const client = await Client.spawn(process.execPath, [program], {
  elicit: (request) => {
    console.log(`the server asks: ${request.message}`);
    return { action: "accept", content: { city: "Bergen" } };
  },
});

try {
  const { name, version } = client.serverInfo ?? {};
  console.log(`connected to ${name} ${version}, revision ${client.protocolVersion}`);

  const tools = await client.listTools();
  console.log(`tools: ${tools.map((tool) => tool.name).join(", ")}`);

  for (const args of [{ city: "Oslo", days: 3 }, {}]) {
    const result = await client.callTool("forecast", args, {
      timeout: 10_000,
      onProgress: ({ progress, total, message }) => console.log(`  ${progress} of ${total} ${message ?? ""}`),
    });
    console.log(`forecast ${JSON.stringify(args)}: ${JSON.stringify(result.structuredContent)}`);
  }

  const unknown = await client.callTool("forecast", { city: "Oslo", days: 30 });
  for (const block of unknown.content) {
    console.log(`refused: ${block.type === "text" ? block.text : block.type}`);
  }
} finally {
  await client.close();
}
