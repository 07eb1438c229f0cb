/** Iteration over a server's notifications. */

import { UsageError } from "../errors.js";
import { hold, release } from "../hub.js";
import type { Notification } from "../protocol.js";
import { MAX_WAITING_CHARACTERS } from "./backlog.js";
import type { Host, NotificationReceiver } from "./host.js";

/** Maximum number of notifications that wait for the iterating code. Their size has the same limit as for handlers. */
const MAX_WAITING = 10_000;

/** A notification that waits, and the number of characters of its JSON. */
interface Kept {
  readonly notification: Notification;
  readonly size: number;
}

interface Waiting {
  resolve: (result: IteratorResult<Notification, undefined>) => void;
  reject: (error: Error) => void;
}

/** The notifications of a server from now on. Waiting for the next one keeps the process alive. */
export class Notifications implements AsyncIterableIterator<Notification, undefined>, NotificationReceiver {
  readonly #host: Host;
  /** Prevents the garbage collection of the client during the iteration. */
  readonly #client: object;
  #kept: Kept[] = [];
  /** Number of characters of all of `#kept`. */
  #characters = 0;
  #waiting: Waiting[] = [];
  #isOver = false;
  #failure: Error | undefined;

  constructor(host: Host, client: object) {
    this.#host = host;
    this.#client = client;
    host.takers.add(this);
  }

  /** Receives a notification, whose JSON has `size` characters. */
  take(notification: Notification, size: number): void {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      release();
      waiting.resolve({ done: false, value: notification });
    } else if (this.#hasRoom(size)) {
      this.#kept.push({ notification, size });
      this.#characters += size;
    } else {
      this.#failure = new UsageError(
        `client.notifications(): the loop is slower than the server. It ended because ${String(MAX_WAITING)} notifications ` +
          `or ${String(MAX_WAITING_CHARACTERS)} characters of them were waiting; later ones are lost`,
      );
      this.end();
    }
  }

  /** Returns whether a notification fits. A single one is kept whatever its size. */
  #hasRoom(size: number): boolean {
    const fits = this.#characters + size <= MAX_WAITING_CHARACTERS;
    return this.#kept.length < MAX_WAITING && (fits || this.#kept.length === 0);
  }

  /** Ends the iteration. Waiting notifications are still delivered. */
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

  /** The client. @internal */
  get client(): object {
    return this.#client;
  }
}
