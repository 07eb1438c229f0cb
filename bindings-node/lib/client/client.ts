/** The client: connects to a server of any age over any transport, and stays connected. */

import { attempt, ClosedError } from "../errors.js";
import { disown, hub, listen, nextNumber, promised, unlisten } from "../hub.js";
import { native } from "../native.js";
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Implementation,
  LogLevel,
  Notification,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Revision,
  ServerCapabilities,
  Tool,
} from "../protocol.js";
import type { Server } from "../server.js";
import { authorizationOf } from "./auth.js";
import { Channels, type ClientTransport } from "../channel.js";
import { Flag } from "./events.js";
import { Host, warn } from "./host.js";
import type { NativeClient, NativeClients } from "./native.js";
import { Backlog } from "./backlog.js";
import { Notifications } from "./notifications.js";
import { callResult, completeResult, pageOf, promptResult, readResult } from "./shapes.js";
import {
  type ClientOptions,
  type HttpClientOptions,
  httpOf,
  type ListOptions,
  type ProgramOptions,
  programOf,
  type Progress,
  type RequestOptions,
  requestOf,
  settingsOf,
  type WaitOptions,
} from "./options.js";

/** What is known of a server once the client is connected. */
interface Opened {
  protocolVersion: Revision;
  serverInfo: Implementation | null;
  serverCapabilities: ServerCapabilities;
  instructions: string | null;
}

/** Makes the addon's half of a client. */
type Make = (clients: NativeClients, number: number, offer: string, settings: string) => NativeClient;

/**
 * A connection to a server.
 *
 * ```ts
 * await using client = await Client.connect("http://localhost:8000/mcp");
 * const result = await client.callTool("forecast", { city: "Oslo" });
 * ```
 *
 * What the server asks is answered by the handlers that it was connected with. Failures are {@link McplineError}s. What is
 * asked for keeps the process alive until it is answered; a client that nothing is asked of doesn't. One that is let go
 * of ends its connection in the background.
 */
export class Client {
  readonly #native: NativeClient;
  readonly #number: number;
  readonly #host: Host;
  #opened!: Opened;
  #isFlushing = false;
  #hears = false;
  #closed: Promise<void> | undefined;

  private constructor(host: Host, options: ClientOptions, settings: string, make: Make) {
    const { name = "mcpline", version = native.version(), title, info, capabilities = {} } = options;
    const offer = host.offer({ name, version, ...(title === undefined ? {} : { title }), ...info }, capabilities);
    const number = nextNumber();
    this.#native = attempt(() => make(clientsOfThread(), number, offer, settings));
    this.#number = number;
    this.#host = host;
    host.native = this.#native;
    // The addon must not keep the handlers alive: they may know the client.
    const reference = new WeakRef(host);
    listen(number, { told: (about, number, json) => reference.deref()?.told(about, number, json) });
    forgotten.register(this, number, this);
    if (host.channels !== undefined) {
      channelsForgotten.register(this, host.channels);
    }
  }

  // Where the server is

