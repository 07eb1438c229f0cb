// The small server of ../README.md, for the `McpServer` and `ResourceTemplate` of any library.

import { z } from "zod";

let resolveCancelled;
const cancelled = new Promise((resolve) => (resolveCancelled = resolve));
const text = (value) => ({ content: [{ type: "text", text: value }] });

/** `running(extra)` returns what a handler needs from its library: `{signal, progress(step, total)}`; `shape` converts
 * the schema of a prompt's arguments. */
export function small({ McpServer, ResourceTemplate, completable, shape = (members) => members }, running) {
  const server = new McpServer({ name: "small", version: "1" });
  server.registerTool("echo", { description: "Echo", inputSchema: z.object({ text: z.string() }) }, async (given) =>
    text(given.text),
  );
  server.registerTool("steps", { description: "Report progress", inputSchema: z.object({}) }, async (_given, extra) => {
    for (let step = 1; step <= 3; step += 1) await running(extra).progress(step, 3);
    return text("done");
  });
  server.registerTool("wait", { description: "Wait until cancelled", inputSchema: z.object({}) }, async (_given, extra) => {
    const { signal, progress } = running(extra);
    const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
    await progress(1, 2);
    await aborted;
    resolveCancelled();
    return text("never");
  });
  server.registerTool("was_cancelled", { description: "Wait until then", inputSchema: z.object({}) }, async () => {
    await cancelled;
    return text("true");
  });
  server.registerResource("greeting", "demo://greeting", { description: "A greeting" }, async (uri) => ({
    contents: [{ uri: uri.href, text: "hello" }],
  }));
  server.registerResource(
    "item",
    new ResourceTemplate("demo://item/{id}", { list: undefined }),
    { description: "An item" },
    async (uri, { id }) => ({ contents: [{ uri: uri.href, text: `item ${id}` }] }),
  );
  const names = (begun) => ["Ada", "Alan", "Grace"].filter((name) => name.startsWith(begun));
  server.registerPrompt(
    "greet",
    { description: "Greet somebody", argsSchema: shape({ name: completable(z.string(), names) }) },
    ({ name }) => ({ messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }] }),
  );
  return server;
}

export const port = process.argv.includes("--http") ? Number(process.argv[process.argv.indexOf("--http") + 1]) : 0;
