/** Routes: paths of the author's own at the HTTP server, such as webhooks and pages ({@link Server.route}). */

import { Context } from "./context.js";
import { attempt, UsageError } from "./errors.js";
import { reportEnded, hub, watch } from "./hub.js";
import { jsonOf } from "./content.js";
import { typeName } from "./option_checks.js";
import type { Awaitable } from "./feature_options.js";
import type { NativeHttpRequest } from "./native.js";
import { isSecure } from "./outer_request.js";
import type { Server } from "./server.js";

/** Options of a route. */
export interface RouteOptions {
  /**
   * Methods of the requests. A route for GET also serves HEAD, without the body. A handler that leaves out the body for HEAD can
   * state its length as `content-length`. Default: `["GET"]`.
   */
  methods?: readonly string[];
  /**
   * Scopes that a caller needs, all of them, if {@link HttpSettings.auth} is set. Others get status 403, and a challenge that
   * names the scopes.
   */
  scopes?: readonly string[];
  /**
   * Whether any client may request it, without a token, under any `Host`, and from pages of any origin: for webhooks, which a
   * signature protects, and for public content. Otherwise a route is protected as the MCP endpoint is. Default: `false`.
   */
  public?: boolean;
}

/**
 * Return value of a route's handler: a response, text, bytes, nothing (status 204), or a value that is sent as JSON. The body
 * of a response is read to its end before it is sent.
 *
 * A response of `fetch` can be returned as it is: its body is sent as `fetch` has decoded it, without `content-encoding`. If you
 * make a response from its body, leave out its `content-encoding`.
 */
export type RouteReturn = Response | string | Uint8Array | object | null | undefined | void;

/**
 * Handler of a route.
 *
 * The URL of `request` has the `Host` of the request. Its scheme is `https` if the connection to this process uses TLS: that of
 * {@link ListenOptions.tls}, or of the outer server. In {@link Server.fetch} it is the scheme of the request that was passed. With
 * Express and Fastify it is `request.protocol`, which takes it from proxies that they trust. It is `http` behind any other proxy
 * that ends TLS, and if one server listens both with and without `tls`.
 */
export type RouteHandler<Names extends string = string, C = unknown, State = unknown> = (
  request: Request,
  ctx: RouteContext<Names, C, State>,
) => Awaitable<RouteReturn>;

/** Names of the variables of a path, by its literal type. */
export type PathVariablesOf<Path extends string> = string extends Path
  ? string
  : Path extends `${string}{${infer Name}}${infer Rest}`
    ? (Name extends `*${infer Tail}` ? Tail : Name) | PathVariablesOf<Rest>
    : never;

/**
 * The context of a request to a route.
 *
 * It has the caller (`auth`), `signal`, `context` and `state`, as that of a tool. There is no MCP client: log messages and
 * progress are dropped, and input requests throw {@link UsageError}.
 */
export class RouteContext<Names extends string = string, C = unknown, State = unknown> extends Context<C, State> {
  /**
   * The variables of the path, decoded: `{ name: "a" }` for `/files/{name}` and the request `/files/a`. They are safe as parts
   * of a file's path.
   */
  readonly params: Readonly<Record<Names, string>>;

  /** @internal */
  constructor(call: number, server: Server<C, State>, params: Readonly<Record<Names, string>>) {
    super(call, server);
    this.params = params;
  }
}

interface Head {
  method: string;
  path: string;
  query: string;
  headers: [name: string, value: string][];
  variables: Record<string, string>;
}

/**
 * Maximum length of a body that a handler returns as a stream, in bytes: it is kept until it has ended. Longer responses
 * belong to the outer application, which can stream them.
 */
const MAX_STREAMED_BYTES = 64 * 1024 * 1024;

/** A host with an optional port, as in a URL. Others would move the path and the query of the request. */
const HOST = /^(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** The codings of bodies that `fetch` decodes. It leaves a body with others as it is. */
const DECODED = new Set(["gzip", "x-gzip", "deflate", "br", "zstd"]);

/** How a body in the coding `zstd` begins (RFC 8878, section 3.1.1). Older versions of Node leave such bodies as they are. */
const ZSTD = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd);

/** Kinds of objects whose content JSON would lose. */
const OPAQUE = new Set([
  "ArrayBuffer",
  "SharedArrayBuffer",
  "Blob",
  "File",
  "FormData",
  "ReadableStream",
  "URLSearchParams",
  "Map",
  "Set",
]);

