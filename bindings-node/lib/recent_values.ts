/** Values that are kept for a short time after their end. */

/** Maximum number of values per generation. */
const MAX_VALUES = 1024;

/** Size of the values of a generation from which the next one begins, in bytes. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Duration of a generation in milliseconds. */
const GENERATION = 1000;

/**
 * Keeps values by number for one to two seconds, at most 2048 of them, and at most 16 MiB apart from the two largest;
 * whichever bound is reached first ends the oldest ones. It does not keep the process alive.
 */
export class RecentValues<T> {
  #current = new Map<number, T>();
  #previous = new Map<number, T>();
  /** Size of the values of the current generation. */
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `dropped` is called with the number of each value that is no longer kept. */
  constructor(private readonly dropped: (number: number) => void) {}

  get(number: number): T | undefined {
    return this.#current.get(number) ?? this.#previous.get(number);
  }

  /** Keeps a value, which takes about `bytes` of memory. */
  keep(number: number, value: T, bytes: number): void {
    this.#current.set(number, value);
    this.#bytes += bytes;
    if (this.#current.size === MAX_VALUES || this.#bytes >= MAX_BYTES) {
      this.#advance();
    }
    this.#wait();
  }

  /** Drops all values. */
  clear(): void {
    this.#advance();
    this.#advance();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Begins a generation, and drops the last but one. */
  #advance(): void {
    const old = this.#previous;
    this.#previous = this.#current;
    this.#current = new Map();
    this.#bytes = 0;
    for (const number of old.keys()) {
      this.dropped(number);
    }
  }

  #wait(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#advance();
      if (this.#previous.size > 0) {
        this.#wait();
      }
    }, GENERATION).unref();
  }
}
