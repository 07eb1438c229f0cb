/** A server mounted in another HTTP server, for the Fetch API and for `node:http`. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

import { FetchBody, IncomingBody, type OnBodyChunk, type Source, UnreadableBodyError } from "./request_bodies.js";
import {
  callerJson,
  CONSUMED,
  encodedBody,
  type FastifyReplyLike,
  type FastifyRequestLike,
  isConsumed,
  type MountedRequestOptions,
  mountedOptions,
  type NodeExchange,
  nodeExchange,
} from "./outer_request.js";
import { ResponseWriter, ROOM, streamOf } from "./response_writer.js";
import { type AsyncContext, beginOrigin, captureContext, endOrigin } from "./async_context.js";
import { attempt, ClosedError } from "./errors.js";
import {
  answers,
  watchExchange,
  dropPromise,
  drain,
  hold,
  hub,
  unwatchExchange,
  nextNumber,
  type ExchangeListener,
  promised,
  release,
} from "./hub.js";
import type { NativeHttpApp } from "./native.js";
import { RecentValues } from "./recent_values.js";

/** A response: its head, and its body as far as it is available and fits the recipient's `room`. */
export interface PartialResponse {
  status: number;
  /** Names and values, alternating. */
  headers: string[];
  body: string;
  /** Whether all header values are ASCII. Others have characters of Latin-1. */
  isAscii: boolean;
  isComplete: boolean;
  /** Whether the body of the request was read completely. */
  isRead: boolean;
}

const texts: string[] = ["", ""];

/** Receives a response, or the error of an exchange. */
export interface Recipient {
  /** Maximum size of the body that is delivered with the head, in bytes. The rest is read in pieces. */
  readonly room: number;
  answered(answer: PartialResponse): void;
  failed(error: unknown): void;
  /** Called if the response is not available at once. The recipient begins to watch for the client's disconnect. */
  waits(): void;
}

/** Time to write the last responses of a closed application, in milliseconds; as in the core. */
const LAST_RESPONSES_TIMEOUT = 750;

/** Status of responses to messages that get no response of their own. */
const ACCEPTED = 202;

/** Longest delay of a timer, in milliseconds. */
const MAX_TIMER_DELAY = 0x7fff_ffff;

/** The open exchanges of an application, by number, and those that ended before their calls. */
class OpenExchanges {
  readonly #open = new Map<number, HttpExchange>();
  readonly #ended = new RecentValues<HttpExchange>(endOrigin);
  #onEmpty: (() => void) | undefined;

  get(exchange: number): HttpExchange | undefined {
    return this.#open.get(exchange) ?? this.#ended.get(exchange);
  }

  add(exchange: HttpExchange): void {
    this.#open.set(exchange.number, exchange);
  }

  /**
   * Removes an exchange that has ended. If calls may follow its end, their handlers still find it and its context for a
   * short time. How many calls follow is not known here, nor when: they may have to wait for others.
   */
  remove(exchange: HttpExchange, callsMayFollow: boolean): void {
    const { number } = exchange;
    this.#open.delete(number);
    if (callsMayFollow) {
      this.#ended.keep(number, exchange, exchange.bytes);
    } else {
      endOrigin(number);
    }
    if (this.#open.size === 0) {
      this.#onEmpty?.();
    }
  }

  /** Waits until none is open, for {@link LAST_RESPONSES_TIMEOUT} at most; then closes the remaining ones. */
  async end(): Promise<void> {
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, LAST_RESPONSES_TIMEOUT);
        this.#onEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    for (const exchange of [...this.#open.values()]) {
      exchange.close(new ClosedError("the server is closed"));
    }
    this.#ended.clear();
  }
}

/** One exchange, from the request to the end of its response. */
export class HttpExchange implements ExchangeListener {
  readonly number = nextNumber();
  #start: (() => number) | undefined;
  #isAnswered = false;
  #isEnded = false;
  #onPiece: (() => void) | undefined;
  #recipient: Recipient | undefined;
  /** The rest of the request's body. */
  #rest: Source | undefined;
  /** Size of the headers and of the body as far as it was read. */
  #bytes = 0;

  constructor(
    private readonly app: NativeHttpApp,
    private readonly open: OpenExchanges,
    /** The request object of the outer server. */
    readonly request: unknown,
    /** A value of the program for handlers. */
    readonly value: unknown,
    /** The context that the program had when it passed on the request. */
    private readonly context: AsyncContext,
  ) {
    open.add(this);
    beginOrigin(this.number, context);
  }

