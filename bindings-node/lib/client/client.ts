/** MCP client, for servers of every revision over every transport. */

import { fileURLToPath } from "node:url";

import { attempt, ClosedError, UsageError } from "../errors.js";
import { dropPromise, hub, listen, nextNumber, promised, unlisten } from "../hub.js";
import { native } from "../native.js";
import type {
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
import { typeName } from "../option_checks.js";
import type { SchemaOutput, SchemaShape, StandardSchema } from "../schemas.js";
import type { SentRequest } from "../sent_requests.js";
import type { Server } from "../server.js";
import { checkNamed, checkUri, referenceOf } from "./argument_checks.js";
import { authorizationOf } from "./auth.js";
import { Channels, type ClientTransport } from "../channel.js";
import { type ClientStats, clientStatsOf } from "../stats.js";
import { Flag } from "./event_kinds.js";
import { dataSchema, type ToolCallResult, withData } from "./tool_data.js";
import { Host, warn } from "./host.js";
import type { NativeClient, NativeClients } from "./native.js";
import { Backlog, type BacklogLimit } from "./backlog.js";
import { Notifications } from "./notifications.js";
import { ClientRequest, plainData, sendThrough } from "./middleware.js";
import { networkOf, PIPE, socketOf } from "./request_tracing.js";
import { callResult, completeResult, pageOf, promptResult, readResult } from "./result_checks.js";
import {
  type ClientOptions,
  type ConfigOptions,
  type HttpClientOptions,
  httpOf,
  type KnownOptions,
  type ListOptions,
  type MemoryOptions,
  memoryOf,
  type ProgramOptions,
  programOf,
  type Progress,
  REQUEST_OPTIONS,
  type RequestOptions,
  requestOf,
  requestOptionsError,
  settingsOf,
  type WaitOptions,
} from "./options.js";

/** What the server sent when the connection was opened. */
interface ServerDescription {
  protocolVersion: Revision;
  serverInfo: Implementation | null;
  serverCapabilities: ServerCapabilities;
  instructions: string | null;
}

/** The parameter of the requests without a result that have one. */
const OPERATION_ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ["logging/setLevel", "level"],
  ["resources/subscribe", "uri"],
  ["resources/unsubscribe", "uri"],
]);

/** Creates the native client. */
type Make = (clients: NativeClients, number: number, offer: string, settings: string) => NativeClient;

/**
 * A connection to an MCP server.
 *
 * ```ts
 * await using client = await Client.connect("http://localhost:8000/mcp");
 * const result = await client.callTool("forecast", { city: "Oslo" });
 * ```
 *
 * If the connection is lost, the next request opens a new one; see {@link ClientSettings.reconnectAttempts}. Input
 * requests of the server are answered by the client's handlers ({@link Handlers}). Errors are subclasses of {@link
 * McplineError}.
 *
 * Requests in flight keep the process alive; an idle client does not. A client that is garbage collected closes its
 * connection in the background.
 */
export class Client {
  readonly #native: NativeClient;
  readonly #number: number;
  readonly #host: Host;
  #opened!: ServerDescription;
  #isFlushing = false;
  #listensToNotifications = false;
  #closed: Promise<void> | undefined;

  private constructor(host: Host, options: ClientOptions, settings: string, make: Make) {
    const { name = "mcpline", version = native.version(), title, info, capabilities = {} } = options;
    const offer = host.offer({ name, version, ...(title === undefined ? {} : { title }), ...info }, capabilities);
    const number = nextNumber();
    this.#native = attempt(() => make(clientsOfThread(), number, offer, settings));
    this.#number = number;
    this.#host = host;
    host.native = this.#native;
    if (host.recordsRequests) {
      this.#native.recordRequests();
    }
    // The addon must not keep the handlers alive: they may refer to the client.
    const reference = new WeakRef(host);
    listen(number, { onEvent: (about, number, json) => reference.deref()?.onEvent(about, number, json) });
    forgotten.register(this, number, this);
    if (host.channels !== undefined) {
      channelsForgotten.register(this, host.channels);
    }
    if (host.leaveContext !== undefined) {
      contextsForgotten.register(this, host.leaveContext);
    }
  }