  /**
   * Connects to a server behind a URL: Streamable HTTP of every revision, or HTTP+SSE.
   *
   * @throws McplineError if there is no connection.
   * @throws UsageError if there is no such option.
   */
  static async connect(url: string | URL, options: HttpClientOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "http");
    const authorization = options.auth === undefined ? undefined : authorizationOf(options.auth);
    const http = httpOf(options, authorization);
    const host = new Host(options, undefined);
    host.authorization = authorization;
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.ofUrl(clients, number, offer, settings, String(url), http),
    );
  }

  /**
   * Starts a program and connects to it over its stdin and stdout; ends it with the client, and everything that it has
   * started. It gets only what is not secret by custom of the environment, and what `env` adds.
   *
   * @param program The program, by path or by a name to be found in `PATH`.
   * @throws McplineError if there is no connection.
   * @throws UsageError if there is no such option.
   */
  static async spawn(program: string, args: readonly string[] = [], options: ProgramOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "program");
    const command = programOf(program, args, options);
    const { stderr } = options;
    const host = new Host(options, typeof stderr === "function" ? stderr : undefined);
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.ofProgram(clients, number, offer, settings, command),
    );
  }

  /**
   * Connects to a server behind a Unix socket, with one message per line.
   *
   * @throws McplineError if there is no connection.
   * @throws UsageError if there is no such option.
   */
  static async socket(path: string, options: ClientOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "other");
    return Client.#open(new Host(options, undefined), options, settings, (clients, number, offer, settings) =>
      native.Client.ofSocket(clients, number, offer, settings, path),
    );
  }

  /**
   * Connects to a server in this process.
   *
   * @throws McplineError if there is no connection.
   * @throws UsageError if there is no such option.
   */
  static async memory(server: Server, options: ClientOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "other");
    const host = new Host(options, undefined);
    host.server = server;
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.ofServer(clients, number, offer, settings, server.native),
    );
  }

  /**
   * Connects over a transport of one's own.
   *
   * @throws McplineError if there is no connection.
   * @throws UsageError if there is no such option.
   */
  static async over(transport: ClientTransport, options: ClientOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "other");
    const host = new Host(options, undefined);
    const channels = new Channels(transport);
    host.channels = channels;
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.ofChannel(clients, number, offer, settings, channels.native),
    );
  }

  static async #open(host: Host, options: ClientOptions, settings: string, make: Make): Promise<Client> {
    const { signal } = options;
    signal?.throwIfAborted();
    const client = new Client(host, options, settings, make);
    try {
      const opened = await client.#settled((promise) => client.#native.open(promise), signal);
      client.#opened = JSON.parse(opened as string) as Opened;
    } catch (error) {
      void client.close();
      throw error;
    }
    return client;
  }

  // What is known of the server

  /** What both sides speak. */
  get protocolVersion(): Revision {
    return this.#opened.protocolVersion;
  }

  /** Who the server said it is. */
  get serverInfo(): Implementation | undefined {
    return this.#opened.serverInfo ?? undefined;
  }

  /** What the server offers. */
  get serverCapabilities(): ServerCapabilities {
    return this.#opened.serverCapabilities;
  }

  /** How to use the server, for the model. */
  get instructions(): string | undefined {
    return this.#opened.instructions ?? undefined;
  }

  // Lists

  /** All tools, of all pages (`server/tools`). */
  listTools(options?: ListOptions): Promise<Tool[]> {
    return all(this.tools(options));
  }

  /** All resources, of all pages (`server/resources`). */
  listResources(options?: ListOptions): Promise<Resource[]> {
    return all(this.resources(options));
  }

  /** All resource templates, of all pages (`server/resources`, resource templates). */
  listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]> {
    return all(this.resourceTemplates(options));
  }

  /** All prompts, of all pages (`server/prompts`). */
  listPrompts(options?: ListOptions): Promise<Prompt[]> {
    return all(this.prompts(options));
  }

  /** All tools; each page is fetched when it is needed. */
  tools(options?: ListOptions): AsyncGenerator<Tool, undefined> {
    return this.#iterate("tools/list", "tools", options);
  }

  /** All resources; each page is fetched when it is needed. */
  resources(options?: ListOptions): AsyncGenerator<Resource, undefined> {
    return this.#iterate("resources/list", "resources", options);
  }

  /** All resource templates; each page is fetched when it is needed. */
  resourceTemplates(options?: ListOptions): AsyncGenerator<ResourceTemplate, undefined> {
    return this.#iterate("resources/templates/list", "resourceTemplates", options);
  }

  /** All prompts; each page is fetched when it is needed. */
  prompts(options?: ListOptions): AsyncGenerator<Prompt, undefined> {
    return this.#iterate("prompts/list", "prompts", options);
  }

  // Requests

  /**
   * Calls a tool (`server/tools`, calling tools).
   *
   * @param args Its arguments.
   * @returns The result; one with `isError` is a result too, for the model to read.
   * @throws RpcError if the server returned an error.
   * @throws McplineError if something else went wrong; see its subclasses.
   */
  callTool(name: string, args?: object, options?: RequestOptions): Promise<CallToolResult> {
    return this.#ask("tools/call", { name, arguments: args ?? {} }, options, callResult);
  }

  /** Reads a resource (`server/resources`); see {@link callTool} for what it throws. */
  readResource(uri: string | URL, options?: RequestOptions): Promise<ReadResourceResult> {
    return this.#ask("resources/read", { uri }, options, readResult);
  }

  /** Gets a prompt, filled in with these arguments (`server/prompts`); see {@link callTool} for what it throws. */
  getPrompt(name: string, args?: Readonly<Record<string, string>>, options?: RequestOptions): Promise<GetPromptResult> {
    return this.#ask("prompts/get", { name, arguments: args }, options, promptResult);
  }

  /**
   * Candidates for an argument of a prompt, or for a variable of a resource template (`server/utilities/completion`); see
   * {@link callTool} for what it throws.
   *
   * @param of The prompt's name, or the template.
   * @param argument The argument, and what was typed so far.
   * @param options `context` is what is known already of the other arguments.
   */
  complete(
    of: { readonly prompt: string } | { readonly template: string },
    argument: { readonly name: string; readonly value: string },
    options: RequestOptions & { context?: Readonly<Record<string, string>> } = {},
  ): Promise<CompleteResult> {
    const { context, ...rest } = options;
    const ref = "prompt" in of ? { type: "ref/prompt", name: of.prompt } : { type: "ref/resource", uri: of.template };
    const params = { ref, argument, ...(context === undefined ? {} : { context: { arguments: context } }) };
    return this.#ask("completion/complete", params, rest, completeResult);
  }

  /**
   * Says which log messages are wanted: of this level and more severe ones (`server/utilities/logging`). It holds on new
   * connections too.
   *
   * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
   */
  async setLogLevel(level: LogLevel, options?: WaitOptions): Promise<void> {
    await this.#do("setLogLevel", level, options);
  }

  /** Asks for a sign of life. */
  async ping(options?: WaitOptions): Promise<void> {
    await this.#do("ping", "", options);
  }

  /** Hears of changes of a resource from now on (`notifications/resources/updated`), on new connections too. */
  async subscribe(uri: string | URL, options?: WaitOptions): Promise<void> {
    await this.#do("subscribe", String(uri), options);
  }

  /** Hears of changes of a resource no more. */
  async unsubscribe(uri: string | URL, options?: WaitOptions): Promise<void> {
    await this.#do("unsubscribe", String(uri), options);
  }

  /** Tells the server that the roots have changed. On 2026-07-28 it asks anyway, and is told nothing. */
  async rootsChanged(): Promise<void> {
    await this.#do("rootsChanged", "");
  }

  /**
   * Sends any request; see {@link callTool} for what it throws.
   *
   * @typeParam R What its result is.
   */
  request<R = unknown>(method: string, params?: object, options?: RequestOptions): Promise<R> {
    return this.#ask(method, params, options, (result) => result as R);
  }

  /** Sends any notification. */
  async notify(method: string, params?: object): Promise<void> {
    const json = params === undefined ? "" : JSON.stringify(params);
    await this.#settled((promise) => {
      this.#native.notify(promise, method, json);
      this.#flushSoon();
    });
  }

  /**
   * Everything that the server tells from now on, until the client is closed or the loop is left. Whoever waits for the
   * next one keeps the process alive.
   *
   * @throws UsageError if ten thousand wait to be taken.
   */
  notifications(): AsyncIterableIterator<Notification, undefined> {
    if (this.#closed !== undefined) {
      throw new ClosedError("client is closed");
    }
    if (!this.#hears) {
      attempt(() => this.#native.hear());
      this.#hears = true;
    }
    return new Notifications(this.#host, this);
  }

  /**
   * Ends the connection: calls in flight are rejected with {@link ClosedError}, a child is ended. Any number of
   * times. When it resolves nothing of the connection is left: no descriptor and no process.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const [number, closed] = promised();
    try {
      attempt(() => this.#native.close(number));
      await closed;
    } catch {
      // The thread is ending, and the connection with it.
      disown(number);
    }
    for (const taker of this.#host.takers) {
      taker.end();
    }
    forgotten.unregister(this);
    unlisten(this.#number);
    this.#host.channels?.end();
  }

  async *#iterate<T>(method: string, member: string, options: ListOptions | undefined): AsyncGenerator<T, undefined> {
    const cursors = new native.Cursors(method);
    let params: { cursor: string } | undefined;
    for (;;) {
      const page = await this.#ask(method, params, options, (result) => pageOf(result, method, member));
      yield* page.items as T[];
      const { next } = page;
      if (!attempt(() => cursors.follow(next))) {
        return;
      }
      params = { cursor: next as string };
    }
  }

  async #ask<R>(
    method: string,
    params: object | undefined,
    options: RequestOptions | undefined,
    read: (result: unknown) => R,
  ): Promise<R> {
    const json = params === undefined ? "" : JSON.stringify(params);
    if (options !== undefined) {
      return read(await this.#askWith(method, json, options));
    }
    const [number, promise] = promised();
    try {
      attempt(() => this.#native.ask(number, method, json, undefined, 0));
    } catch (error) {
      disown(number);
      throw error;
    }
    this.#flushSoon();
    let result;
    try {
      result = await promise;
    } catch (error) {
      throw traced(error);
    }
    return read(JSON.parse(result as string));
  }

  async #askWith(method: string, json: string, options: RequestOptions): Promise<unknown> {
    const { signal, onProgress } = options;
    signal?.throwIfAborted();
    const written = requestOf(options);
    const reports = onProgress === undefined ? undefined : new Reports(onProgress);
    const flags = (reports === undefined ? 0 : Flag.Hears) | (signal === undefined ? 0 : Flag.MayEnd);
    let asked = 0;
    const ask = (promise: number) => {
      this.#native.ask(promise, method, json, written, flags);
      asked = promise;
      if (reports !== undefined) {
        this.#host.reports.set(promise, (report) => reports.hear(report));
      }
      this.#flushSoon();
    };
    try {
      const result = await this.#settled(ask, signal);
      await reports?.heard;
      return JSON.parse(result as string) as unknown;
    } finally {
      this.#host.reports.delete(asked);
    }
  }

  async #do(verb: string, argument: string, options: WaitOptions = {}): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    const written = requestOf(options);
    await this.#settled((promise) => {
      this.#native.do(promise, verb, argument, written);
      this.#flushSoon();
    }, signal);
  }

  /** What the addon settles the promise with that `start` is given; given up when the signal says so. */
  async #settled(start: (promise: number) => void, signal?: AbortSignal): Promise<string | undefined> {
    const [number, promise] = promised();
    try {
      attempt(() => start(number));
    } catch (error) {
      disown(number);
      throw error;
    }
    try {
      return await (signal === undefined ? promise : this.#unless(signal, number, promise));
    } catch (error) {
      throw error === signal?.reason ? error : traced(error);
    }
  }

  #unless(signal: AbortSignal, number: number, promise: Promise<string | undefined>): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        // Rejected at once; what the addon says of it later is no news.
        reject(signal.reason as Error);
        attempt(() => this.#native.cancel(number));
      };
      signal.addEventListener("abort", abort, { once: true });
      const ended = () => signal.removeEventListener("abort", abort);
      promise.finally(ended).then(resolve, reject);
    });
  }

  /** Hands over what this turn asks for, at its end. */
  #flushSoon(): void {
    if (!this.#isFlushing) {
      this.#isFlushing = true;
      process.nextTick(this.#flush);
    }
  }

  readonly #flush = (): void => {
    this.#isFlushing = false;
    this.#native.flush();
  };
}

