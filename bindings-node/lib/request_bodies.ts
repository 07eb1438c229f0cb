/** Request bodies of a mounted server, read on demand of the core. */

import type { IncomingMessage } from "node:http";

/**
 * Bodies up to this size, in bytes, are collected before the core is called, which is cheaper. It is the size that
 * runtimes read at once.
 */
const MAX_COLLECTED_BYTES = 64 * 1024;

/** Time to wait for a short body before the core is called anyway, in milliseconds. The core's timeouts begin then. */
const CHECK_INTERVAL = 50;

/** The body of a request cannot be read. The client does not learn the cause, which may be internal. */
export class UnreadableBodyError extends Error {
  constructor(cause: unknown) {
    super("the body of the request cannot be read", { cause });
    this.name = "UnreadableBodyError";
  }
}

/** Receives a piece of a body, and whether more follows. When no more follows, the piece may be `undefined`. */
export type OnBodyChunk = (piece: Uint8Array | undefined, more: boolean) => void;

/** The rest of a body, for an exchange that has begun. */
export interface Source {
  /** Reads the next piece and passes it on, or the error if that is not possible. */
  pull(feed: OnBodyChunk, fail: (error: UnreadableBodyError) => void): void;
  /** Stops reading. */
  stop(): void;
}

/** Begins an exchange, with the whole body, or with its beginning and the source of the rest. */
export type Begin = (body: Uint8Array | undefined, rest: Source | undefined) => void;

/** Short bodies that have not arrived completely. They share one timer. */
const pendingBodies = new Set<PendingBody>();
let timer: NodeJS.Timeout | undefined;

abstract class PendingBody {
  #seen = false;

  protected watch(): void {
    pendingBodies.add(this);
    timer ??= setInterval(checkPending, CHECK_INTERVAL).unref();
  }

  protected arrived(): void {
    pendingBodies.delete(this);
  }

  /** Returns whether it was already waiting at the last check. */
  isLate(): boolean {
    const seen = this.#seen;
    this.#seen = true;
    return seen;
  }

  /** Whether the client has disconnected. */
  abstract readonly isLost: boolean;

  /** Begins the exchange without the whole body. */
  abstract handOver(): void;
}

function checkPending(): void {
  for (const body of pendingBodies) {
    if (body.isLost) {
      pendingBodies.delete(body);
    } else if (body.isLate()) {
      pendingBodies.delete(body);
      body.handOver();
    }
  }
  if (pendingBodies.size === 0) {
    clearInterval(timer);
    timer = undefined;
  }
}

/** Request body of `node:http`. */
export class IncomingBody extends PendingBody implements Source {
  readonly #request: IncomingMessage;
  readonly #begin: Begin;
  #first: Uint8Array | undefined;
  #more: Uint8Array[] | undefined;
  #feed: OnBodyChunk | undefined;
  #isHandedOver = false;
  #hasEnded = false;
  #isListening = false;

  constructor(request: IncomingMessage, begin: Begin) {
    super();
    this.#request = request;
    this.#begin = begin;
    const length = Number(request.headers["content-length"] ?? Number.NaN);
    if (length <= MAX_COLLECTED_BYTES) {
      this.watch();
      this.#listen();
    } else {
      this.handOver();
    }
  }

  get isLost(): boolean {
    // A listener of `close` would cost several percent of a call.
    return this.#request.destroyed;
  }

  handOver(): void {
    this.#isHandedOver = true;
    this.#request.pause();
    this.#begin(this.#take(), this);
  }

  pull(feed: OnBodyChunk): void {
    this.#feed = feed;
    if (!this.#isListening) {
      this.#listen();
    }
    if (this.#hasEnded) {
      this.#end();
    } else {
      this.#request.resume();
    }
  }

  stop(): void {
    this.#feed = undefined;
    this.#request.off("data", this.#onData).off("end", this.#onEnd);
    this.#request.pause();
  }

  /** Returns the collected pieces, and forgets them. */
  #take(): Uint8Array | undefined {
    const taken = this.#more === undefined ? this.#first : Buffer.concat(this.#more);
    this.#first = undefined;
    this.#more = undefined;
    return taken;
  }

  #listen(): void {
    this.#isListening = true;
    this.#request.on("data", this.#onData).on("end", this.#onEnd);
    if (this.#request.readableFlowing === false) {
      // Code that ran before has paused it, until somebody reads.
      this.#request.resume();
    }
  }

  readonly #onData = (piece: Buffer): void => {
    if (!this.#isHandedOver) {
      if (this.#first === undefined) {
        this.#first = piece;
      } else {
        (this.#more ??= [this.#first]).push(piece);
      }
      return;
    }
    this.#request.pause();
    const feed = this.#feed;
    this.#feed = undefined;
    feed?.(piece, true);
  };

  readonly #onEnd = (): void => {
    this.arrived();
    this.#hasEnded = true;
    if (this.#isHandedOver) {
      this.#end();
    } else {
      this.#begin(this.#take(), undefined);
    }
  };

  #end(): void {
    const feed = this.#feed;
    this.#feed = undefined;
    feed?.(undefined, false);
  }
}

/** Request body of the Fetch API. */
export class FetchBody extends PendingBody implements Source {
  readonly #request: Request;
  readonly #begin: Begin;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #whole: Promise<Uint8Array> | undefined;
  #isHandedOver = false;
  #isStopped = false;

  constructor(request: Request, length: number, begin: Begin) {
    super();
    this.#request = request;
    this.#begin = begin;
    if (length >= 0 && length <= MAX_COLLECTED_BYTES) {
      this.watch();
      void this.#collect();
    } else {
      this.handOver();
    }
  }

  // Reading the body of a client that has disconnected fails, and the core is told.
  readonly isLost = false;

  handOver(): void {
    this.#isHandedOver = true;
    this.#begin(undefined, this);
  }

  pull(feed: OnBodyChunk, fail: (error: UnreadableBodyError) => void): void {
    void this.#pull(feed, fail);
  }

  stop(): void {
    this.#isStopped = true;
    this.arrived();
    // Cancelling the stream would end the connection before the response is out.
    this.#reader?.releaseLock();
    this.#reader = undefined;
  }

  async #collect(): Promise<void> {
    const collected = this.#request.arrayBuffer().then((buffer) => new Uint8Array(buffer));
    this.#whole = collected;
    let body: Uint8Array | undefined;
    try {
      body = await collected;
    } catch {
      // The client has disconnected: the core detects the incomplete body.
    }
    this.arrived();
    if (!this.#isHandedOver) {
      this.#begin(body, undefined);
    }
  }

  async #pull(feed: OnBodyChunk, fail: (error: UnreadableBodyError) => void): Promise<void> {
    let piece: Uint8Array | undefined;
    let more = false;
    try {
      if (this.#whole === undefined) {
        this.#reader ??= this.#request.body?.getReader();
        const read = await this.#reader?.read();
        piece = read?.value;
        more = read?.done === false;
      } else {
        piece = await this.#whole;
      }
    } catch (error) {
      // After `stop`, no more is needed.
      if (!this.#isStopped) {
        fail(new UnreadableBodyError(error));
      }
      return;
    }
    feed(piece, more);
  }
}