  // Connecting

  /**
   * Connects to a server at a URL, over Streamable HTTP or HTTP+SSE.
   *
   * @throws McplineError if the connection fails.
   * @throws UsageError if an option is unknown or invalid.
   */
  static async connect(url: string | URL, options: HttpClientOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "http");
    const authorization = options.auth === undefined ? undefined : authorizationOf(options.auth);
    const http = httpOf(options, authorization);
    const host = new Host(options, undefined, networkOf(url));
    host.authorization = authorization;
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.of(clients, number, offer, settings, "url", String(url), http),
    );
  }

  /**
   * Starts a server as a child process and connects to it over stdin and stdout. The process, and the processes that it
   * has started, end with the connection.
   *
   * @param program Path of the program, or a name to find in `PATH`.
   * @param args Arguments of the program.
   * @throws McplineError if the connection fails.
   * @throws UsageError if an option is unknown or invalid.
   */
  static async spawn(program: string, args: readonly string[] = [], options: ProgramOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "program");
    const command = programOf(program, args, options);
    const { stderr } = options;
    const host = new Host(options, typeof stderr === "function" ? stderr : undefined, PIPE);
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.of(clients, number, offer, settings, "program", "", command),
    );
  }

  /**
   * Connects to a server on a Unix domain socket. Messages are separated by newlines.
   *
   * @throws McplineError if the connection fails.
   * @throws UsageError if an option is unknown or invalid.
   */
  static async socket(path: string, options: ClientOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "other");
    const host = new Host(options, undefined, socketOf(path));
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.of(clients, number, offer, settings, "socket", path, ""),
    );
  }

  /**
   * Connects to a server in this process. Its handlers run in the asynchronous context of this call.
   *
   * @throws McplineError if the connection fails.
   * @throws UsageError if an option is unknown or invalid.
   */
  static async memory(server: Server, options: MemoryOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "memory");
    const memory = memoryOf(options);
    const host = new Host(options);
    host.server = server;
    host.leaveContext = server.enterContext();
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.ofServer(clients, number, offer, settings, server.native, memory),
    );
  }

  /**
   * Connects over a custom transport, such as a WebSocket or a message queue.
   *
   * @param transport Opens a channel for each connection.
   * @throws McplineError if the connection fails.
   * @throws UsageError if an option is unknown or invalid.
   */
  static async over(transport: ClientTransport, options: ClientOptions = {}): Promise<Client> {
    const settings = settingsOf(options, "other");
    const host = new Host(options);
    const channels = new Channels(transport);
    host.channels = channels;
    return Client.#open(host, options, settings, (clients, number, offer, settings) =>
      native.Client.ofChannel(clients, number, offer, settings, channels.native),
    );
  }

  /**
   * Connects to a server that a host's configuration file describes, such as `mcp.json`.
   *
   * The file has the object `mcpServers`, or `servers` as VS Code writes it. A server has `command` with `args`, `env` and
   * `cwd`, or `url` with `headers`; `type`, if present, is `stdio`, `http`, `streamable-http` or `sse`. In these strings
   * `${NAME}` and `${env:NAME}` stand for an environment variable, and `${NAME:-text}` for `text` if it is not set. Comments
   * and trailing commas are allowed; members that only hosts use are ignored.
   *
   * @param path Path of the file.
   * @param name Name of the server. Default: the only server of the file that is not disabled.
   * @param options Those of {@link connect} for a server with a URL, and of {@link spawn} for one with a command.
   * @throws UsageError if the file cannot be read, has another form, or has no such server; if it has several servers and
   *   none is named; if an environment variable is not set; or if an option is unknown or not for this kind of server.
   * @throws McplineError if the connection fails.
   */
  static async fromConfig(path: string | URL, name?: string, options: ConfigOptions = {}): Promise<Client> {
    const file = path instanceof URL ? fileURLToPath(path) : path;
    const server = JSON.parse(attempt(() => native.configuredServer(file, name))) as ConfiguredServer;
    if ("url" in server) {
      return Client.connect(server.url, { ...options, headers: server.headers });
    }
    const { program, arguments: args, env, cwd } = server;
    return Client.spawn(program, args, { ...options, env, ...(cwd === null ? {} : { cwd }) });
  }

  static async #open(host: Host, options: ClientOptions, settings: string, make: Make): Promise<Client> {
    const { signal } = options;
    signal?.throwIfAborted();
    const client = new Client(host, options, settings, make);
    try {
      const opened = await client.#settled((promise) => client.#native.open(promise), signal);
      client.#opened = JSON.parse(opened as string) as ServerDescription;
      host.tracing.revision = client.#opened.protocolVersion;
    } catch (error) {
      void client.close();
      throw error;
    }
    return client;
  }

  // The server

  /** Process id of the server; `undefined` if this client did not start it, or is not connected to it. */
  get pid(): number | undefined {
    return this.#native.pid() ?? undefined;
  }

  /**
   * Returns a snapshot of what the client holds now: its connection, requests in flight and cached results. It needs no setting
   * and costs requests nothing. Throws if the client is closed.
   */
  stats(): ClientStats {
    return clientStatsOf(attempt(() => this.#native.stats()));
  }

  /**
   * Returns the metrics of the client in the text format of Prometheus, version 0.0.4; the media type is
   * `text/plain; version=0.0.4`. Empty if the setting `metrics` is off. {@link Client.metricsOf} joins those of several clients.
   * Throws if the client is closed.
   */
  metrics(): string {
    return attempt(() => this.#native.metrics());
  }

  /**
   * Returns the metrics of several clients as one text, each with its name as the label `server`. Clients that are closed, and
   * those without the setting `metrics`, are left out.
   */
  static metricsOf(clients: Readonly<Record<string, Client>>): string {
    const metrics = new native.ClientMetrics();
    for (const [name, client] of Object.entries(clients)) {
      metrics.add(name, client.#native);
    }
    return metrics.text();
  }

  /** The negotiated protocol revision. */
  get protocolVersion(): Revision {
    return this.#opened.protocolVersion;
  }

  /** Name and version of the server; `undefined` if it sent none. */
  get serverInfo(): Implementation | undefined {
    return this.#opened.serverInfo ?? undefined;
  }

  /** The capabilities that the server declared. */
  get serverCapabilities(): ServerCapabilities {
    return this.#opened.serverCapabilities;
  }

  /** The server's instructions for the model; `undefined` if it sent none. */
  get instructions(): string | undefined {
    return this.#opened.instructions ?? undefined;
  }

  // Lists

  /** Returns all tools, of all pages (`server/tools`). */
  listTools(options?: ListOptions): Promise<Tool[]> {
    return all(this.tools(options));
  }

  /** Returns all resources, of all pages (`server/resources`). */
  listResources(options?: ListOptions): Promise<Resource[]> {
    return all(this.resources(options));
  }

  /** Returns all resource templates, of all pages (`server/resources`, resource templates). */
  listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]> {
    return all(this.resourceTemplates(options));
  }

  /** Returns all prompts, of all pages (`server/prompts`). */
  listPrompts(options?: ListOptions): Promise<Prompt[]> {
    return all(this.prompts(options));
  }

  /** Iterates over all tools. Pages are requested as needed. */
  tools(options?: ListOptions): AsyncGenerator<Tool, undefined> {
    return this.#iterate("tools/list", "tools", options);
  }

  /** Iterates over all resources. Pages are requested as needed. */
  resources(options?: ListOptions): AsyncGenerator<Resource, undefined> {
    return this.#iterate("resources/list", "resources", options);
  }

  /** Iterates over all resource templates. Pages are requested as needed. */
  resourceTemplates(options?: ListOptions): AsyncGenerator<ResourceTemplate, undefined> {
    return this.#iterate("resources/templates/list", "resourceTemplates", options);
  }

  /** Iterates over all prompts. Pages are requested as needed. */
  prompts(options?: ListOptions): AsyncGenerator<Prompt, undefined> {
    return this.#iterate("prompts/list", "prompts", options);
  }

  // Requests

  /**
   * Calls a tool (`server/tools`, calling tools).
   *
   * ```ts
   * const result = await client.callTool("forecast", { city: "Oslo" }, { schema: z.object({ days: z.int() }) });
   * console.log(result.isError ? result.content : result.data.days);
   * ```
   *
   * @param name Name of the tool.
   * @param args Arguments of the tool.
   * @param options With `schema`, a schema of a library or its shape, the `data` of the result is validated and typed by
   *   it. Without structured content, it is applied to the JSON of the only text block.
   * @returns The result, and its structured content as `data`. If `isError` is true, the tool failed, and the content
   *   describes the failure for the model.
   * @throws InvalidResponseError if the structured content does not match `schema`.
   * @throws RpcError if the server returns an error.
   * @throws McplineError if the request fails in another way; see the subclasses.
   */
  callTool<const S extends StandardSchema | SchemaShape>(
    name: string,
    args: object | undefined,
    options: RequestOptions & { schema: S },
  ): Promise<ToolCallResult<SchemaOutput<S>>>;
  callTool(name: string, args?: object, options?: RequestOptions): Promise<ToolCallResult>;
  async callTool(
    name: string,
    args?: object,
    options?: RequestOptions & { schema?: unknown },
  ): Promise<ToolCallResult> {
    checkNamed("callTool", "the name of the tool", name);
    const schema = options?.schema;
    const validate = schema === undefined ? undefined : dataSchema(name, schema);
    const result = await this.#request(
      "tools/call",
      { name, arguments: args ?? {} },
      options,
      callResult,
      REQUEST_OPTIONS.call,
    );
    return withData(result, name, this.protocolVersion, validate);
  }

  /** Reads a resource (`server/resources`). Throws the errors of {@link callTool}. */
  async readResource(uri: string | URL, options?: RequestOptions): Promise<ReadResourceResult> {
    checkUri("readResource", uri);
    return this.#request("resources/read", { uri }, options, readResult);
  }

  /** Gets a prompt with its arguments filled in (`server/prompts`). Throws the errors of {@link callTool}. */
  async getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: RequestOptions,
  ): Promise<GetPromptResult> {
    checkNamed("getPrompt", "the name of the prompt", name);
    return this.#request("prompts/get", { name, arguments: args }, options, promptResult);
  }

  /**
   * Returns completions for an argument (`server/utilities/completion`). Throws the errors of {@link callTool}.
   *
   * @param of Name of a prompt, or URI template of a resource template.
   * @param argument Name of the argument or variable, and the text typed so far.
   * @param options `context` contains the other arguments given so far.
   */
  async complete(
    of: { readonly prompt: string } | { readonly template: string },
    argument: { readonly name: string; readonly value: string },
    options?: RequestOptions & { context?: Readonly<Record<string, string>> },
  ): Promise<CompleteResult> {
    const context = options?.context;
    const ref = referenceOf(of);
    const params = { ref, argument, ...(context === undefined ? {} : { context: { arguments: context } }) };
    return this.#request("completion/complete", params, options, completeResult, REQUEST_OPTIONS.complete);
  }

  /**
   * Sets the minimum level of the log messages to receive (`server/utilities/logging`). Kept on new connections.
   *
   * Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
   */
  async setLogLevel(level: LogLevel, options?: WaitOptions): Promise<void> {
    await this.#do("logging/setLevel", level, options);
  }

  /** Checks that the server responds (`basic/utilities/ping`). */
  async ping(options?: WaitOptions): Promise<void> {
    await this.#do("ping", "", options);
  }

  /** Subscribes to updates of a resource (`notifications/resources/updated`). Kept on new connections. */
  async subscribe(uri: string | URL, options?: WaitOptions): Promise<void> {
    checkUri("subscribe", uri);
    await this.#do("resources/subscribe", String(uri), options);
  }

  /** Unsubscribes from updates of a resource. */
  async unsubscribe(uri: string | URL, options?: WaitOptions): Promise<void> {
    checkUri("unsubscribe", uri);
    await this.#do("resources/unsubscribe", String(uri), options);
  }

  /**
   * Notifies the server that the roots have changed (`notifications/roots/list_changed`).
   *
   * Does nothing on 2026-07-28, where servers request the roots each time.
   */
  async rootsChanged(): Promise<void> {
    await this.#do("notifications/roots/list_changed", "");
  }

  /**
   * Sends any request. Throws the errors of {@link callTool}.
   *
   * @typeParam R Type of the result.
   * @param method Method of the request.
   * @param params Parameters: a JSON object.
   */
  request<R = unknown>(method: string, params?: object, options?: RequestOptions): Promise<R> {
    return this.#request(method, params, options, (result) => result as R);
  }

  /**
   * Sends any notification.
   *
   * @param method Method of the notification.
   * @param params Parameters: a JSON object.
   */
  async notify(method: string, params?: object): Promise<void> {
    const json = params === undefined ? "" : JSON.stringify(params);
    await this.#settled((promise) => {
      this.#native.notify(promise, method, json);
      this.#flushSoon();
    });
  }

  /**
   * Iterates over the server's notifications from now on, until the client is closed or the loop is left. Waiting for
   * the next notification keeps the process alive.
   *
   * @throws UsageError from the iterator, if the loop is slower than the server: if more than 10,000 notifications are
   *   waiting, or more than 32 Mi characters of their JSON. Waiting notifications are delivered first.
   * @throws ClosedError if the client is closed.
   */
  notifications(): AsyncIterableIterator<Notification> {
    if (this.#closed !== undefined) {
      throw new ClosedError("client is closed");
    }
    if (!this.#listensToNotifications) {
      attempt(() => this.#native.listenToNotifications());
      this.#listensToNotifications = true;
    }
    return new Notifications(this.#host, this);
  }

  /**
   * Closes the connection. Requests in flight are rejected with {@link ClosedError}, and a child process is ended.
   *
   * Can be called more than once. When it resolves, all file descriptors are closed and the child process has exited.
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
      // The thread ends, and the connection with it.
      dropPromise(number);
    }
    for (const taker of this.#host.takers) {
      taker.end();
    }
    forgotten.unregister(this);
    unlisten(this.#number);
    this.#host.channels?.end();
    this.#host.leaveContext?.();
  }

  async *#iterate<T>(method: string, member: string, options: ListOptions | undefined): AsyncGenerator<T, undefined> {
    const cursors = new native.Cursors(method);
    let params: { cursor: string } | undefined;
    for (;;) {
      const page = await this.#request(
        method,
        params,
        options,
        (result) => pageOf(result, method, member),
        REQUEST_OPTIONS.list,
      );
      yield* page.items as T[];
      const { next } = page;
      if (!attempt(() => cursors.follow(next))) {
        return;
      }
      params = { cursor: next as string };
    }
  }

  /** Sends a request, in a span if the program traces. */
  #request<R>(
    method: string,
    params: object | undefined,
    options: RequestOptions | undefined,
    read: (result: unknown) => R,
    known: KnownOptions = REQUEST_OPTIONS.request,
  ): Promise<R> {
    const refused = options === undefined ? undefined : requestOptionsError(method, options, known);
    if (refused !== undefined) {
      return Promise.reject(refused);
    }
    const span = this.#host.tracing.send(method, params);
    if (span === undefined) {
      return this.#send(method, params, options, read);
    }
    const send = () => {
      const inParams = params !== undefined && Object.hasOwn(params, "_meta");
      const sent = inParams ? span.inParams(params) : params;
      const meta = inParams ? undefined : span.inMeta(options?.meta);
      return this.#send(method, sent, options, read, { span, meta });
    };
    return inSpan(span, send, options);
  }

  async #send<R>(
    method: string,
    params: object | undefined,
    options: RequestOptions | undefined,
    read: (result: unknown) => R,
    traced?: Traced,
  ): Promise<R> {
    const { functions } = this.#host.middleware;
    if (functions.length > 0) {
      const send = (request: ClientRequest) =>
        this.#sendNow(request.method, request.sent, options, (result) => result, traced);
      return read(await sendThrough(functions, new ClientRequest(method, plainData(params), options?.signal), send));
    }
    return this.#sendNow(method, params, options, read, traced);
  }

  /** Sends a request that has passed the functions of the option `middleware`. */
  async #sendNow<R>(
    method: string,
    params: object | undefined,
    options: RequestOptions | undefined,
    read: (result: unknown) => R,
    traced?: Traced,
  ): Promise<R> {
    const json = params === undefined ? "" : JSON.stringify(params);
    if (options !== undefined || traced !== undefined) {
      return read(await this.#sendWithOptions(method, json, options ?? {}, traced));
    }
    const [number, promise] = promised();
    try {
      attempt(() => this.#native.request(number, method, json, undefined, 0));
    } catch (error) {
      dropPromise(number);
      throw error;
    }
    this.#flushSoon();
    let result;
    try {
      result = await promise;
    } catch (error) {
      throw withStack(error);
    }
    return read(JSON.parse(result as string));
  }

  async #sendWithOptions(method: string, json: string, options: RequestOptions, traced?: Traced): Promise<unknown> {
    const { signal, onProgress } = options;
    signal?.throwIfAborted();
    const written = requestOf(options, traced?.meta);
    const reports = onProgress === undefined ? undefined : new Reports(onProgress, this.#host.waiting);
    const flags =
      (reports === undefined ? 0 : Flag.ReportsProgress) |
      (signal === undefined ? 0 : Flag.MayEnd) |
      tracedFlag(traced);
    let requestNumber = 0;
    const start = (promise: number) => {
      this.#native.request(promise, method, json, written, flags);
      requestNumber = promise;
      if (reports !== undefined) {
        this.#host.reports.set(promise, (report) => reports.report(report));
      }
      this.#flushSoon();
    };
    try {
      const result = await this.#settled(start, signal);
      await reports?.delivered;
      return JSON.parse(result as string) as unknown;
    } finally {
      this.#host.reports.delete(requestNumber);
      traced?.span.sent(this.#native.takeSent(requestNumber));
    }
  }

  /** Sends a request without a result, in a span if the program traces, or a notification. */
  #do(method: string, argument: string, options?: WaitOptions): Promise<void> {
    const refused = options === undefined ? undefined : requestOptionsError(method, options, REQUEST_OPTIONS.wait);
    if (refused !== undefined) {
      return Promise.reject(refused);
    }
    const target = method.startsWith("resources/") ? { uri: argument } : undefined;
    const isRequest = !method.startsWith("notifications/");
    const span = isRequest ? this.#host.tracing.send(method, target) : undefined;
    if (span === undefined) {
      return this.#perform(method, argument, options);
    }
    return inSpan(
      span,
      () => this.#perform(method, argument, options, { span, meta: span.inMeta(undefined) }),
      options,
    );
  }

  async #perform(method: string, argument: string, options: WaitOptions = {}, traced?: Traced): Promise<void> {
    const { functions } = this.#host.middleware;
    if (functions.length === 0 || method.startsWith("notifications/")) {
      return this.#performNow(method, argument, options, traced);
    }
    const member = OPERATION_ARGUMENTS.get(method);
    const params = member === undefined ? undefined : { [member]: argument };
    const request = new ClientRequest(method, params, options.signal);
    await sendThrough(functions, request, async ({ params }) => {
      let changed: unknown = argument;
      if (member !== undefined) {
        changed = params[member];
        if (typeof changed !== "string") {
          throw new UsageError(`\`${member}\` of ${method} must be a string, not ${typeName(changed)}`);
        }
      }
      await this.#performNow(method, changed as string, options, traced);
      return {};
    });
  }

  async #performNow(method: string, argument: string, options: WaitOptions, traced?: Traced): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    const written = requestOf(options, traced?.meta);
    let requestNumber = 0;
    try {
      await this.#settled((promise) => {
        this.#native.do(promise, method, argument, written, tracedFlag(traced));
        requestNumber = promise;
        this.#flushSoon();
      }, signal);
    } finally {
      traced?.span.sent(this.#native.takeSent(requestNumber));
    }
  }

  /** Calls `start` with the number of a promise, and returns what the addon settles it with. The signal cancels it. */
  async #settled(start: (promise: number) => void, signal?: AbortSignal): Promise<string | undefined> {
    const [number, promise] = promised();
    try {
      attempt(() => start(number));
    } catch (error) {
      dropPromise(number);
      throw error;
    }
    try {
      return await (signal === undefined ? promise : this.#rejectOnAbort(signal, number, promise));
    } catch (error) {
      throw error === signal?.reason ? error : withStack(error);
    }
  }

  #rejectOnAbort(
    signal: AbortSignal,
    number: number,
    promise: Promise<string | undefined>,
  ): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        // Rejects at once. The addon's result is ignored.
        reject(signal.reason as Error);
        attempt(() => this.#native.cancel(number));
      };
      signal.addEventListener("abort", abort, { once: true });
      const ended = () => signal.removeEventListener("abort", abort);
      promise.finally(ended).then(resolve, reject);
    });
  }

  /** Flushes the requests of this turn at its end. */
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

