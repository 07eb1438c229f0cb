/** A check of shared state that a program implements: what the methods of `sharing.ts` promise. The core makes it. */

import { Server } from "./server.js";
import type { Sharing } from "./sharing.js";

/**
 * Checks that stores of a program do what {@link Sharing} says; for a test of the program.
 *
 * It sends the requests that a server sends: it saves, changes and removes sessions, also at the same time, writes and reads streams, and
 * publishes messages, each within {@link Sharing.timeout}. Use a database for tests: what is written under names that begin with `check-`
 * may stay there.
 *
 * @param other The same as another process has them: with connections of its own to the same database. Default: `sharing`.
 * @throws UsageError if a method fails, does not return in time or does something else. Its `operation` is the method, such as
 *   `sessions.save`; the text says what is wrong.
 */
export async function checkSharing(sharing: Sharing, other: Sharing = sharing): Promise<void> {
  // Errors of methods are a part of the outcome.
  const server = new Server({ name: "check", version: "1", tracing: false, onError: () => undefined });
  try {
    await server.checkSharing(sharing, other);
  } finally {
    await server.close();
  }
}
