/** Loads the addon, and says what is in it: the counterpart of `src/`. */

import { createRequire } from "node:module";

import { InternalError } from "./errors.js";

/** What a JavaScript thread shares with its I/O thread (`src/hub.rs`, `src/calls.rs`, `src/mount.rs`). */
export interface NativeHub {
  share(table: Float64Array, answers: Float64Array): void;
  hold(held: boolean): void;
  drain(texts: string[], local: boolean): number;
  flush(texts: string[], count: number): number;

  callInfo(call: number): NativeRequestInfo | null;
  callName(call: number): string | null;
  callCancelled(call: number): boolean;
  watchCall(call: number): void;
  progress(call: number, progress: number, total?: number, message?: string): void;
  log(call: number, level: string, logger: string | undefined, data: string): void;
  closeStream(call: number): void;
  ask(call: number, promise: number, method: string, params?: string, key?: string): void;

  pollExchange(exchange: number, texts: string[]): number;
  pollBody(exchange: number): Buffer | null;
  dropExchange(exchange: number): void;
}

/** One request (`src/calls.rs`); JSON where it is more than a string. */
export interface NativeRequestInfo {
  revision: string;
  client?: string;
  clientCapabilities: string;
  requestId: string;
  sessionId?: string;
  headers?: string[];
  meta?: string;
  inputResponses?: string;
  requestState?: string;
  exchange?: number;
}

/** A server (`src/server.rs`); definitions and options are JSON. */
export interface NativeServer {
  addTool(definition: string, plan: number, runOnce: boolean, rate?: number[]): void;
  removeTool(name: string): boolean;
  addResource(definition: string, plan: number): void;
  addResourceTemplate(definition: string, plan: number): void;
  removeResource(uri: string): boolean;
  addPrompt(definition: string, plan: number): void;
  removePrompt(name: string): boolean;
  addCandidates(reference: string, argument: string, candidates: string[]): void;
  addCompleter(reference: string, argument: string, plan: number): void;
  setCompletion(plan: number): void;
  notifyResourceUpdated(uri: string): void;
  notifyElicitationComplete(elicitationId: string): void;
  serveStdio(ended: number): NativeServing;
  serveHttp(bound: number, ended: number, host: string, port: number, options: string): NativeServing;
  httpApp(options: string): NativeHttpApp;
}

/** A transport that is served (`src/serving.rs`). */
export interface NativeServing {
  stop(): void;
}

/** A server as an HTTP application (`src/mount.rs`). */
export interface NativeHttpApp {
  readonly bodyLimit: number;
  begin(exchange: number, method: string, target: string, headers: string, body?: Uint8Array): void;
  close(): void;
}

/** The addon (`src/lib.rs`). */
export interface Native {
  version(): string;
  Hub: new (wake: () => void) => NativeHub;
  Server: new (hub: NativeHub, number: number, info: string, instructions?: string, settings?: string) => NativeServer;
}

/** The package that has the addon for this platform, where it isn't beside us. */
function platformPackage(): string {
  const { platform, arch } = process;
  if (platform !== "linux") {
    return `mcpline-${platform}-${arch}`;
  }
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return `mcpline-linux-${arch}-${header.glibcVersionRuntime === undefined ? "musl" : "gnu"}`;
}

function load(): Native {
  const load = createRequire(__filename);
  try {
    return load("./mcpline.node") as Native;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") {
      throw error;
    }
  }
  const name = platformPackage();
  try {
    return load(name) as Native;
  } catch (error) {
    const text = `mcpline has no build for this platform: neither mcpline.node nor ${name} was found`;
    throw new InternalError(text, { cause: error });
  }
}

export const native = load();
