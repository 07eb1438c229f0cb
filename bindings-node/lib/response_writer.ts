/** Delivery of responses to their clients, with backpressure and a write timeout. */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

import { errorText, warn } from "./client/host.js";
import { ClosedError } from "./errors.js";
import type { PartialResponse, HttpExchange, Recipient } from "./http.js";

/** Maximum number of bytes of a response to write at once. The rest stays in the core, which accounts for it. */
export const ROOM = 64 * 1024;

/** The same for a response that waits for others of its connection. Smaller amounts are not counted by the core. */
const QUEUED_ROOM = 4 * 1024 - 1;

/** Size in bytes from which responses have a write timeout. Smaller ones fit the buffers of every system. */
const WATCHED = 16 * 1024;

/** Responses that wait for earlier ones of their connection. `node:http` does not report when it ends. */
const queues = new WeakMap<Socket, Set<ResponseWriter>>();

function queueOf(socket: Socket): Set<ResponseWriter> {
  let queue = queues.get(socket);
  if (queue === undefined) {
    const queued = new Set<ResponseWriter>();
    queues.set(socket, queued);
    socket.once("close", () => {
      for (const delivery of queued) {
        delivery.lost();
      }
    });
    queue = queued;
  }
  return queue;
}

/** Delivers a response to a client of `node:http`. */
export class ResponseWriter implements Recipient {
  #isSettled = false;
  #isLost = false;
  #onTurn: (() => void) | undefined;

  constructor(
    private readonly exchange: HttpExchange,
    private readonly response: ServerResponse,
    private readonly writeTimeout: number,
  ) {
    if (this.#isQueued) {
      const queue = queueOf(response.req.socket);
      queue.add(this);
      response.once("socket", () => {
        queue.delete(this);
        this.#onTurn?.();
      });
    }
  }

  /** Whether responses to earlier pipelined requests still occupy the connection. */
  get #isQueued(): boolean {
    const { response } = this;
    return response.socket === null && response.req.httpVersionMajor === 1 && !response.destroyed;
  }

  get room(): number {
    return this.#isQueued ? QUEUED_ROOM : ROOM;
  }

  answered({ status, headers, body, isAscii, isComplete, isRead }: PartialResponse): void {
    this.#isSettled = true;
    const { response } = this;
    if (response.destroyed || this.#isLost) {
      if (!isComplete) {
        this.exchange.close();
      }
      return;
    }
    const connection = headers.findIndex((name, index) => index % 2 === 0 && name === "connection");
    if (response.req.httpVersionMajor === 1) {
      if (!isRead && connection === -1) {
        // The rest of the request's body would have to be read before the next request.
        headers.push("connection", "close");
      }
    } else if (connection !== -1) {
      // The core does not know the version. HTTP/2 has no such header.
      headers.splice(connection, 2);
    }
    try {
      response.writeHead(status, headers);
    } catch (error) {
      // A handler of a route has set a header that this server does not accept.
      warn(`cannot send the headers of a response: ${errorText(error)}`, error);
      response.destroy();
      if (!isComplete) {
        this.exchange.close();
      }
      return;
    }
    if (!isComplete || body.length > WATCHED || this.#isQueued) {
      this.#watch();
    }
    // `node:http` writes the head together with a body that is a string, and in the encoding of that: UTF-8.
    const begun = isAscii ? body : Buffer.from(body);
    if (isComplete) {
      response.end(begun);
      return;
    }
    response.once("close", () => {
      this.exchange.close();
    });
    if (this.#isQueued) {
      this.#onTurn = () => {
        this.#stream(begun);
      };
    } else {
      this.#stream(begun);
    }
  }

  /** Writes the head of a stream and its body. */
  #stream(begun: string | Uint8Array): void {
    const { response } = this;
    if (begun === "") {
      response.flushHeaders();
      this.#writePieces();
    } else if (response.write(begun)) {
      this.#writePieces();
    } else {
      this.#writeWhenDrained();
    }
  }

  /** Writes the pieces of the body that are available, and arranges for the rest. */
  #writePieces(): void {
    const { response, exchange } = this;
    const goOn = () => {
      this.#writePieces();
    };
    while (!response.destroyed) {
      let piece: Buffer | null | undefined;
      try {
        piece = exchange.next(goOn);
      } catch {
        // The response is cut off, so that the client does not take it for complete.
        response.destroy();
        return;
      }
      if (piece === undefined) {
        response.end();
        return;
      }
      if (piece === null) {
        return;
      }
      if (!response.write(piece)) {
        this.#writeWhenDrained();
        return;
      }
    }
  }

  /** Continues once the client has read enough. */
  #writeWhenDrained(): void {
    const { response } = this;
    const goOn = () => {
      response.off("drain", goOn).off("close", goOn);
      this.#writePieces();
    };
    response.on("drain", goOn).on("close", goOn);
  }

  /** Ends the connection of a client that reads nothing for too long. */
  #watch(): void {
    const { response } = this;
    response.setTimeout(this.writeTimeout, () => {
      if (response.writableLength > 0 || (response.socket?.writableLength ?? 0) > 0) {
        response.destroy();
      }
    });
  }

  /** Called if the connection has ended before the response's turn. */
  lost(): void {
    this.#isLost = true;
    this.exchange.close();
    this.#onTurn?.();
  }

  /** Responds to a request that the core cannot read, or ends it if the client is gone. */
  failed(error: unknown): void {
    this.#isSettled = true;
    const { response } = this;
    if (!response.headersSent && !response.destroyed && !this.#isLost) {
      const isClosed = error instanceof ClosedError;
      const close = isClosed && response.req.httpVersionMajor === 1 ? { connection: "close" } : {};
      response.writeHead(isClosed ? 503 : 400, { "content-type": "text/plain", ...close });
      response.end(error instanceof Error ? error.message : String(error));
    }
  }

  waits(): void {
    const closed = () => {
      if (!this.#isSettled) {
        this.exchange.close();
      }
    };
    if (this.response.destroyed) {
      closed();
    } else {
      this.response.once("close", closed);
    }
  }
}

/**
 * Returns the body of a response as a stream. It is aborted if its next piece is not read for `timeout` milliseconds.
 */
export function streamOf(exchange: HttpExchange, begun: string, timeout: number): ReadableStream<Uint8Array> {
  let rest = begun;
  let timer: NodeJS.Timeout | undefined;
  const give = (controller: ReadableStreamDefaultController<Uint8Array>, piece: Uint8Array) => {
    controller.enqueue(piece);
    timer = setTimeout(() => {
      exchange.close();
      controller.error(new Error("the client does not read the response"));
    }, timeout).unref();
  };
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      clearTimeout(timer);
      if (rest !== "") {
        give(controller, Buffer.from(rest));
        rest = "";
        return undefined;
      }
      return new Promise<void>((resolve, reject) => {
        const ready = () => {
          try {
            const piece = exchange.next(ready);
            if (piece === null) {
              return;
            }
            if (piece === undefined) {
              controller.close();
            } else {
              give(controller, piece);
            }
            resolve();
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
          }
        };
        ready();
      });
    },
    cancel() {
      clearTimeout(timer);
      exchange.close();
    },
  });
}
