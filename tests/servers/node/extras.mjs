// What only tests/hostile and some vectors use: a tool that logs as much as it is told, one that does what its author must
// not, a template that is costly to match, and one of files.
import { setImmediate as nextTurn } from "node:timers/promises";

import { RpcError } from "mcpline";

import { object, optional, string } from "./fixtures.mjs";

const integer = { type: "integer" };

const LONELY = {
  role: "user",
  content: [{ type: "tool_result", toolUseId: "a", content: [] }],
};

/** A user's message to a model, with further parameters. */
function hi(more) {
  return {
    messages: [{ role: "user", content: { type: "text", text: "hi" } }],
    maxTokens: 1,
    ...more,
  };
}

/** What mcpline refuses of its author, by its name. */
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

/** What `test_flood` logs. */
let flood = "";

export function addExtras(server) {
  server.tool(
    "test_flood",
    {
      description: "Logs a number of messages of a size",
      input: object({ count: integer, size: integer }),
    },
    async ({ count, size }, ctx) => {
      // One text for all calls: what handlers keep, and leave to the garbage collector, is not the server's memory.
      if (flood.length !== size) {
        flood = "x".repeat(size);
      }
      const text = flood;
      // A call that nobody waits for any more ends, and the process with it when it is told to.
      for (let sent = 0; sent < count && !ctx.signal.aborted; sent += 1) {
        ctx.info(text);
        // As a handler does that works meanwhile: the stream is open, and read if anybody reads.
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

  server.resourceTemplate(
    "file:///extras/{name}",
    {
      name: "extras",
      description: "Files by their names",
      mimeType: "application/json",
    },
    (variables) => JSON.stringify(variables),
  );

  server.resourceTemplate(
    "log://{host}-{day}-{name}",
    {
      name: "logs",
      description: "Logs of a host",
      mimeType: "application/json",
    },
    (variables) => JSON.stringify(variables),
  );
}
