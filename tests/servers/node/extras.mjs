// What only tests/hostile uses: a tool that logs as much as it is told, and a template that is costly to match.
import { setImmediate as nextTurn } from "node:timers/promises";

import { object } from "./fixtures.mjs";

const integer = { type: "integer" };

export function addExtras(server) {
  server.tool(
    "test_flood",
    { description: "Logs a number of messages of a size", input: object({ count: integer, size: integer }) },
    async ({ count, size }, ctx) => {
      const text = "x".repeat(size);
      for (let sent = 0; sent < count; sent += 1) {
        ctx.info(text);
        // As a handler does that works meanwhile: the stream is open, and read if anybody reads.
        await nextTurn();
      }
      return "flooded";
    },
  );

  server.resourceTemplate(
    "log://{host}-{day}-{name}",
    { name: "logs", description: "Logs of a host", mimeType: "application/json" },
    (variables) => JSON.stringify(variables),
  );
}
