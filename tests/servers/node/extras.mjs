// Features of `--extras 1`, for tests/hostile and some vectors: a tool that logs as many messages as requested, one
// that makes the mistakes of an author, a template that is costly to match, and one for files.
import { setImmediate as nextTurn } from "node:timers/promises";

import { RpcError } from "mcpline";

import { object, optional, string } from "./fixtures.mjs";

const integer = { type: "integer" };

const LONELY = {
  role: "user",
  content: [{ type: "tool_result", toolUseId: "a", content: [] }],
};

/** Returns a user message for the model, with further parameters. */
function hi(more) {
  return {
    messages: [{ role: "user", content: { type: "text", text: "hi" } }],
    maxTokens: 1,
    ...more,
  };
}

/** The mistakes by name, which mcpline rejects. */
const MISTAKES = {
  "reserved code": () => {
    throw new RpcError(-32050, "secret-detail-7c1f");
  },
  "nested form": (ctx, options) =>
    ctx.elicit("Where?", optional({ address: { type: "object", properties: {} } }), options),
  "bad url": (ctx, options) => ctx.elicitUrl("Go", "not a url", options),
  "lonely result": (ctx, options) => ctx.sample({ messages: [LONELY], maxTokens: 1 }, options),
  priority: (ctx, options) => ctx.sample(hi({ modelPreferences: { costPriority: 2 } }), options),
  context: (ctx, options) => ctx.sample(hi({ includeContext: "thisServer" }), options),
};

/** The text that `test_flood` logs. */
let flood = "";

export function addExtras(server) {
  server.tool(
    "test_flood",
    {
      description: "Logs a number of messages of a size",
      input: object({ count: integer, size: integer }),
    },
    async ({ count, size }, ctx) => {
      // All calls share one text, because memory that handlers hold until the garbage collection does not belong to the
      // server.
      if (flood.length !== size) {
        flood = "x".repeat(size);
      }
      const text = flood;
      // A call without a client ends, so that the process can exit when it is stopped.
      for (let sent = 0; sent < count && !ctx.signal.aborted; sent += 1) {
        ctx.info(text);
        // Yields like a handler that does other work, so that the stream opens and a client can read it.
        await nextTurn();
      }
      return "flooded";
    },
  );

  server.tool(
    "test_mistake",
    {
      description: "Does what its author must not",
      input: object({ kind: string }),
    },
    async ({ kind }, ctx) => {
      await MISTAKES[kind](ctx, { key: "wrong" });
      return "answered";
    },
  );

  server.resource(
    "file:///extras/{name}",
    {
      name: "extras",
      description: "Files by their names",
      mimeType: "application/json",
      list: () => [
        "file:///extras/one",
        { uri: "file:///extras/two", name: "two", description: "The second file" },
        "file:///other/three",
      ],
    },
    (variables) => JSON.stringify(variables),
  );

  server.resource(
    "log://{host}-{day}-{name}",
    {
      name: "logs",
      description: "Logs of a host",
      mimeType: "application/json",
    },
    (variables) => JSON.stringify(variables),
  );
}
