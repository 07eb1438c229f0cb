// A host: calls the tool `relay` of the next server, once without and once with an input request, each in a span of its own.
// Reads TRACING_NEXT (a URL, or a command as JSON) and TRACING_REVISION. Prints what the last server received, by the name of the span.
import { trace } from "@opentelemetry/api";
import { Client } from "mcpline";

const tracer = trace.getTracer("host");

/** Runs a function in a span that is the parent of those that it begins. */
async function inSpan(name, run) {
  return tracer.startActiveSpan(name, async (span) => {
    try {
      return await run();
    } finally {
      span.end();
    }
  });
}

const next = process.env.TRACING_NEXT;
const options = {
  revisions: [process.env.TRACING_REVISION],
  elicit: () => inSpan("answering", async () => ({ action: "accept", content: { value: true } })),
};

async function connect() {
  if (next.startsWith("http")) {
    return Client.connect(next, options);
  }
  const [program, ...args] = JSON.parse(next);
  return Client.spawn(program, args, options);
}

const results = {};
const client = await connect();
const calls = { planning: { asks: false } };
if (process.env.TRACING_REVISION !== "2024-11-05") {
  // That revision has no elicitation.
  calls["planning with a question"] = { asks: true };
}
for (const [name, args] of Object.entries(calls)) {
  results[name] = await inSpan(name, async () => {
    const result = await client.callTool("relay", args);
    if (result.isError) {
      throw new Error(JSON.stringify(result.content));
    }
    return JSON.parse(result.content[0].text);
  });
}
await client.close();
console.log(JSON.stringify(results));
