/** A server within another HTTP server: Fetch API style, and `(req, res)` style. */

import type { IncomingMessage, ServerResponse } from "node:http";

import { attempt, ClosedError } from "./errors.js";
import { answers, attend, drain, hub, leave, nextNumber } from "./hub.js";
import type { NativeHttpApp } from "./native.js";

/** The head of an answer, and its body as far as it is there. */
interface Answer {
  status: number;
  /** Names and values by turns. */
  headers: string[];
  body: string;
  isComplete: boolean;
}

const texts: string[] = ["", ""];

/** One exchange, from the request to the end of its answer. */
class Exchange {
  readonly number = nextNumber();
  #resolve: ((answer: Answer) => void) | undefined;
  #reject: ((error: unknown) => void) | undefined;
  #onPiece: (() => void) | undefined;
  #isAnswered = false;

  constructor(
    private readonly app: NativeHttpApp,
    private readonly ended: (exchange: number) => void,
  ) {}

  /** Has the core answer. The answer is returned where it is there at once. */
  begin(method: string, target: string, headers: string, body: Uint8Array | undefined): Answer | Promise<Answer> {
    attempt(() => {
      this.app.begin(this.number, method, target, headers, body);
    });
    let answer = this.#poll();
    if (answer !== undefined) {
      return answer;
    }
    attend(this.number, () => {
      this.#ready();
    });
    if (answers[0] === 1) {
      // Its calls: those of sync handlers end right here.
      drain(true);
      answer = this.#isAnswered ? undefined : this.#poll();
      if (answer !== undefined) {
        return answer;
      }
    }
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** The pieces of the rest of the body, as they come. */
  async *pieces(): AsyncGenerator<Buffer, void> {
    attend(this.number, () => {
      this.#ready();
    });
    for (;;) {
      const piece = hub.pollBody(this.number);
      if (piece !== null) {
        yield piece;
      } else if (answers[0] === 1) {
        this.close();
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#onPiece = resolve;
        });
      }
    }
  }

  /** Says that the client disconnected, or that nothing more is needed. */
  close(): void {
    leave(this.number);
    this.ended(this.number);
    hub.dropExchange(this.number);
    const reject = this.#reject;
    this.#reject = undefined;
    reject?.(new ClosedError("the client has disconnected"));
    this.#onPiece?.();
  }

  #ready(): void {
    if (this.#isAnswered) {
      const onPiece = this.#onPiece;
      this.#onPiece = undefined;
      onPiece?.();
      return;
    }
    if (this.#resolve === undefined) {
      // `begin` is still at it, and polls again by itself.
      return;
    }
    try {
      const answer = this.#poll();
      if (answer !== undefined) {
        this.#reject = undefined;
        this.#resolve(answer);
      } else if (answers[0] === 1) {
        drain(true);
      }
    } catch (error) {
      this.#reject?.(error);
    }
  }

  #poll(): Answer | undefined {
    const status = hub.pollExchange(this.number, texts);
    if (status === 0) {
      return undefined;
    }
    this.#isAnswered = true;
    const [head = "", body = ""] = texts;
    const isComplete = answers[0] === 1;
    if (isComplete) {
      leave(this.number);
      this.ended(this.number);
    }
    const headers = head.split("\n");
    headers.pop();
    return { status, headers, body, isComplete };
  }
}

/** A server as an HTTP application. Mounted on a path of its own, it answers everything there. */
export class HttpApp {
  readonly #native: NativeHttpApp;
  readonly #closed: () => void;
  readonly #requests = new Map<number, unknown>();

  /** @internal */
  constructor(native: NativeHttpApp, closed: () => void) {
    this.#native = native;
    this.#closed = closed;
    this.fetch = this.fetch.bind(this);
    this.handler = this.handler.bind(this);
  }

