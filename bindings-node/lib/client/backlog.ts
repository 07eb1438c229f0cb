/** The queue of a slow listener. */

import { warn } from "./host.js";

/** Maximum number of notifications or reports that wait for a slow listener; as in the core. */
const MOST = 4096;

/** Maximum size of the waiting ones, in characters: two of the longest messages. */
const MOST_CHARACTERS = 32 * 1024 * 1024;

/** Runs one listener after another. If too many wait, further ones are dropped, with one warning. */
export class Backlog {
  /** Settles when every listener has ended; `undefined` while none runs. Never rejects. */
  last: Promise<void> | undefined;
  readonly #what: string;
  #waiting = 0;
  #characters = 0;
  #overflowed = false;

  constructor(what: string) {
    this.#what = what;
  }

  /** Runs `listen`, which must not throw, after the previous ones. `size` is the number of characters that it holds. */
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
