/** What waits for listeners that take their time. */

import { warn } from "./host.js";

/** How many notifications or reports wait for a listener that is slower than its server: as many as in the core. */
const MOST = 4096;

/** How many characters of them wait: two of the longest messages. */
const MOST_CHARACTERS = 32 * 1024 * 1024;

/** Runs one listener after the other. What comes while too many wait is dropped, and the developer is told once. */
export class Backlog {
  /** Settled when every listener has ended; `undefined` while none runs. Never rejected. */
  last: Promise<void> | undefined;
  readonly #what: string;
  #waiting = 0;
  #characters = 0;
  #overflowed = false;

  constructor(what: string) {
    this.#what = what;
  }

  /** Runs `listen`, which never throws, after those before it. `size` is how many characters it keeps. */
  run(size: number, listen: () => Promise<void> | undefined): void {
    if (this.last === undefined) {
      const running = listen();
      if (running !== undefined) {
        this.#follow(running);
      }
      return;
    }
    if (this.#waiting >= MOST || (this.#waiting > 0 && this.#characters + size > MOST_CHARACTERS)) {
      if (!this.#overflowed) {
        this.#overflowed = true;
        warn(`${this.#what} is slower than its server`, "what it is sent is dropped until it has caught up");
      }
      return;
    }
    this.#waiting += 1;
    this.#characters += size;
    this.#follow(
      this.last.then(() => {
        this.#waiting -= 1;
        this.#characters -= size;
        return listen();
      }),
    );
  }

  #follow(running: Promise<void>): void {
    this.last = running;
    void running.then(() => {
      if (this.last === running) {
        this.last = undefined;
        this.#overflowed = false;
      }
    });
  }
}
