/** The queue of a slow listener. */

import { warn } from "./host.js";

/** Maximum number of notifications and reports that wait for the slow listeners of one client; as in the core. */
const MAX_WAITING = 4096;

/** Maximum size of the waiting items, in characters of JSON: two messages of maximum length. */
export const MAX_WAITING_CHARACTERS = 32 * 1024 * 1024;

/**
 * Counts items that wait for the slow listeners of one client. The listeners share the limit: a server decides how many
 * requests it leaves open, and each may have a listener.
 */
export class BacklogLimit {
  #items = 0;
  #characters = 0;

  /** Counts an item of so many characters and returns `true`, or returns `false` if there is no room for it. */
  admit(characters: number): boolean {
    const isFull = this.#items >= MAX_WAITING || this.#characters + characters > MAX_WAITING_CHARACTERS;
    if (isFull && this.#items > 0) {
      return false;
    }
    this.#items += 1;
    this.#characters += characters;
    return true;
  }

  /** Releases the room of an admitted item, with the same number of characters as for {@link admit}. */
  release(characters: number): void {
    this.#items -= 1;
    this.#characters -= characters;
  }
}

/** Runs one listener after another. If too many wait, further ones are dropped, with one warning. */
export class Backlog {
  /** Settles when every listener has ended; `undefined` while none runs. Never rejects. */
  last: Promise<void> | undefined;
  readonly #what: string;
  readonly #waiting: BacklogLimit;
  #overflowed = false;

  constructor(what: string, waiting: BacklogLimit) {
    this.#what = what;
    this.#waiting = waiting;
  }

  /**
   * Runs `listen` after the functions that were passed before. `listen` must not throw. While it waits, it counts as
   * `size` characters.
   */
  run(size: number, listen: () => Promise<void> | undefined): void {
    if (this.last === undefined) {
      const running = listen();
      if (running !== undefined) {
        this.#follow(running);
      }
      return;
    }
    if (!this.#waiting.admit(size)) {
      if (!this.#overflowed) {
        this.#overflowed = true;
        warn(`${this.#what} is slower than its server`, "messages for it are dropped until it has caught up");
      }
      return;
    }
    this.#follow(
      this.last.then(() => {
        this.#waiting.release(size);
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
