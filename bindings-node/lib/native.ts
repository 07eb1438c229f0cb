/** Loads the addon, and declares its types (`src/`). */

import { createRequire } from "node:module";
import { isAbsolute, join } from "node:path";

import type { NativeClientPart } from "./client/native.js";
import { InternalError } from "./errors.js";

/** State that a JavaScript thread shares with its I/O thread (`src/hub.rs`, `src/open_calls.rs`, `src/http_app.rs`). */
export interface NativeHub {
  share(table: Float64Array, answers: Float64Array): void;
  hold(held: boolean): void;
  drain(texts: string[], local: boolean): number;
  flush(texts: string[], count: number): number;

  callRoute(call: number): NativeHttpRequest | null;
  callApiRequest(call: number): NativeHttpRequest | null;
  callSharing(call: number): NativeSharingArguments | null;
  callBusReceiver(call: number): NativeBusReceiver | null;
  replySharing(call: number, kind: number, bytes: Uint8Array[], isEnded: boolean, hasMore: boolean): void;
  replyHttp(call: number, status: number, headers: string[], body: Uint8Array): void;
  callInfo(call: number): NativeRequestInfo | null;
  spanAttributes(call: number): string | null;
  callName(call: number): string | null;
  callMissingScopes(call: number, scopes: string[]): string | null;
  callSession(call: number): number;
  beginSpan(call: number): string | null;
  callCancelled(call: number): boolean;
  hasCancelled(): boolean;
  watchCall(call: number): void;
  progress(call: number, progress: number, total?: number, message?: string): void;
  log(call: number, level: string, logger: string | undefined, data: string): void;
  notify(call: number, method: string, params?: string): void;
  closeStream(call: number): void;
  runNext(call: number, promise: number, params?: string): void;
  requestInput(call: number, promise: number, method: string, params?: string, key?: string): void;

  beginExchange(
    app: NativeHttpApp,
    exchange: number,
    address: string | undefined,
    principal: string | undefined,
    version: number,
    method: string,
    target: string,
    prefix: number,
    headers: string,
    span: string | undefined,
    body: Uint8Array | undefined,
    more: boolean,
    room: number,
    texts: string[],
  ): number;
  feedExchange(exchange: number, piece: Uint8Array | undefined, more: boolean, room: number, texts: string[]): number;
  pollExchange(exchange: number, room: number, texts: string[]): number;
  pollBody(exchange: number): Buffer | null;
  dropExchange(exchange: number): void;
}

/** A request (`src/open_calls.rs`); members that are not plain strings are JSON. */
export interface NativeRequestInfo {
  toolName?: string;
  promptName?: string;
  uri?: string;
  revision: string;
  client?: string;
  clientCapabilities: string;
  requestId: string;
  transport: string;
  sessionId?: string;
  headers?: string[];
  meta?: string;
  inputResponses?: string;
  requestState?: string;
  auth?: string;
  exchange?: number;
}

/** The request of a route, or one to an imported API (`src/open_calls.rs`); the head is JSON. */
export interface NativeHttpRequest {
  head: string;
  body: Uint8Array;
}

/** Arguments of a function of shared state (`src/sharing.rs`). */
export interface NativeSharingArguments {
  /** The id of a session or the name of a stream; empty for the bus. */
  name: string;
  /** The lifetime of a session in ms, or the number of an event. */
  number?: number | null;
  /** A session and what it replaces, events, or a message. */
  bytes: Uint8Array[];
}

/** Receives the messages of a bus (`src/sharing.rs`). */
export interface NativeBusReceiver {
  receive(message: Uint8Array): void;
}

/** Kinds of features with handlers. */
export type FeatureKind =
  | "tool"
  | "resource"
  | "prompt"
  | "completion"
  | "resource_list"
  | "request"
  | "notification"
  | "event"
  | "middleware"
  | "http_client"
  | "credential"
  | "route"
  | "sharing";

/** A server (`src/server.rs`); definitions and options are JSON. */
export interface NativeServer {
  readonly isDebugged: boolean;
  addFeature(kind: FeatureKind, definition: string, options: string | undefined, handler: number): void;
  addBuiltInMiddleware(definition: string, scope: string): void;
  removeFeature(kind: FeatureKind, name: string): boolean;
  addCandidates(reference: string, argument: string, candidates: string[]): void;
  updateFeature(kind: FeatureKind, name: string, changes: string): void;
  setEnabled(enabled: boolean, kinds?: string[], names?: string[], tags?: string[]): number;
  transformTool(name: string, transform: string): void;
  mount(server: NativeServer, prefix: string | undefined, snapshot: boolean, tools: string | undefined): void;
  unmount(server: NativeServer): boolean;
  notifyResourceUpdated(uri: string): void;
  notifyResourceListChanged(): void;
  notifyElicitationComplete(elicitationId: string): void;
  recordRequests(): void;
  traceRequests(): void;
  stats(): string;
  metrics(): string;
  serveStdio(ended: number): NativeServedChannel;
  checkSharing(
    ended: number,
    sharing: number[],
    timeout: number | undefined,
    other: number[],
    otherTimeout: number | undefined,
  ): NativeServedChannel;
  serveUnix(bound: number, ended: number, path: string, options: string): NativeServedChannel;
  serveChannel(opened: number, ended: number, channels: NativeChannels, principal?: string): NativeServedChannel;
  serveHttp(
    bound: number,
    ended: number,
    host: string,
    port: number,
    options: string,
    verifier?: NativeVerifier,
    tls?: string,
    workers?: string,
  ): NativeServedChannel;
  reportReady(): void;
  httpApp(options: string, verifier?: NativeVerifier): NativeHttpApp;
}

