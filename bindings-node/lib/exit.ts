/** The end of the process: on a signal, once its server has closed, and what is written before. */

import { native } from "./native.js";

/** Time that the program has to exit by itself after its server has stopped, in milliseconds. */
const EXIT_AFTER = 250;

/** Exits the process after {@link EXIT_AFTER} if the condition holds, unless it ends by itself. */
export function exitSoon(condition: () => boolean): void {
  const exit = () => {
    if (condition()) {
      process.exit();
    }
  };
  setTimeout(exit, EXIT_AFTER).unref();
}

let closesOnSignals = false;

/** Ends a worker process that its supervisor has stopped, or a supervisor that has failed, if the program ends on signals. */
export function exitIfClosedOnSignals(): void {
  if (closesOnSignals) {
    exitSoon(() => true);
  }
}

/** On SIGINT or SIGTERM, closes a server and ends the process. A second signal ends the process at once. */
export function closeOnSignals(close: () => Promise<void>): void {
  closesOnSignals = true;
  const closeOnce = () => {
    process.off("SIGINT", closeOnce).off("SIGTERM", closeOnce);
    void close().finally(() => {
      exitSoon(() => true);
    });
  };
  process.once("SIGINT", closeOnce).once("SIGTERM", closeOnce);
}

let flushesTraffic = false;

/** Prints what servers in debug mode have exchanged with their clients before the process ends. */
export function flushTrafficAtExit(): void {
  if (!flushesTraffic) {
    flushesTraffic = true;
    process.on("exit", () => {
      native.flushTraffic();
    });
  }
}
