// A TypeScript program, compiled with the strictest options, including our own declarations.
import { Client, Server, ToolError, type CallToolResult, type Context } from "mcpline";

const server = new Server({ name: "typed", version: "1" });

server.tool(
  "add",
  { input: { type: "object", properties: { a: { type: "number" } } }, description: "Adds" },
  async (args, ctx: Context) => {
    ctx.progress(1);
    if (ctx.signal.aborted) {
      throw new ToolError("given up");
    }
    return JSON.stringify(args);
  },
);

export async function used(): Promise<CallToolResult> {
  await using client = await Client.memory(server);
  const tools: { name: string }[] = await client.listTools();
  return client.callTool(tools[0]?.name ?? "", {}, { timeout: 1000, signal: new AbortController().signal });
}

export const fetched: (request: Request) => Promise<Response> = server.fetch;