  /**
   * Starts the exchange, together with the other requests of this turn of the event loop; `recipient` gets the
   * response. Batching is much cheaper: calls are drained at once, and responses are written in one burst.
   */
  begin(
    address: string | undefined,
    principal: string | undefined,
    version: number,
    method: string,
    target: string,
    prefix: number,
    headers: string,
    span: string | undefined,
    body: Uint8Array | undefined,
    rest: Source | undefined,
    recipient: Recipient,
  ): void {
    this.#recipient = recipient;
    this.#rest = rest;
    this.#bytes = headers.length + (body?.length ?? 0);
    hold();
    const { app, number } = this;
    const more = rest !== undefined;
    this.#start = () =>
      hub.beginExchange(
        app,
        number,
        address,
        principal,
        version,
        method,
        target,
        prefix,
        headers,
        span,
        body,
        more,
        recipient.room,
        texts,
      );
    if (begun.push(this) === 1) {
      setImmediate(beginAll);
    }
  }

  /** Passes the request to the core. Returns whether there are calls to drain. */
  start(): boolean {
    const start = this.#start;
    this.#start = undefined;
    if (start === undefined) {
      // The client has disconnected.
      return false;
    }
    try {
      const status = attempt(start);
      if (status === 0) {
        watchExchange(this.number, this);
        return this.#pending();
      }
      this.#deliver(status);
    } catch (error) {
      this.#fail(error);
    }
    return false;
  }

  /** Makes the recipient watch for the client's disconnect, if no response is available by the end of this turn. */
  wait(): void {
    if (!this.#isAnswered && late.push(this) === 1) {
      setImmediate(watchForDisconnects);
    }
  }

  waits(): void {
    if (!this.#isAnswered) {
      this.#recipient?.waits();
    }
  }

  /**
   * Returns the next piece of the response body, and `undefined` after the last one. If it is not available yet, returns
   * `null`, and calls `ready` once it may be.
   */
  next(ready: () => void): Buffer | null | undefined {
    const piece = hub.pollBody(this.number);
    if (piece === null) {
      if (answers[0] === 1) {
        this.#end();
        return undefined;
      }
      this.#onPiece = ready;
    }
    return piece;
  }

  /** Closes the exchange because the client disconnected, or for another reason. */
  close(reason?: ClosedError): void {
    if (this.#isEnded) {
      return;
    }
    this.#start = undefined;
    this.#end();
    hub.dropExchange(this.number);
    this.#onPiece?.();
    if (!this.#isAnswered) {
      this.#fail(reason ?? new ClosedError("the client disconnected before its response was ready"));
    }
  }

