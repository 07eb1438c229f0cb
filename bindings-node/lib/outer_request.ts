/** Requests as outer HTTP servers and frameworks pass them on, whose bodies they may have read already. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

import { principalJson, type VerifiedCaller } from "./auth.js";
import { UsageError } from "./errors.js";
import { basePathLength } from "./base_path.js";
import { checkOptions, closestName } from "./option_checks.js";
import { optionNames } from "./option_names.js";

/**
 * What the program knows of a request that it passes to {@link Server.fetch} or {@link Server.handler}.
 *
 * @typeParam C Type of {@link Context.context}.
 */
export interface MountedRequestOptions<C = unknown> {
  /**
   * The body of the request, if code that ran before has read it: the parsed JSON, a string or bytes. Default: the body
   * of the request, or its `body` if a framework has set that.
   */
  parsedBody?: unknown;
  /**
   * The caller, as authenticated by the program. Handlers read it from {@link Context.auth}; sessions are bound to it,
   * and scopes of features apply. Without it the caller is anonymous: features that require scopes are refused (HTTP
   * 403), and all others may be used. Cannot be combined with {@link HttpSettings.auth}.
   */
  auth?: VerifiedCaller;
  /**
   * A value for handlers, which read it from {@link Context.context}: a session, a database connection or the like.
   * Default: what {@link ServerOptions.createContext} returns.
   */
  context?: C;
}

/** A request of Fastify, as far as mcpline uses it. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage;
  readonly body?: unknown;
}

/** A reply of Fastify, as far as mcpline uses it. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
  hijack(): unknown;
  getHeaders?(): Record<string, number | string | string[] | undefined>;
}

/** A request and its response as `node:http` has them, and the body if it was read before. */
export interface NodeExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: unknown;
  /** Length of the prefix of the path below which the handler is mounted. */
  readonly prefix: number;
}

/** Unwraps the request and the reply of Fastify, which does not respond itself then. Others are returned as they are. */
export function nodeExchange(
  request: IncomingMessage | Http2ServerRequest | FastifyRequestLike,
  response: ServerResponse | Http2ServerResponse | FastifyReplyLike,
): NodeExchange {
  if ("raw" in request && "raw" in response) {
    response.hijack();
    for (const [name, value] of Object.entries(response.getHeaders?.() ?? {})) {
      if (value !== undefined) {
        response.raw.setHeader(name, value);
      }
    }
    const prefix = basePathLength(request.raw, request);
    return { request: request.raw, response: response.raw, body: request.body, prefix };
  }
  // Those of HTTP/2 have all that is used here.
  const incoming = request as IncomingMessage;
  const { body } = request as { body?: unknown };
  return { request: incoming, response: response as ServerResponse, body, prefix: basePathLength(incoming, incoming) };
}

/** Whether the body of a request was read before, so that nothing more arrives. */
export function isConsumed(request: IncomingMessage): boolean {
  // A request that its client has aborted is destroyed without having ended: it needs no response.
  return request.readableEnded;
}

/** Properties that say how a request arrived. */
interface ArrivedRequest {
  /** Express and Fastify: the scheme, as reported by a proxy if they trust it. */
  protocol?: unknown;
  /** Fastify: the request of `node:http`. */
  raw?: object;
  /** The Fetch API: the absolute URL. `node:http`: what the client has sent. */
  url?: string;
}

/**
 * Whether a request came over TLS, as far as the outer server or its framework knows.
 *
 * @param outer The request that was passed to {@link Server.handler} or {@link Server.fetch}.
 */
export function isSecure(outer: object): boolean {
  const { protocol, url, raw = outer } = outer as ArrivedRequest;
  if (typeof protocol === "string") {
    return protocol === "https";
  }
  if (!("socket" in raw)) {
    return url?.startsWith("https:") === true;
  }
  return (raw.socket as { encrypted?: boolean } | undefined)?.encrypted === true;
}

/** Encodes a body that a framework has parsed. */
export function encodedBody(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) {
    return body;
  }
  if (body instanceof ArrayBuffer) {
    return new Uint8Array(body);
  }
  const text = typeof body === "string" ? body : (JSON.stringify(body) as string | undefined);
  if (text === undefined) {
    throw new UsageError(`\`parsedBody\` must be JSON, a string or bytes, not ${typeof body}`);
  }
  return Buffer.from(text);
}

const OPTIONS = optionNames<MountedRequestOptions>({ parsedBody: true, auth: true, context: true });

/**
 * Names in objects that frameworks and runtimes pass as the second argument of a handler of the Fetch API: `params` by
 * Next.js, `incoming` by the server of Hono for Node, `remoteAddr` by Deno, `waitUntil` by Netlify and Vercel.
 */
const NAMES_OF_FRAMEWORKS = ["params", "incoming", "remoteAddr", "waitUntil"];

/**
 * Returns the options of a request. Frameworks and runtimes pass arguments of their own in their place, such as `next`
 * of Express and the server of Bun: these are ignored. Whatever has the name of an option is taken, also the instance of
 * a class.
 *
 * @throws UsageError if an option is misspelt or unknown: without its `auth`, a request would be treated as that of an
 *   anonymous caller, who may use all features that require no scopes.
 */
export function mountedOptions(given: unknown): MountedRequestOptions {
  if (typeof given !== "object" || given === null) {
    return NO_OPTIONS;
  }
  const isTaken = OPTIONS.some((name) => name in given);
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype !== Object.prototype && prototype !== null) {
    return isTaken ? given : NO_OPTIONS;
  }
  const isForeign = !isTaken && NAMES_OF_FRAMEWORKS.some((name) => name in given);
  const ours = Object.entries(given).filter(([name]) => !isForeign || closestName(name, OPTIONS) !== undefined);
  checkOptions("the options of a request", Object.fromEntries(ours), OPTIONS);
  return isForeign ? NO_OPTIONS : given;
}

const NO_OPTIONS: MountedRequestOptions = {};

/** Encodes the caller of a request for the core; `undefined` if the program names none. */
export function callerJson({ auth }: MountedRequestOptions, verifiesTokens: boolean): string | undefined {
  if (auth === undefined) {
    return undefined;
  }
  if (verifiesTokens) {
    throw new UsageError(
      "`auth` of a request: this application verifies tokens itself, because it has the setting `auth`",
    );
  }
  return principalJson(auth, "auth");
}

/** Response text for a request whose body was already read. */
export const CONSUMED =
  "the body of the request was read before mcpline received the request: pass it as `parsedBody` or set `request.body`; " +
  "with Fastify, pass `request` and `reply` instead of `request.raw` and `reply.raw`";