/** A server in a configuration file, as the addon describes it. */
type ConfiguredServer =
  | { url: string; headers: [string, string][] }
  | { program: string; arguments: string[]; env: Record<string, string>; cwd: string | null };

/** Delivers the progress reports of one request to its listener. */
class Reports {
  readonly #listeners: Backlog;
  readonly #listener: (report: Progress) => unknown;

  constructor(listener: (report: Progress) => unknown, waiting: BacklogLimit) {
    this.#listeners = new Backlog("the progress listener", waiting);
    this.#listener = listener;
  }

  /** Settles when all reports were delivered. */
  get delivered(): Promise<void> | undefined {
    return this.#listeners.last;
  }

  report(report: Progress): void {
    this.#listeners.run(report.message?.length ?? 0, () => this.#deliver(report));
  }

  /** Never rejects. */
  #deliver(report: Progress): Promise<void> | undefined {
    const failed = (error: unknown) => warn("the progress listener failed", error);
    try {
      const value = this.#listener(report);
      return value instanceof Promise ? value.then(() => undefined, failed) : undefined;
    } catch (error) {
      failed(error);
      return undefined;
    }
  }
}

/** A request that has a span. */
interface Traced {
  readonly span: SentRequest;
  /** Replaces the `_meta` of the options, unless it is in the parameters. */
  readonly meta: object | undefined;
}

function tracedFlag(traced: Traced | undefined): number {
  return traced === undefined ? 0 : Flag.IsTraced;
}

/** Sends a request, and ends its span with it. */
async function inSpan<R>(
  span: SentRequest,
  send: () => Promise<R>,
  options: { signal?: AbortSignal } | undefined,
): Promise<R> {
  try {
    const result = await send();
    span.succeeded(result);
    return result;
  } catch (error) {
    const signal = options?.signal;
    if (signal?.aborted === true && error === signal.reason) {
      span.cancelled();
    } else {
      span.failed(error);
    }
    throw error;
  }
}

/** Replaces the stack of an error by that of the caller who waited for it. */
function withStack(error: unknown): unknown {
  if (error instanceof Error) {
    Error.captureStackTrace(error, withStack);
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
const contextsForgotten = new FinalizationRegistry<() => void>((leave) => {
  leave();
});

let clients: NativeClients | undefined;

/**
 * The clients of this JavaScript thread. Those that are open when it ends are closed, so that no child process remains.
 */
function clientsOfThread(): NativeClients {
  if (clients === undefined) {
    const made = new native.Clients(hub);
    process.once("exit", () => made.close());
    clients = made;
  }
  return clients;
}