  /** Approximate memory that the request object takes, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  get #room(): number {
    return this.#recipient?.room ?? 0;
  }

  /** Called without a response: reads on if the core waits for the body. Returns whether there are calls to drain. */
  #pending(): boolean {
    const [hasCalls, wantsBody] = answers;
    if (wantsBody === 1) {
      const feed: OnBodyChunk = (piece, more) => {
        this.#feed(piece, more);
      };
      this.#rest?.pull(feed, (error) => {
        this.#closeUnread(error);
      });
    }
    return hasCalls === 1;
  }

  /** Closes the exchange because its body cannot be read. */
  #closeUnread(error: UnreadableBodyError): void {
    if (!this.#isAnswered && !this.#isEnded) {
      hub.dropExchange(this.number);
      this.#fail(error);
    }
  }

  #feed(piece: Uint8Array | undefined, more: boolean): void {
    if (this.#isAnswered) {
      return;
    }
    this.#bytes += piece?.length ?? 0;
    if (!more) {
      this.#rest = undefined;
    }
    try {
      const status = hub.feedExchange(this.number, piece, more, this.#room, texts);
      if (status !== 0) {
        this.#deliver(status);
      } else if (this.#pending()) {
        drain(true);
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  onProgress(): void {
    if (this.#isAnswered) {
      const onPiece = this.#onPiece;
      this.#onPiece = undefined;
      onPiece?.();
      return;
    }
    try {
      const status = hub.pollExchange(this.number, this.#room, texts);
      if (status !== 0) {
        this.#deliver(status);
      } else if (this.#pending()) {
        drain(true);
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Passes the response to the recipient, in the context of the request: writing it emits events to the program. */
  #deliver(status: number): void {
    this.context.runInAsyncScope(this.#take, this, status);
  }

  #take(status: number): void {
    this.#isAnswered = true;
    release();
    const isComplete = answers[0] === 1;
    const [head = "", body = ""] = texts;
    const headers = head.split("\n");
    headers.pop();
    if (isComplete) {
      // Notifications, also those of a batch, and messages of HTTP+SSE are answered before their calls run.
      this.#end(status === ACCEPTED || body.startsWith("["));
    } else {
      watchExchange(this.number, this);
    }
    const isRead = this.#rest === undefined;
    this.#rest?.stop();
    const isAscii = Buffer.byteLength(head) === head.length;
    this.#recipient?.answered({ status, headers, body, isAscii, isComplete, isRead });
  }

  #fail(error: unknown): void {
    if (!this.#isAnswered) {
      this.#isAnswered = true;
      release();
    }
    this.#end();
    this.#recipient?.failed(error);
  }

  #end(callsMayFollow = false): void {
    this.#isEnded = true;
    unwatchExchange(this.number);
    this.open.remove(this, callsMayFollow);
  }
}

/** Exchanges that begin in this turn. */
let begun: HttpExchange[] = [];

function beginAll(): void {
  const exchanges = begun;
  begun = [];
  let hasCalls = false;
  for (const exchange of exchanges) {
    hasCalls = exchange.start() || hasCalls;
  }
  if (hasCalls) {
    drain(true);
  }
  for (const exchange of exchanges) {
    exchange.wait();
  }
}

/** Exchanges whose response was not available at once. */
let late: HttpExchange[] = [];

function watchForDisconnects(): void {
  const exchanges = late;
  late = [];
  for (const exchange of exchanges) {
    exchange.waits();
  }
}

/** Headers of public metadata, which pages of any origin may read. */
const METADATA = {
  "content-type": "application/json",
  "access-control-allow-origin": "*",
  "cache-control": "max-age=3600",
};

/** Headers of the response to a preflight request for public metadata. */
const PREFLIGHT = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET",
  "access-control-allow-headers": "*",
};

/** A response that does not need the core. */
interface PlainResponse {
  status: number;
  headers: Record<string, string>;
  body: string | null;
}

/** The response to a request for public metadata, or to a preflight request of a page that will read it. */
function metadataOf(method: string | undefined, document: object | undefined): PlainResponse {
  if (document === undefined) {
    return { status: 404, headers: {}, body: null };
  }
  switch (method) {
    case "OPTIONS":
      return { status: 204, headers: PREFLIGHT, body: null };
    case "GET":
    case "HEAD":
      return { status: 200, headers: METADATA, body: method === "HEAD" ? null : JSON.stringify(document) };
    default:
      return { status: 405, headers: { allow: "GET, HEAD, OPTIONS" }, body: null };
  }
}

/** Metadata of a protected resource (RFC 9728), and its path. */
export interface MetadataEndpoint {
  /** Path on the origin of the resource. */
  path: string;
  /** The document (RFC 9728, section 2). */
  document: Record<string, unknown>;
}

/**
 * A server as an HTTP application. It serves the paths of its options and no others, relative to the prefix below which it
 * is mounted.
 */
export class HttpApp<C = unknown> {
  readonly #native: NativeHttpApp;
  readonly #writeTimeout: number;
  readonly #verifiesTokens: boolean;
  readonly #closed: () => void;
  readonly #outerSpan: () => string | undefined;
  readonly #open = new OpenExchanges();
  #closing: Promise<void> | undefined;

  /**
   * @param outerSpan Returns the trace context of the active span: see {@link RequestTracing.outerSpan}.
   * @internal
   */
  constructor(native: NativeHttpApp, verifiesTokens: boolean, closed: () => void, outerSpan: () => string | undefined) {
    this.#native = native;
    this.#verifiesTokens = verifiesTokens;
    this.#writeTimeout = Math.min(native.writeTimeout, MAX_TIMER_DELAY);
    this.#closed = closed;
    this.#outerSpan = outerSpan;
    this.fetch = this.fetch.bind(this);
    this.handler = this.handler.bind(this);
    this.metadata = this.metadata.bind(this);
  }

  /**
   * Answers a Fetch API request, for Hono, Next.js, Bun and others.
   *
   * @param options What the program knows of the request. Arguments of other types, which some runtimes pass, are
   *   ignored.
   * @throws UsageError if an option is invalid.
   */
  async fetch(request: Request, options?: MountedRequestOptions<C>): Promise<Response> {
    const given = mountedOptions(options);
    const { parsedBody } = given;
    if (request.bodyUsed && parsedBody === undefined) {
      warnConsumed();
      return new Response(REFUSAL, { status: 500, headers: { "content-type": "application/json" } });
    }
    const principal = callerJson(given, this.#verifiesTokens);
    const parsed = parsedBody === undefined ? undefined : encodedBody(parsedBody);
    const { method, url, headers } = request;
    const lines: string[] = [];
    let length = -1;
    headers.forEach((value, name) => {
      lines.push(name, value);
      length = name === "content-length" ? Number(value) : length;
    });
    const start = url.indexOf("/", url.indexOf("://") + 3);
    if (!headers.has("host")) {
      lines.push("host", new URL(url).host);
    }
    const exchange = new HttpExchange(this.#native, this.#open, request, given.context, captureContext());
    const span = this.#outerSpan();
    const closed = () => {
      exchange.close();
    };
    let isWatched = false;
    const answering = new Promise<PartialResponse>((answered, failed) => {
      const waits = () => {
        isWatched = true;
        if (request.signal.aborted) {
          closed();
        } else {
          request.signal.addEventListener("abort", closed, { once: true });
        }
      };
      const begin = (body: Uint8Array | undefined, rest: Source | undefined) => {
        // A `Request` contains neither the address of the client nor the version of HTTP.
        const recipient = { room: ROOM, answered, failed, waits };
        exchange.begin(
          undefined,
          principal,
          0,
          method,
          url.slice(start),
          0,
          lines.join("\n"),
          span,
          body,
          rest,
          recipient,
        );
      };
      if (parsed !== undefined || request.body === null) {
        begin(parsed, undefined);
      } else {
        new FetchBody(request, length, begin);
      }
    });
    let answer: PartialResponse;
    try {
      answer = await answering;
    } catch (error) {
      if (!(error instanceof UnreadableBodyError)) {
        throw error;
      }
      if (request.signal.aborted) {
        throw new ClosedError("the client disconnected before its response was ready", { cause: error });
      }
      answer = unreadable(error);
    }
    const pairs: [string, string][] = [];
    for (let index = 0; index + 1 < answer.headers.length; index += 2) {
      pairs.push([answer.headers[index] as string, answer.headers[index + 1] as string]);
    }
    const { status } = answer;
    if (!answer.isComplete) {
      request.signal.addEventListener("abort", closed, { once: true });
      return new Response(streamOf(exchange, answer.body, this.#writeTimeout), { status, headers: pairs });
    }
    if (isWatched as boolean) {
      request.signal.removeEventListener("abort", closed);
    }
    return new Response(answer.body === "" ? null : answer.body, { status, headers: pairs });
  }

  /**
   * Answers a request of `node:http`, `node:http2`, Express, Connect or Fastify.
   *
   * If middleware has read the body, it is taken from `request.body`.
   *
   * @param options What the program knows of the request. Arguments of other types, such as `next` of Express, are
   *   ignored.
   * @throws UsageError if an option is invalid.
   */
  handler(
    request: IncomingMessage | Http2ServerRequest | FastifyRequestLike,
    response: ServerResponse | Http2ServerResponse | FastifyReplyLike,
    options?: MountedRequestOptions<C> | ((error?: unknown) => void),
  ): void {
    const given = mountedOptions(options);
    const principal = callerJson(given, this.#verifiesTokens);
    const parsed = given.parsedBody === undefined ? undefined : encodedBody(given.parsedBody);
    const outer = nodeExchange(request, response);
    const { request: incoming } = outer;
    const context = captureContext();
    const span = this.#outerSpan();
    const open = (body: Uint8Array | undefined, rest: Source | undefined) => {
      const exchange = new HttpExchange(this.#native, this.#open, request, given.context, context);
      this.#answer(outer, exchange, principal, span, body, rest);
    };
    const { method } = incoming;
    if (parsed !== undefined) {
      open(parsed, undefined);
    } else if (method === "GET" || method === "HEAD" || !mayHaveBody(incoming)) {
      open(undefined, undefined);
    } else if (!isConsumed(incoming)) {
      new IncomingBody(incoming, open);
    } else if (outer.body === undefined) {
      warnConsumed();
      outer.response.writeHead(500, { "content-type": "application/json" }).end(REFUSAL);
    } else {
      open(encodedBody(outer.body), undefined);
    }
  }

  /**
   * The metadata of the protected resource (RFC 9728), and the path on its origin where clients look for it;
   * `undefined` without {@link HttpSettings.auth}.
   *
   * An application that is mounted under a prefix does not receive requests for this path. Route all methods of it:
   * `app.all(mcp.wellKnown.path, mcp.metadata)`. With `app.get`, browsers get no answer to their preflight requests.
   */
  get wellKnown(): MetadataEndpoint | undefined {
    const [path, document] = this.#native.wellKnown() ?? [];
    if (path === undefined || document === undefined) {
      return undefined;
    }
    return { path, document: JSON.parse(document) as Record<string, unknown> };
  }

  /**
   * Answers a request for {@link wellKnown}, regardless of its path, for `node:http`, Express, Connect and Fastify. Answers
   * preflight requests of browsers too, if they are routed to it.
   */
  metadata(request: IncomingMessage, response: ServerResponse): void {
    const { status, headers, body } = metadataOf(request.method, this.wellKnown?.document);
    response.writeHead(status, headers).end(body ?? undefined);
  }

  /**
   * Returns the response to a request for {@link wellKnown}, for the Fetch API.
   *
   * @param request The request, whose method counts. Default: a GET request.
   */
  metadataResponse(request?: Request): Response {
    const { status, headers, body } = metadataOf(request?.method ?? "GET", this.wellKnown?.document);
    return new Response(body, { status, headers });
  }

  /**
   * Closes all sessions and streams of this application.
   *
   * Calls in flight have `shutdownTimeout` to finish. After that they are aborted, and answered with an error which says
   * that the server is shutting down. The outer HTTP server is not closed.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const [number, ended] = promised();
    try {
      attempt(() => {
        this.#native.shutDown(number);
      });
    } catch (error) {
      dropPromise(number);
      throw error;
    }
    await ended;
    await this.#open.end();
    this.#closed();
  }

  /** Refuses all requests from now on. For an application that has not had one. @internal */
  refuseAll(): void {
    this.#native.close();
    this.#closing = Promise.resolve();
    this.#closed();
  }

  /** Returns an exchange that is open. @internal */
  exchange(number: number): HttpExchange | undefined {
    return this.#open.get(number);
  }

  #answer(
    { request, response, prefix }: NodeExchange,
    exchange: HttpExchange,
    principal: string | undefined,
    span: string | undefined,
    body: Uint8Array | undefined,
    rest: Source | undefined,
  ): void {
    const target = (request as { originalUrl?: string }).originalUrl ?? request.url ?? "/";
    const headers = headerLines(request);
    const delivery = new ResponseWriter(exchange, response, this.#writeTimeout);
    const { method = "GET", httpVersionMajor, httpVersionMinor } = request;
    const version = httpVersionMajor * 10 + httpVersionMinor;
    const address = request.socket.remoteAddress;
    exchange.begin(address, principal, version, method, target, prefix, headers, span, body, rest, delivery);
  }
}

/** Returns the headers of a request, names and values alternating, one per line. */
function headerLines({ rawHeaders, httpVersionMajor }: IncomingMessage): string {
  if (httpVersionMajor === 1) {
    return rawHeaders.join("\n");
  }
  // Pseudo-header fields of HTTP/2 (RFC 9113, section 8.3). `:authority` is in the place of `Host`.
  const lines: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name, value] = [rawHeaders[index] as string, rawHeaders[index + 1] as string];
    if (name === ":authority") {
      lines.push("host", value);
    } else if (!name.startsWith(":")) {
      lines.push(name, value);
    }
  }
  return lines.join("\n");
}

/** The response to a request whose body cannot be read. */
function unreadable({ message }: UnreadableBodyError): PartialResponse {
  const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32700, message } });
  return {
    status: 400,
    headers: ["content-type", "application/json"],
    body,
    isAscii: true,
    isComplete: true,
    isRead: false,
  };
}

/** The response to a request whose body was already read. */
const REFUSAL = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32603, message: CONSUMED } });

function warnConsumed(): void {
  process.emitWarning(CONSUMED, "McplineWarning");
}

/** Whether a request may have a body: those of some methods rarely have one, and say so (RFC 9112, section 6.3). */
function mayHaveBody({ method, headers }: IncomingMessage | Http2ServerRequest): boolean {
  const usuallyHasNone = method === "DELETE" || method === "OPTIONS";
  return !usuallyHasNone || Number(headers["content-length"]) > 0 || headers["transfer-encoding"] !== undefined;
}