  /** Answers one request: for Hono, Next.js, Bun and whatever else speaks the Fetch API. */
  async fetch(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const lines: string[] = [];
    for (const [name, value] of request.headers) {
      lines.push(name, value);
    }
    if (!request.headers.has("host")) {
      lines.push("host", new URL(request.url).host);
    }
    const body = request.body === null ? undefined : await bytesOf(request.body, this.#native.bodyLimit);
    const exchange = new Exchange(this.#native, (number) => this.#requests.delete(number));
    this.#requests.set(exchange.number, request);
    const aborted = () => {
      exchange.close();
    };
    request.signal.addEventListener("abort", aborted, { once: true });
    const answer = await exchange.begin(request.method, pathname + search, lines.join("\n"), body);
    const headers: [string, string][] = [];
    for (let index = 0; index + 1 < answer.headers.length; index += 2) {
      headers.push([answer.headers[index] as string, answer.headers[index + 1] as string]);
    }
    const { status } = answer;
    if (answer.isComplete) {
      request.signal.removeEventListener("abort", aborted);
      const isEmpty = status === 204 || status === 304 || answer.body === "";
      return new Response(isEmpty ? null : answer.body, { status, headers });
    }
    return new Response(streamOf(exchange, answer.body), { status, headers });
  }

  /** Answers one request of `node:http`, Express or Connect; with Fastify, `request.raw` and `reply.raw`. */
  handler(request: IncomingMessage, response: ServerResponse): void {
    const parsed = (request as { body?: unknown }).body;
    if (parsed !== undefined && request.readableEnded) {
      // A parser in front of us has read it.
      const body = Buffer.isBuffer(parsed) ? parsed : typeof parsed === "string" ? parsed : JSON.stringify(parsed);
      this.#answer(request, response, Buffer.isBuffer(body) ? body : Buffer.from(body));
      return;
    }
    if (request.method === "GET" || request.method === "DELETE" || request.method === "HEAD") {
      this.#answer(request, response, undefined);
      return;
    }
    const limit = this.#native.bodyLimit;
    let first: Buffer | undefined;
    let more: Buffer[] | undefined;
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length - chunk.length > limit) {
        // More than enough to be refused for.
        return;
      }
      if (first === undefined) {
        first = chunk;
      } else {
        (more ??= [first]).push(chunk);
      }
    });
    request.on("end", () => {
      this.#answer(request, response, more === undefined ? first : Buffer.concat(more));
    });
  }

  /** Ends every session and stream of this application. */
  close(): void {
    this.#closed();
    attempt(() => {
      this.#native.close();
    });
  }

  /** The request of an exchange. @internal */
  request(exchange: number): unknown {
    return this.#requests.get(exchange);
  }

  #answer(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void {
    const exchange = new Exchange(this.#native, (number) => this.#requests.delete(number));
    this.#requests.set(exchange.number, request);
    const { originalUrl } = request as { originalUrl?: string };
    const target = originalUrl ?? request.url ?? "/";
    try {
      const answer = exchange.begin(request.method ?? "GET", target, request.rawHeaders.join("\n"), body);
      if (!(answer instanceof Promise)) {
        write(response, answer, exchange);
        return;
      }
      const closed = () => {
        exchange.close();
      };
      response.once("close", closed);
      answer.then(
        (answer) => {
          if (answer.isComplete) {
            response.off("close", closed);
          }
          write(response, answer, exchange);
        },
        (error: unknown) => {
          refuse(response, exchange, error);
        },
      );
    } catch (error) {
      refuse(response, exchange, error);
    }
  }
}

function write(response: ServerResponse, { status, headers, body, isComplete }: Answer, exchange: Exchange): void {
  response.writeHead(status, headers);
  if (isComplete) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  if (body !== "") {
    response.write(body);
  }
  response.once("close", () => {
    exchange.close();
  });
  void stream(response, exchange);
}

async function stream(response: ServerResponse, exchange: Exchange): Promise<void> {
  for await (const piece of exchange.pieces()) {
    if (response.destroyed) {
      break;
    }
    if (!response.write(piece)) {
      await new Promise<void>((resolve) => {
        response.once("drain", resolve).once("close", resolve);
      });
    }
  }
  response.end();
}

/** A request that isn't HTTP as the core reads it, or a client that is gone. */
function refuse(response: ServerResponse, exchange: Exchange, error: unknown): void {
  exchange.close();
  if (!response.headersSent && !response.destroyed) {
    response.writeHead(400, { "content-type": "text/plain" });
    response.end(error instanceof Error ? error.message : String(error));
  }
}

function streamOf(exchange: Exchange, begun: string): ReadableStream<Uint8Array> {
  const pieces = exchange.pieces();
  let rest = begun;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (rest !== "") {
        controller.enqueue(Buffer.from(rest));
        rest = "";
        return;
      }
      const { value, done } = await pieces.next();
      if (done === true) {
        controller.close();
      } else {
        controller.enqueue(value);
      }
    },
    cancel() {
      exchange.close();
    },
  });
}

/** A body, or as much of it as is enough to be refused for. */
async function bytesOf(body: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limit) {
      break;
    }
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
}