/** Calls the handler of a route. `undefined`: the call has ended, because its client is gone. */
export function callRoute(handler: RouteHandler, call: number, server: Server): unknown {
  const received: NativeHttpRequest | null = hub.callRoute(call);
  if (received === null) {
    return undefined;
  }
  const head = JSON.parse(received.head) as Head;
  const headers = new Headers(head.headers);
  const ctx = new RouteContext(call, server, head.variables);
  const query = head.query === "" ? "" : `?${head.query}`;
  const hasBody = head.method !== "GET" && head.method !== "HEAD";
  const host = headers.get("host") ?? "";
  // A backslash would become a slash.
  const target = `${head.path}${query}`.replaceAll("\\", "%5C");
  const scheme = isOverTls(ctx) ? "https" : "http";
  const request = new Request(`${scheme}://${isHost(host) ? host : "localhost"}${target}`, {
    method: head.method,
    headers,
    ...(hasBody && { body: received.body }),
  });
  return handler(request, ctx);
}

/** Whether a request came over TLS, as far as the outer server knows, or the built-in one. */
function isOverTls({ request, server }: RouteContext): boolean {
  return request === undefined ? server.servesTls : isSecure(request as object);
}

function isHost(host: string): boolean {
  return HOST.test(host) && URL.canParse(`http://${host}`);
}

/** Ends the call of a route with the handler's return value. */
export function finishRoute(call: number, value: unknown): void | Promise<void> {
  if (isResponse(value)) {
    return finishResponse(call, value, MAX_STREAMED_BYTES, () => {
      throw new UsageError(
        `the body of a route's response has more than ${String(MAX_STREAMED_BYTES)} bytes: serve it in the outer application`,
      );
    });
  }
  if (value === undefined || value === null) {
    reply(call, 204, [], new Uint8Array());
  } else if (typeof value === "string") {
    reply(call, 200, ["content-type", "text/plain; charset=utf-8"], new TextEncoder().encode(value));
  } else if (ArrayBuffer.isView(value)) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    reply(call, 200, ["content-type", "application/octet-stream"], bytes);
  } else if (typeof value === "object" && !isOpaque(value)) {
    reply(call, 200, ["content-type", "application/json"], new TextEncoder().encode(jsonOf(value)));
  } else {
    const returned = typeof value === "object" ? Object.prototype.toString.call(value) : typeName(value);
    throw new UsageError(`the handler of a route must return a response, text, bytes or an object, not ${returned}`);
  }
}

/**
 * Ends a call with a response.
 *
 * @param limit Bytes of the body that are read at most.
 * @param tooLong Called if there are more.
 */
export async function finishResponse(
  call: number,
  response: Response,
  limit: number,
  tooLong?: () => void,
): Promise<void> {
  const { status } = response;
  const body = await readBody(call, response, limit, tooLong);
  reply(call, status, headersOf(response, body).flat(), body);
}

/** Whether a value is a response, possibly of another implementation of the Fetch API. */
export function isResponse(value: unknown): value is Response {
  return value instanceof Response || Object.prototype.toString.call(value) === "[object Response]";
}

/** Whether a value is an object whose content JSON would lose. */
function isOpaque(value: object): boolean {
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return OPAQUE.has(kind);
}

/**
 * Returns the headers of a response, without those that do not describe its body. `fetch` decodes the bodies of the responses
 * that it returns, and leaves their headers as they were. Only such a response has a URL.
 */
function headersOf({ url, headers }: Response, body: Uint8Array): [name: string, value: string][] {
  const pairs = [...headers];
  const codings = headers.get("content-encoding")?.toLowerCase().split(",") ?? [];
  const isZstd = codings.at(-1)?.trim() === "zstd" && ZSTD.every((byte, index) => body[index] === byte);
  const isDecoded =
    url !== "" && codings.length > 0 && !isZstd && codings.every((coding) => DECODED.has(coding.trim()));
  // The server sets the length, except for a response to HEAD that has no body.
  return isDecoded ? pairs.filter(([name]) => name !== "content-encoding" && name !== "content-length") : pairs;
}

/** Reads the body of a response up to a limit, until its client has left or the server ends. */
async function readBody(
  call: number,
  response: Response,
  limit: number,
  tooLong: (() => void) | undefined,
): Promise<Uint8Array> {
  if (response.body === null) {
    return new Uint8Array();
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const cancel = (reason: string) => {
    // The stream may have failed already.
    reader.cancel(new Error(reason)).catch(() => undefined);
  };
  watch(call, () => {
    cancel("the request was cancelled");
  });
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return Buffer.concat(pieces, length);
    }
    length += value.byteLength;
    if (length > limit) {
      cancel("the body is too long");
      tooLong?.();
      pieces.push(value.subarray(0, value.byteLength - (length - limit)));
      return Buffer.concat(pieces, limit);
    }
    pieces.push(value);
  }
}

function reply(call: number, status: number, headers: string[], body: Uint8Array): void {
  attempt(() => {
    hub.replyHttp(call, status, headers, body);
  });
  reportEnded(call);
}