/** A verifier of tokens (`src/verify.rs`). */
export interface NativeVerifier {
  accept(number: number, caller: string): void;
  refuse(number: number): void;
  fail(number: number): void;
}

/** The channels of a custom transport (`src/channel.rs`). */
export interface NativeChannels {
  opened(channel: number, failed?: string): void;
  received(channel: number, message: string): boolean;
  ready(channel: number, promise: number): void;
  sent(channel: number): void;
  hungUp(channel: number, failure?: string): void;
}

/** A transport that is being served (`src/serving.rs`). */
export interface NativeServedChannel {
  /** The line to write when the transport is ready, if it is ready at once. */
  readonly startupMessage: string | null;
  stop(): void;
}

/** A server as an HTTP application (`src/http_app.rs`). */
export interface NativeHttpApp {
  readonly writeTimeout: number;
  wellKnown(): [path: string, document: string] | null;
  close(): void;
  shutDown(ended: number): void;
}

/** An HTTP API (`src/openapi.rs`); the operations are JSON. */
export interface NativeOpenApi {
  operations(): string;
  add(server: NativeServer, selected: string[]): string[];
}

/** The addon (`src/lib.rs`). */
export interface Native extends NativeClientPart {
  version(): string;
  flushTraffic(): void;
  Hub: new (wake: () => void) => NativeHub;
  Server: new (
    hub: NativeHub,
    number: number,
    info: string,
    instructions: string | undefined,
    settings: string | undefined,
    sharing: number[] | undefined,
    sharingTimeout: number | undefined,
  ) => NativeServer;
  Channels: new (hub: NativeHub, number: number) => NativeChannels;
  Verifier: new (hub: NativeHub, number: number) => NativeVerifier;
  OpenApi: new (
    server: NativeServer,
    document: string,
    options: string,
    client: number | undefined,
    schemes: string[],
    credentials: number[],
  ) => NativeOpenApi;
}

/**
 * Paths of the addon: next to this file, or next to the bundle that contains it, or in the package of this platform, or in
 * a package of this name that contains it (an installation from a checkout, beside a bundle). A package near the executable of
 * Node is none of the program's.
 */
function places(from: string): string[] {
  const name = `${process.platform}-${process.arch}`;
  // Detecting the libc takes ten milliseconds, and an addon for the other one fails to load.
  const names = process.platform === "linux" ? [`${name}-gnu`, `${name}-musl`] : [name];
  return [
    "./mcpline.node",
    ...names.map((name) => `mcpline-${name}`),
    ...names.flatMap(installedNextToThis),
    ...(from === process.execPath ? [] : ["mcpline/mcpline.node"]),
  ];
}

/**
 * The path of the addon if its package is installed next to this one. Tools that copy what a program needs (Next.js with
 * `output: "standalone"`, serverless platforms) find the addon by this expression, and copy it without its `package.json`.
 */
function installedNextToThis(name: string): string[] {
  // In a bundle that is an ES module. A conditional expression would hide the path from @vercel/nft.
  if (typeof __dirname !== "string") {
    return [];
  }
  return [join(__dirname, `../../mcpline-${name}/mcpline.node`)];
}

/**
 * The files from which the addon is looked up: this one, the program, and the executable. In a bundle, `__filename` may be
 * missing (ES modules), or be the path that this file had where the bundle was built (Bun).
 */
function origins(): string[] {
  const own = typeof __filename === "string" ? [__filename] : [];
  const program = process.argv[1] === undefined ? [] : [process.argv[1]];
  return [...new Set([...own, ...program, process.execPath])].filter(isAbsolute);
}

function load(): Native {
  const reasons: string[] = [];
  for (const from of origins()) {
    // Not a plain `require`, which bundlers would resolve when they build.
    const load = createRequire(from);
    for (const place of places(from)) {
      try {
        return load(place) as Native;
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        reasons.push(`${place} ${code === "MODULE_NOT_FOUND" ? "was not found" : `cannot be loaded: ${message}`}`);
      }
    }
  }
  const platform = `${process.platform}-${process.arch}${process.platform === "linux" ? "-gnu or -musl" : ""}`;
  throw new InternalError(
    `mcpline has no addon for this platform at ${origins().join(", ")}: ${[...new Set(reasons)].join("; ")}. ` +
      `Install optional dependencies too (without --omit=optional), or the package mcpline-${platform} of the same version. ` +
      "In a bundle, mark mcpline as external, or put the addon next to the bundle as mcpline.node (docs/bundling.md)",
  );
}

export const native = load();
