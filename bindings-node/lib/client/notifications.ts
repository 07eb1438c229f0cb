/** Iteration over a server's notifications. */

import { UsageError } from "../errors.js";
import { hold, release } from "../hub.js";
import type { Notification } from "../protocol.js";
import type { Host, Taker } from "./host.js";

/** Maximum number of notifications that wait for the iterating code. */
const MOST = 10_000;

interface Waiting {
  resolve: (result: IteratorResult<Notification, undefined>) => void;
  reject: (error: Error) => void;
}

/** The notifications of a server from now on. Waiting for the next one keeps the process alive. */
export class Notifications implements AsyncIterableIterator<Notification, undefined>, Taker {
  readonly #host: Host;
  /** Prevents the garbage collection of the client during the iteration. */
  readonly #client: object;
  #kept: Notification[] = [];
  #waiting: Waiting[] = [];
  #isOver = false;
  #failure: Error | undefined;

  constructor(host: Host, client: object) {
    this.#host = host;
    this.#client = client;
    host.takers.add(this);
  }

  /** Receives a notification. */
  take(notification: Notification): void {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      release();
      waiting.resolve({ done: false, value: notification });
    } else if (this.#kept.length < MOST) {
      this.#kept.push(notification);
    } else {
      this.#failure = new UsageError(`${String(MOST)} notifications wait to be taken: further ones are lost`);
      this.end();
    }
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
    const value = this.#kept.shift();
    if (value !== undefined) {
      return Promise.resolve({ done: false, value });
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
