// Tools that report progress, wait and are cancelled.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

import { object, string } from "./fixtures.mjs";

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** Named doors, each of which opens once and stays open. Calls can wait for a door before or after it opens. */
class Doors {
  #doors = new Map();

  passed(name) {
    return this.#door(name).promise;
  }

  open(name) {
    this.#door(name).open();
  }

  #door(name) {
    let door = this.#doors.get(name);
    if (door === undefined) {
      door = {};
      door.promise = new Promise((open) => {
        door.open = open;
      });
      this.#doors.set(name, door);
    }
    return door;
  }
}

export const gates = new Doors();
const cancellations = new Doors();

/** Waits until the call is cancelled, and records its label. */
export async function untilCancelled({ label }, ctx) {
  ctx.progress(0, 1, "waiting");
  if (!ctx.signal.aborted) {
    await once(ctx.signal, "abort");
  }
  cancellations.open(label);
  throw ctx.signal.reason;
}

export function addRunningTools(server) {
  server.tool("test_tool_with_logging", { description: "Logs while it runs" }, async (_, ctx) => {
    ctx.info("Tool execution started");
    await sleep(50);
    ctx.info("Tool processing data");
    await sleep(50);
    ctx.info("Tool execution completed");
    return "Tool with logging executed successfully";
  });

  server.tool("test_log_levels", { description: "Logs once at each level" }, async (_, ctx) => {
    for (const level of LEVELS) {
      ctx.log(level, `message at ${level}`, "fixture");
    }
    return "logged";
  });

  server.tool("test_logging_tool", { description: "Logs once" }, (_, ctx) => {
    ctx.info("Logging tool called");
    return "logged";
  });

  server.tool("test_tool_with_progress", { description: "Reports progress" }, async (_, ctx) => {
    for (const step of [0, 50, 100]) {
      ctx.progress(step, 100, `Completed step ${step} of 100`);
      await sleep(50);
    }
    return "progress done";
  });

  server.tool("test_reconnection", { description: "Closes its stream and goes on" }, async (_, ctx) => {
    ctx.closeStream();
    await sleep(100);
    return "reconnected";
  });

  server.tool(
    "test_gate",
    { description: "Waits until a gate is open", input: object({ name: string }) },
    async ({ name }, ctx) => {
      ctx.progress(0, 1, "waiting");
      await gates.passed(name);
      return `gate ${name} passed`;
    },
  );

  server.tool(
    "test_open_gate",
    { description: "Opens a gate for good", input: object({ name: string }) },
    ({ name }) => {
      gates.open(name);
      return `gate ${name} opened`;
    },
  );

  server.tool(
    "test_cancellation",
    { description: "Waits until it is cancelled", input: object({ label: string }) },
    untilCancelled,
  );

  server.tool(
    "test_cancellation_status",
    { description: "Waits until another tool was cancelled", input: object({ label: string }) },
    async ({ label }) => {
      await cancellations.passed(label);
      return `${label} was cancelled`;
    },
  );
}
