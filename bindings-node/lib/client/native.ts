/** Types of the addon's clients (`src/client/`). Options and parameters are JSON. */

import type { NativeChannels, NativeHub, NativeServer } from "../native.js";

/** The clients of a JavaScript thread (`src/client/close_at_exit.rs`). */
export interface NativeClients {
  close(): void;
}

/** A client (`src/client/handle.rs`). Promises are passed by number; see `lib/hub.ts`. */
export interface NativeClient {
  recordRequests(): void;
  open(promise: number): void;
  request(promise: number, method: string, params: string, options: string | undefined, flags: number): void;
  do(promise: number, method: string, argument: string, options: string | undefined, flags: number): void;
  takeSent(promise: number): string | null;
  notify(promise: number, method: string, params: string): void;
  pid(): number | null;
  stats(): string;
  metrics(): string;
  flush(): void;
  cancel(promise: number): void;
  listenToNotifications(): void;
  close(promise: number): void;
  answer(number: number, result: string): void;
  refuse(number: number, code: number, message: string, data?: string): void;
  inputRequestSpan(number: number): string;
}

/** Creates clients. Their events go to the listener with this number. */
export interface NativeClientMaker {
  of(
    clients: NativeClients,
    number: number,
    offer: string,
    settings: string,
    kind: "url" | "program" | "socket",
    at: string,
    options: string,
  ): NativeClient;
  ofServer(
    clients: NativeClients,
    number: number,
    offer: string,
    settings: string,
    server: NativeServer,
    options: string,
  ): NativeClient;
  ofChannel(
    clients: NativeClients,
    number: number,
    offer: string,
    settings: string,
    channels: NativeChannels,
  ): NativeClient;
}

/** Clients whose metrics are joined (`src/client/metrics.rs`). */
export interface NativeClientMetrics {
  add(name: string, client: NativeClient): void;
  text(): string;
}

/** The cursors of a list that were followed so far (`src/client/cursors.rs`). */
export interface NativeCursorHistory {
  follow(next: string | undefined): boolean;
}

/** The exports of the addon for clients. */
export interface NativeClientPart {
  Clients: new (hub: NativeHub) => NativeClients;
  Client: NativeClientMaker;
  ClientMetrics: new () => NativeClientMetrics;
  Cursors: new (method: string) => NativeCursorHistory;
  configuredServer(path: string, name?: string): string;
  errorExamples(): string[];
  rootUri(root: string): string;
}
