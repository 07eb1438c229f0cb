/** What a server tells, as something to iterate over. */

import { UsageError } from "../errors.js";
import { hold, release } from "../hub.js";
import type { Notification } from "../protocol.js";
import { MOST_CHARACTERS } from "./backlog.js";
import type { Host, Taker } from "./host.js";

/**
 * How many notifications wait for whoever iterates: enough for any burst, and a bound for a loop that is stuck. Large ones
 * are bounded by `MOST_CHARACTERS`, like those that wait for handlers.
 */
const MOST = 10_000;

/** A notification that waits, and how many characters its JSON has. */
interface Kept {
  readonly notification: Notification;
  readonly size: number;
}

interface Waiting {
  resolve: (result: IteratorResult<Notification, undefined>) => void;
  reject: (error: Error) => void;
}

/** What is told from its making on. Whoever waits for the next one keeps the process alive. */
export class Notifications implements AsyncIterableIterator<Notification, undefined>, Taker {
  readonly #host: Host;
  /** Kept, so that the client isn't collected while somebody listens. */
  readonly #client: object;
  #kept: Kept[] = [];
  /** The characters of all of them. */
  #characters = 0;
  #waiting: Waiting[] = [];
  #isOver = false;
  #failure: Error | undefined;

  constructor(host: Host, client: object) {
    this.#host = host;
    this.#client = client;
    host.takers.add(this);
  }

  /** Takes one that was told. `size` is how many characters its JSON has. */
  take(notification: Notification, size: number): void {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      release();
      waiting.resolve({ done: false, value: notification });
    } else if (this.#kept.length < MOST && (this.#kept.length === 0 || this.#characters + size <= MOST_CHARACTERS)) {
      this.#kept.push({ notification, size });
      this.#characters += size;
    } else {
      this.#failure = new UsageError(
        `client.notifications(): the loop is slower than the server. It ended after ${String(MOST)} notifications or ` +
          `${String(MOST_CHARACTERS)} characters of them had not been read; later ones are lost`,
      );
      this.end();
    }
  }

  /** Ends it: what waits is still given. */
  end(): void {
    this.#isOver = true;
    this.#host.takers.delete(this);
    for (const { resolve } of this.#waiting.splice(0)) {
      release();
      resolve({ done: true, value: undefined });
    }
  }

  next(): Promise<IteratorResult<Notification, undefined>> {
    const kept = this.#kept.shift();
    if (kept !== undefined) {
      this.#characters -= kept.size;
      return Promise.resolve({ done: false, value: kept.notification });
    }
    if (this.#failure !== undefined) {
      const failure = this.#failure;
      this.#failure = undefined;
      return Promise.reject(failure);
    }
    if (this.#isOver) {
      return Promise.resolve({ done: true, value: undefined });
    }
    hold();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  return(): Promise<IteratorResult<Notification, undefined>> {
    this.#kept = [];
    this.#characters = 0;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The client that is listened to. @internal */
  get client(): object {
    return this.#client;
  }
}
