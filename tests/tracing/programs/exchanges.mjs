// Every kind of request, each in a span of its own, between a client and a server of the Node package. Does what `exchanges.py` does.
//
//     exchanges.mjs server [--http PORT | --unix PATH]
//     exchanges.mjs client REVISION memory
//     exchanges.mjs client REVISION stdio COMMAND …
//     exchanges.mjs client REVISION unix PATH
//     exchanges.mjs client REVISION http URL
//     exchanges.mjs client REVISION http+sse URL
import { trace } from "@opentelemetry/api";
import { Client, RpcError, Server, ToolError } from "mcpline";

const OLDEST = "2024-11-05";
const MODERN = "2026-07-28";

const tracer = trace.getTracer("golden");

/** Runs a function in a span. */
async function inSpan(name, run) {
  return tracer.startActiveSpan(name, async (span) => {
    try {
      return await run();
    } finally {
      span.end();
    }
  });
}

const server = new Server({ name: "golden", version: "1" });
server.tool("works", {}, () => inSpan("working", async () => "done"));
server.tool("refuses", {}, () => {
  throw new ToolError("not today");
});
server.tool("breaks", {}, () => {
  throw new RangeError("broken");
});
server.tool("rejects", {}, () => {
  throw new RpcError(-31999, "not now");
});
server.tool("hangs", {}, async (_, ctx) => {
  ctx.progress(0, 1);
  await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
});
server.tool("elicits", {}, async (_, ctx) => (await ctx.elicit("Sure?")).action);
server.tool("samples", {}, async (_, ctx) => {
  const messages = [{ role: "user", content: { type: "text", text: "Hello" } }];
  return (await ctx.sample({ messages, maxTokens: 1 })).content.text;
});
server.tool("lists_roots", {}, async (_, ctx) => String((await ctx.listRoots()).length));
server.resource("note://a", { name: "note" }, () => "a note");
server.resource("note://numbered/{number}", { name: "numbered" }, ({ number }) => number);
server.prompt("review", { arguments: { topic: { complete: ["code", "text"] } } }, ({ topic }) => `Review ${topic}`);

/** Calls a tool, and cancels the call when its handler runs. */
async function cancel(client) {
  const controller = new AbortController();
  const options = { signal: controller.signal, onProgress: () => controller.abort() };
  await client.callTool("hangs", {}, options).catch(() => undefined);
}

const operations = {
  "tools/list": (client) => client.listTools(),
  "tools/call": (client) => client.callTool("works"),
  "tools/call, a tool error": (client) => client.callTool("refuses"),
  "tools/call, an exception": (client) => client.callTool("breaks"),
  "tools/call, an error of the handler": (client) => client.callTool("rejects"),
  "tools/call, an unknown tool": (client) => client.callTool("missing"),
  "tools/call, cancelled": cancel,
  "tools/call, sampling": (client) => client.callTool("samples"),
  "tools/call, roots": (client) => client.callTool("lists_roots"),
  "resources/list": (client) => client.listResources(),
  "resources/templates/list": (client) => client.listResourceTemplates(),
  "resources/read": (client) => client.readResource("note://a"),
  "resources/read, of a template": (client) => client.readResource("note://numbered/7"),
  "resources/read, an unknown resource": (client) => client.readResource("note://missing"),
  "prompts/list": (client) => client.listPrompts(),
  "prompts/get": (client) => client.getPrompt("review", { topic: "code" }),
  "completion/complete": (client) => client.complete({ prompt: "review" }, { name: "topic", value: "c" }),
  "an unknown method": (client) => client.request("example/missing"),
};
const notOldest = {
  "tools/call, elicitation": (client) => client.callTool("elicits"),
};
const handshake = {
  ping: (client) => client.ping(),
  "logging/setLevel": (client) => client.setLogLevel("warning"),
  "resources/subscribe": (client) => client.subscribe("note://a"),
  "resources/unsubscribe": (client) => client.unsubscribe("note://a"),
};

async function connect(revision, transport, [address, ...args]) {
  const options = {
    revisions: [revision],
    elicit: () => inSpan("answering", async () => ({ action: "accept" })),
    sample: () => ({ role: "assistant", model: "none", content: { type: "text", text: "Hello" } }),
    roots: ["/home/ada"],
  };
  switch (transport) {
    case "memory":
      return Client.memory(server, options);
    case "unix":
      return Client.socket(address, options);
    case "http":
    case "http+sse":
      return Client.connect(address, options);
    default:
      return Client.spawn(address, args, options);
  }
}

async function perform(revision, transport, address) {
  const all = {
    ...operations,
    ...(revision === OLDEST ? {} : notOldest),
    ...(revision === MODERN ? {} : handshake),
  };
  const client = await connect(revision, transport, address);
  for (const [name, operation] of Object.entries(all)) {
    await inSpan(name, async () => {
      try {
        await operation(client);
      } catch (error) {
        if (!(error instanceof RpcError)) {
          throw error;
        }
      }
    });
  }
  await client.close();
}

const [role, ...rest] = process.argv.slice(2);
if (role === "client") {
  const [revision, transport, ...address] = rest;
  await perform(revision, transport, address);
} else if (rest.length === 0) {
  await server.run();
} else {
  const [kind, place] = rest;
  server.closeOnSignals();
  await (kind === "--unix" ? server.listenUnix(place) : server.listen({ port: Number(place) }));
}