/** Progress of one request on its way to whoever listens. */
class Reports {
  readonly #listeners = new Backlog("who listens to progress");
  readonly #listener: (report: Progress) => unknown;

  constructor(listener: (report: Progress) => unknown) {
    this.#listener = listener;
  }

  /** Settled when every report was heard. */
  get heard(): Promise<void> | undefined {
    return this.#listeners.last;
  }

  hear(report: Progress): void {
    this.#listeners.run(report.message?.length ?? 0, () => this.#told(report));
  }

  /** Never rejected. */
  #told(report: Progress): Promise<void> | undefined {
    const failed = (error: unknown) => warn("who listens to progress failed", error);
    try {
      const value = this.#listener(report);
      return value instanceof Promise ? value.then(() => undefined, failed) : undefined;
    } catch (error) {
      failed(error);
      return undefined;
    }
  }
}

/** A failure with the stack of whoever waited, in place of that of the event that told it. */
function traced(error: unknown): unknown {
  if (error instanceof Error) {
    Error.captureStackTrace(error, traced);
  }
  return error;
}

async function all<T>(items: AsyncGenerator<T, undefined>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) {
    list.push(item);
  }
  return list;
}

const forgotten = new FinalizationRegistry<number>(unlisten);
const channelsForgotten = new FinalizationRegistry<Channels>((channels) => {
  channels.end();
});

let clients: NativeClients | undefined;

/** The clients of this JavaScript thread; those that are open at its end are closed, so that no child stays. */
function clientsOfThread(): NativeClients {
  if (clients === undefined) {
    const made = new native.Clients(hub);
    process.once("exit", () => made.close());
    clients = made;
  }
  return clients;
}
