/** MCP servers, as programs use them: registration of features, and serving. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

import { contextOf } from "./async_context.js";
import type { BuiltInMiddleware } from "./built_in_middleware.js";
import type { Channel, MessageReceiver } from "./channel.js";
import type { Context } from "./context.js";
import { attempt, UsageError } from "./errors.js";
import { closeOnSignals, flushTrafficAtExit } from "./exit.js";
import { checkServer } from "./feature_checks.js";
import type {
  ArgumentsOf,
  Awaitable,
  CompletionReturn,
  DescriptionChanges,
  FeatureSelection,
  Literals,
  MethodOptions,
  MountOptions,
  NoArguments,
  OptionsOfUri,
  ParamsOf,
  PromptArguments,
  PromptArgumentValues,
  PromptOptions,
  PromptReturn,
  RequestReturn,
  ResourceChanges,
  ResourceReturn,
  ReturnOf,
  ToolChanges,
  ToolOptions,
  ToolTransform,
  VariablesOf,
} from "./feature_options.js";
import { FeatureRegistry } from "./feature_registry.js";
import {
  addCompletion,
  addEvent,
  addMethod,
  addPrompt,
  addResource,
  addRoute,
  addTool,
} from "./feature_registration.js";
import { HandlerTable } from "./handlers.js";
import type { HttpExchange, HttpApp } from "./http.js";
import { type CallReceiver, hub, register } from "./hub.js";
import { addMiddleware, type Middleware, type MiddlewareMethods, type MiddlewareScope } from "./middleware.js";
import { Mounts } from "./mounts.js";
import { native, type NativeServer } from "./native.js";
import { addOpenApi, type OpenApiOptions } from "./openapi.js";
import { isObject, typeName } from "./option_checks.js";
import type { FastifyReplyLike, FastifyRequestLike, MountedRequestOptions } from "./outer_request.js";
import type { CompleteParams } from "./protocol.js";
import { requestListener, requestRecorder } from "./request_log.js";
import { RequestTracing } from "./request_spans.js";
import type { PathVariablesOf, RouteHandler, RouteOptions } from "./routes.js";
import type { Schema } from "./schemas.js";
import type { ServerOptions } from "./server_options.js";
import {
  type ChannelOptions,
  type HttpListener,
  type UnixListener,
  type ListenOptions,
  type ServedChannel,
  Serving,
} from "./serving.js";
import { type HttpSettings, serverOptions, type UnixSettings } from "./settings.js";
import { type Sharing, sharingHandlers } from "./sharing.js";
import { type ServerStats, statsOf } from "./stats.js";

/** Options that a server needs because of its types: values that are not `undefined` have to come from somewhere. */
type NeededOptions<C, State> = ([undefined] extends [C] ? unknown : { createContext: unknown }) &
  ([undefined] extends [State] ? unknown : { state: State });

/**
 * An MCP server, for clients of every protocol revision.
 *
 * ```ts
 * const server = new Server({ name: "weather", version: "1.0.0" });
 * server.tool("forecast", { input: z.object({ city: z.string() }) }, ({ city }) => `${city}: sunny`);
 * await server.run();
 * ```
 *
 * Features can be registered before the server starts and while it runs.
 *
 * @typeParam C Type of {@link Context.context}, the value of the program for a call. Inferred from {@link
 *   ServerOptions.createContext}.
 * @typeParam State Type of {@link state}. Inferred from {@link ServerOptions.state}.
 */
export class Server<C = unknown, State = unknown> {
  readonly #native: NativeServer;
  readonly #features: FeatureRegistry;
  readonly #handlers: HandlerTable;
  readonly #serving: Serving;
  readonly #mounts: Mounts;
  readonly #tracing: RequestTracing;
  readonly #createContext: ((ctx: Context<undefined>) => unknown) | undefined;
  /** The {@link ServerOptions.state} of the program; `undefined` if it gave none. */
  readonly state: State;
  #app: HttpApp | undefined;
  #isClosed = false;

  /** @throws UsageError if a setting has an invalid value, or an extension cannot be registered. */
  constructor(options: ServerOptions<C, State> & NeededOptions<C, State>);
  constructor(options: ServerOptions<C, State>, ...others: unknown[]) {
    checkServer(options, others);
    const {
      instructions,
      extensions = [],
      settings,
      onError,
      onRequestEnd,
      logger,
      createContext,
      state,
      tracing,
      ...info
    } = options as ServerOptions;
    this.#createContext = createContext;
    this.state = state as State;
    const handlers = new HandlerTable(this, onError);
    this.#handlers = handlers;
    const listener = requestListener(onRequestEnd, logger);
    const recorded = listener === undefined ? undefined : requestRecorder(listener);
    // Kept by `#serving`; lives as long as the server.
    const receiver: CallReceiver = {
      run: (handler, call, input, origin, span) => {
        handlers.run(contextOf(origin, this.#mounts.context()), handler, call, input, span);
      },
      requestEnded: (record) => {
        recorded?.(record);
      },
    };
    const number = register(receiver);
    const { sharing, ...rest } = settings ?? {};
    const isOwn = isObject(sharing);
    const given = serverOptions(isOwn ? rest : (settings ?? {}), extensions);
    const [functions, timeout] = isOwn ? sharingHandlers(sharing) : [];
    const numbers = functions?.map((handler) => handlers.add(handler));
    const described = JSON.stringify(info);
    this.#native = attempt(() => new native.Server(hub, number, described, instructions, given, numbers, timeout));
    this.#features = new FeatureRegistry(this.#native, handlers);
    this.#tracing = new RequestTracing(this.#native, tracing ?? true);
    this.#serving = new Serving(this.#native, number, receiver, this.#tracing);
    this.#mounts = new Mounts(this.#native, this.#features, this.#serving);
    if (this.#native.isDebugged) {
      flushTrafficAtExit();
    }
    if (recorded !== undefined) {
      this.#native.recordRequests();
    }
    this.fetch = this.fetch.bind(this);
    this.handler = this.handler.bind(this);
    for (const extension of extensions) {
      extension.addTo(this);
    }
  }

  /** Checks shared state; see {@link checkSharing}. @internal */
  async checkSharing(sharing: Sharing, other: Sharing): Promise<void> {
    const numbered = (state: Sharing): [number[], number | undefined] => {
      const [functions, timeout] = sharingHandlers(state);
      return [functions.map((handler) => this.#handlers.add(handler)), timeout];
    };
    await this.#serving.checkSharing(numbered(sharing), numbered(other));
  }

  /** The native server, for clients in the same process. @internal */
  get native(): NativeServer {
    return this.#native;
  }

  /**
   * Registers a tool (`server/tools`) and notifies clients (`notifications/tools/list_changed`).
   *
   * @param handler Called with the arguments, validated and typed by the schema. Returns a string or content; with an
   *   output schema, the structured content; or a complete result ({@link result}). Throws {@link ToolError} for errors
   *   that the model should read. Any other error goes to {@link ServerOptions.onError}, and is emitted as a warning of
   *   the process; the client gets an internal error.
   * @throws UsageError if the name is taken, or a schema is invalid.
   */
  tool<
    const I extends Schema | undefined = undefined,
    const O extends Schema | undefined = undefined,
    Literal extends string | number | boolean = never,
  >(
    name: string,
    options: ToolOptions<I, O>,
    handler: (args: ArgumentsOf<I>, ctx: Context<C, State>) => Awaitable<ReturnOf<O> | Literals<Literal>>,
  ): this {
    addTool(this.#features, name, options, handler);
    return this;
  }

  /**
   * Removes a tool and notifies clients (`notifications/tools/list_changed`). Returns whether the tool was registered.
   * Calls in flight continue.
   */
  removeTool(name: string): boolean {
    return this.#features.remove("tool", name);
  }

  /**
   * Registers a resource, or a resource template (`server/resources`), and notifies clients
   * (`notifications/resources/list_changed`).
   *
   * ```ts
   * server.resource("note://all", { name: "notes" }, () => [...notes.keys()]);
   * server.resource("note://{id}", { name: "note" }, ({ id }) => notes.get(id) ?? "");
   * ```
   *
   * @param uri URI of the resource; or a URI template (RFC 6570), which has variables in braces.
   * @param handler Called with the variables of the URI: strings, or arrays for exploded variables (`{path*}`). A
   *   resource without variables gets an empty object.
   * @throws UsageError if the URI or template is taken or invalid, or lacks a variable that the options name.
   */
  resource<const Uri extends string>(
    uri: Uri,
    options: OptionsOfUri<Uri, Context<C, State>>,
    handler: (variables: VariablesOf<Uri>, ctx: Context<C, State>) => Awaitable<ResourceReturn>,
  ): this {
    addResource(this.#features, uri, options, handler);
    return this;
  }

  /** Removes a resource or template and notifies clients. Returns whether it was registered. */
  removeResource(uri: string): boolean {
    return this.#features.remove("resource", uri);
  }

  /**
   * Registers a prompt (`server/prompts`) and notifies clients (`notifications/prompts/list_changed`).
   *
   * @param handler Called with the arguments by name: strings, or the values of the schema that `arguments` is.
   * @throws UsageError if the name is taken, or the schema cannot be listed as arguments.
   */
  prompt<const A extends PromptArguments = NoArguments>(
    name: string,
    options: PromptOptions<A, Context<C, State>>,
    handler: (args: PromptArgumentValues<A>, ctx: Context<C, State>) => Awaitable<PromptReturn>,
  ): this {
    addPrompt(this.#features, name, options as PromptOptions, handler);
    return this;
  }

  /**
   * Removes a prompt and notifies clients (`notifications/prompts/list_changed`). Returns whether the prompt was
   * registered.
   */
  removePrompt(name: string): boolean {
    return this.#features.remove("prompt", name);
  }

  /**
   * Changes the definition of a tool and notifies clients (`notifications/tools/list_changed`).
   *
   * The handler, the options and the place in lists stay the same. To change the handler, remove the tool and add another
   * one.
   *
   * @throws UsageError if there is no such tool, it belongs to a mounted server, or the new name is taken.
   */
  updateTool(name: string, changes: ToolChanges): void {
    this.#features.update("tool", name, changes);
  }

  /**
   * Changes a tool: its name, its description, and which arguments clients see, under which names. The handler stays the
   * same and gets the arguments that it has. Connected clients are notified (`notifications/tools/list_changed`).
   *
   * ```ts
   * server.transformTool("search", {
   *   name: "find_manual",
   *   arguments: { q: { name: "query" }, site: { fixed: "manual.example.com" }, debug: { hidden: true } },
   * });
   * ```
   *
   * Where the values of arguments are wrong, errors of a schema library name these as the handler does.
   *
   * @throws UsageError if there is no such tool; it belongs to a mounted server (see {@link MountOptions.tools}); the new
   *   name is taken; the tool has no such argument; two arguments would have one name; a required argument would be hidden
   *   without a value; a value does not match the schema of its argument; or the input schema relates arguments to each
   *   other, for example by `oneOf`, so that they cannot be renamed or hidden.
   */
  transformTool(name: string, transform: ToolTransform): void {
    this.#features.transformTool(name, transform);
  }

  /**
   * Changes the definition of a resource or resource template and notifies clients; see {@link updateTool}.
   *
   * @param uri The URI of the resource, or the URI template.
   * @throws UsageError if there is no such resource, or it belongs to a mounted server.
   */
  updateResource(uri: string, changes: ResourceChanges): void {
    this.#features.update("resource", uri, changes);
  }

  /**
   * Changes the definition of a prompt and notifies clients (`notifications/prompts/list_changed`); see {@link updateTool}.
   *
   * @throws UsageError if there is no such prompt, it belongs to a mounted server, or the new name is taken.
   */
  updatePrompt(name: string, changes: DescriptionChanges): void {
    this.#features.update("prompt", name, changes);
  }

  /**
   * Enables the features that are selected, and notifies clients. Returns how many were disabled before.
   *
   * The rule also holds for features that are registered later; where several rules select a feature, the last one
   * decides. To show features to some callers only, use `scopes`.
   *
   * ```ts
   * server.disable({ tags: ["admin"] });
   * server.enable({ names: ["report"] });
   * ```
   *
   * @throws UsageError if there is no such kind.
   */
  enable(selection: FeatureSelection = {}): number {
    return this.#features.setEnabled(true, selection);
  }

  /**
   * Disables features: for clients they do not exist. Returns how many were enabled before. Calls in flight continue. See
   * {@link enable}.
   */
  disable(selection: FeatureSelection = {}): number {
    return this.#features.setEnabled(false, selection);
  }

  /**
   * Adds the tools, resources, templates, prompts, completions and custom methods of another server to this one.
   *
   * What is registered, changed, enabled, disabled or removed at the mounted server later does the same here, unless
   * `snapshot` is set. A feature whose name is taken by then is left out, with a warning in the log.
   *
   * Calls are served by this server: its settings, sessions and authorization apply, except that the rate limit of a tool
   * is the one at its own server. The instructions, extensions and
   * event handlers of the mounted server do not. Errors go to the `onError` of the mounted server. It can be mounted in
   * several servers, and be served itself.
   *
   * @throws UsageError if the prefix is invalid, a name is taken, the servers would contain each other, or a tool cannot be
   *   changed. Nothing is mounted then.
   */
  mount(server: Server, options: MountOptions = {}): this {
    if (!(server instanceof Server)) {
      throw new UsageError(`\`mount\` takes a server, not ${typeName(server)}`);
    }
    this.#mounts.mount(server.#mounts, options);
    return this;
  }

  /** Reverts {@link mount}, whatever the prefixes. Returns whether the server was mounted. */
  unmount(server: Server): boolean {
    return this.#mounts.unmount(server.#mounts);
  }

  /**
   * Adds tools and resources for the operations of an HTTP API, from its OpenAPI document. All are added or none. Returns the
   * names of tools, and the URIs or URI templates of resources.
   *
   * Calls become HTTP requests, which the library sends without running JavaScript, or with the `fetch` that you give. The
   * annotations of tools follow from the HTTP method, their tags are those of the document. To put a prefix before the names, add the API to a server of its own
   * and mount that: `server.mount(api, { prefix: "github" })`.
   *
   * ```ts
   * server.addOpenApi(document, {
   *   baseUrl: "https://api.example.com/v1",
   *   credentials: { token: process.env.PETS_TOKEN ?? "" },
   *   select: ({ tags, deprecated }) => tags.includes("pets") && !deprecated,
   * });
   * ```
   *
   * @param document An OpenAPI document of version 3.0 or 3.1: an object, or JSON. Parse YAML before.
   * @throws UsageError if the document, an option or a selected operation is invalid, a name is taken, the server of an
   *   operation is not known, or an operation cannot be a resource.
   */
  addOpenApi(document: object | string, options: OpenApiOptions = {}): string[] {
    return addOpenApi(this.#native, this.#features, document, options);
  }

  /**
   * Registers a handler of a custom request, one that no revision of the protocol defines.
   *
   * ```ts
   * server.onRequest("acme/search", { params: z.object({ query: z.string() }) }, async ({ query }, ctx) => {
   *   ctx.notify("acme/searching", { query });
   *   return { hits: [query] };
   * });
   * ```
   *
   * @param method Method of the request, such as `acme/search`.
   * @param handler Called with the request's `params`, validated and typed by the schema. Progress, log messages,
   *   elicitation and cancellation work as in a tool, with every revision and transport. Returns the result, a JSON
   *   object. Throws {@link RpcError} to return an error.
   * @throws UsageError if the method already has a handler, the protocol defines it, or the schema is invalid.
   */
  onRequest<const P extends Schema | undefined = undefined>(
    method: string,
    options: MethodOptions<P>,
    handler: (params: ParamsOf<P>, ctx: Context<C, State>) => Awaitable<RequestReturn>,
  ): this {
    addMethod(this.#features, "request", method, options, handler);
    return this;
  }

  /** Removes the handler of a custom request. Returns whether there was one. Calls in flight continue. */
  removeRequestHandler(method: string): boolean {
    return this.#features.remove("request", method);
  }

  /**
   * Registers a handler of a custom notification.
   *
   * Handlers start in the order of arrival, except if `params` take long to validate, and run concurrently.
   * `ctx.signal` is aborted when the session ends. A server that shuts down waits for them as it does for calls. A
   * notification is dropped with a warning if its `params` do not match the schema, if the client lacks a scope, or if
   * the client has too many calls and notifications in flight.
   *
   * @param method Method of the notification, such as `acme/note`.
   * @param handler Called with the notification's `params`, validated and typed by the schema. With revisions up to
   *   2025-11-25 the context can log and send requests to the client, as in {@link onInitialized}; on 2026-07-28 such
   *   requests throw {@link UsageError}.
   * @throws UsageError if the method already has a handler, the protocol defines it, or the schema is invalid.
   */
  onNotification<const P extends Schema | undefined = undefined>(
    method: string,
    options: MethodOptions<P>,
    handler: (params: ParamsOf<P>, ctx: Context<C, State>) => Awaitable<void>,
  ): this {
    addMethod(this.#features, "notification", method, options, handler);
    return this;
  }

  /**
   * Removes the handler of a custom notification. Returns whether there was one. Handlers that are running continue.
   */
  removeNotificationHandler(method: string): boolean {
    return this.#features.remove("notification", method);
  }

  /**
   * Registers a handler for requests to a path of your own, beside the MCP endpoint.
   *
   * ```ts
   * server.route("/webhooks/{source}", { methods: ["POST"], public: true }, async (request, { params }) => {
   *   await accept(params.source, await request.json());
   * });
   * ```
   *
   * Every HTTP transport of the server serves it: {@link listen}, and {@link fetch} and {@link handler} in their place in the
   * outer application. If the handler throws, the client gets status 500 without the reason.
   *
   * @param path Path, such as `/webhook`. `{name}` is a variable for one segment, `{*name}` one for the rest of the path.
   *   Requests with `..`, NUL, an absolute path, or a slash in a segment, are refused. It may be the path of the health or
   *   readiness check, which it replaces.
   * @throws UsageError if the path is invalid, or has a route for one of the methods already.
   */
  route<const Path extends string>(path: Path, handler: RouteHandler<PathVariablesOf<Path>, C, State>): this;
  route<const Path extends string>(
    path: Path,
    options: RouteOptions,
    handler: RouteHandler<PathVariablesOf<Path>, C, State>,
  ): this;
  route(path: string, ...rest: unknown[]): this {
    const [options, handler] = rest.length > 1 ? rest : [{}, rest[0]];
    addRoute(this.#features, path, options, handler);
    return this;
  }

  /**
   * Puts a middleware around the requests that the server answers: a function, or one that the library provides
   * ({@link rateLimit}, {@link concurrencyLimit}, {@link responseCache}, {@link responseSizeLimit}). Requests are lists, calls of
   * tools, reads of resources, requests for prompts, completions and custom requests.
   *
   * ```ts
   * server.use(async (request, next) => {
   *   const started = performance.now();
   *   try {
   *     return await next(request);
   *   } finally {
   *     console.error(`${request.method}: ${performance.now() - started} ms`);
   *   }
   * });
   * server.use({ methods: ["tools/call"], names: ["search"] }, (request, next) =>
   *   next(request.with({ arguments: { limit: 10, ...request.arguments } })),
   * );
   * ```
   *
   * The first middleware is the outermost. A new one applies to later requests, also of connected clients. Middleware of a
   * mounted server sees the requests for its features, after that of the servers that it is mounted in. It also sees input requests
   * and notifications whose methods its scope names ({@link MessageKind}). The handshake, subscriptions, pings, cancellations and
   * what the server itself announces meet no middleware.
   *
   * @param scope What it sees. Default: all requests of clients.
   * @throws UsageError if the scope has a method that no middleware sees, the server has 64 middlewares, or an option of a
   * middleware that the library provides is out of range.
   */
  use(middleware: Middleware<string, C, State> | BuiltInMiddleware): this;
  use<const M extends keyof MiddlewareMethods | (string & {}) = string>(
    scope: MiddlewareScope<M>,
    middleware: Middleware<M, C, State> | BuiltInMiddleware,
  ): this;
  use(...given: unknown[]): this {
    addMiddleware(this.#features, given);
    return this;
  }

  /**
   * Registers a function that completes every argument without a completer of its own (`server/utilities/completion`).
   *
   * @param handler Called with the parameters of the request; returns the candidates, best first.
   */
  completion(handler: (params: CompleteParams, ctx: Context<C, State>) => Awaitable<CompletionReturn>): this {
    addCompletion(this.#features, handler);
    return this;
  }

  /**
   * Registers a function to call for each new session, after its handshake.
   *
   * While it runs, it can log and send requests to the client outside of any call (`listRoots`, `sample`, `elicit`).
   * `ctx.signal` is aborted when the session ends. Over HTTP these requests need a client with an open GET stream.
   * Revisions up to 2025-11-25 (`basic/lifecycle`); 2026-07-28 has no sessions.
   */
  onInitialized(handler: (ctx: Context<C, State>) => Awaitable<void>): this {
    addEvent(this.#features, "notifications/initialized", handler);
    return this;
  }

  /**
   * Registers a function to call when a client's roots have changed.
   *
   * The function is as in {@link onInitialized}; await `ctx.listRoots()` to get the roots. Changes that arrive while it
   * runs for a session cause one more call after it has returned. Revisions up to 2025-11-25 (`client/roots`, root list
   * changes).
   */
  onRootsChanged(handler: (ctx: Context<C, State>) => Awaitable<void>): this {
    addEvent(this.#features, "notifications/roots/list_changed", handler);
    return this;
  }

  /**
   * Returns a snapshot of what the server holds now: connections, sessions, streams, requests and memory. It needs no setting
   * and costs requests nothing.
   */
  stats(): ServerStats {
    return statsOf(this.#native.stats());
  }

  /**
   * Returns the metrics of the server in the text format of Prometheus, version 0.0.4; the media type is
   * `text/plain; version=0.0.4`. Empty if the setting `metrics` is off. The HTTP server serves the same text at `metricsPath`.
   */
  metrics(): string {
    return this.#native.metrics();
  }

  /** Notifies the subscribers of a resource that it has changed (`notifications/resources/updated`). */
  notifyResourceUpdated(uri: string): void {
    this.#native.notifyResourceUpdated(uri);
  }

  /**
   * Notifies clients that the list of resources has changed (`notifications/resources/list_changed`): for the `list` of a
   * template. When resources are registered or removed, the server does so by itself.
   */
  notifyResourceListChanged(): void {
    this.#native.notifyResourceListChanged();
  }

  /**
   * Notifies the client that a URL elicitation is complete (`client/elicitation`, 2025-11-25).
   *
   * Does nothing for clients of other revisions, and when called again for the same id.
   *
   * @param elicitationId The id that the elicitation was sent with.
   */
  notifyElicitationComplete(elicitationId: string): void {
    this.#native.notifyElicitationComplete(elicitationId);
  }

  /**
   * Serves over stdio until the client disconnects, or until SIGINT or SIGTERM.
   *
   * If a handler still runs a quarter of a second after this has returned, the process exits: a handler that ignores
   * `ctx.signal` does not keep it alive. While it serves, stdout belongs to the protocol: output of the program to
   * stdout goes to stderr.
   *
   * @throws TransportError if stdio is already being served.
   */
  run(): Promise<void> {
    return this.#serving.stdio();
  }

  /**
   * Serves one client over a custom transport, until either side closes the channel.
   *
   * @param open Opens the channel; called once, with the receiver of the client's messages.
   * @throws TransportError if the channel cannot be opened.
   * @throws UsageError if the principal is invalid; the channel is not opened then.
   */
  serveChannel(
    open: (incoming: MessageReceiver) => Channel | Promise<Channel>,
    options: ChannelOptions = {},
  ): Promise<ServedChannel> {
    return this.#serving.channel(open, options);
  }

  /**
   * Serves over HTTP: Streamable HTTP and HTTP+SSE, every revision at once.
   *
   * @throws TransportError if the address cannot be bound.
   */
  listen(options: ListenOptions = {}): Promise<HttpListener> {
    return this.#serving.http(options);
  }

  /**
   * Serves on a Unix socket: each connection is a client, and messages are lines.
   *
   * The socket has its permissions before it can be connected to. A socket that an ended server has left at the path is
   * replaced; one that another server uses is not, and neither is a file of another kind. The socket is removed at the
   * end. Clients may use everything: the permissions of the socket decide who may connect.
   *
   * @param path Path of the socket.
   * @throws TransportError if the socket cannot be created, or another server uses it.
   * @throws UsageError if the path is too long for a socket, or a setting is invalid.
   */
  listenUnix(path: string, settings: UnixSettings = {}): Promise<UnixListener> {
    return this.#serving.unix(path, settings);
  }

  /** Returns the server as an HTTP application, to mount in another server at its own path. */
  httpApp(settings: HttpSettings = {}): HttpApp<C> {
    const app = this.#serving.httpApp(settings);
    if (this.#isClosed) {
      app.refuseAll();
    }
    return app;
  }

  /**
   * Answers a Fetch API request, with default settings; see {@link httpApp}. Bound to the server: can be passed as a
   * function.
   *
   * @param options What the program knows of the request; see {@link HttpApp.fetch}.
   */
  fetch(request: Request, options?: MountedRequestOptions<C>): Promise<Response> {
    return this.#ownApp().fetch(request, options);
  }

  /**
   * Answers a request of `node:http`, `node:http2`, Express, Connect or Fastify, with default settings; see {@link httpApp}. Bound to
   * the server: can be passed as a function.
   *
   * @param options What the program knows of the request; see {@link HttpApp.handler}.
   */
  handler(
    request: IncomingMessage | Http2ServerRequest | FastifyRequestLike,
    response: ServerResponse | Http2ServerResponse | FastifyReplyLike,
    options?: MountedRequestOptions<C> | ((error?: unknown) => void),
  ): void {
    this.#ownApp().handler(request, response, options);
  }

  /**
   * On SIGINT or SIGTERM, closes the server and ends the process. For programs that only serve.
   *
   * If the process does not end by itself, `process.exit` is called a quarter of a second after the server has closed,
   * also if a handler ignores `ctx.signal`. A second signal ends the process at once.
   */
  closeOnSignals(): this {
    closeOnSignals(() => this.close());
    return this;
  }

  /**
   * Stops serving gracefully.
   *
   * Calls in flight have `shutdownTimeout` to finish. After that they are aborted (`ctx.signal`), and answered with an
   * error which says that the server is shutting down. Later requests to {@link fetch} and {@link handler} are refused
   * with HTTP 503.
   *
   * Handlers that ignore `ctx.signal` keep the process alive: pass the signal on, or exit.
   */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#serving.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Creates the value of a call for which the program passed none. @internal */
  createContext(ctx: Context<C, State>): unknown {
    return this.#createContext?.(ctx as unknown as Context<undefined>);
  }

  /** Whether the built-in HTTP server serves `https` URLs. @internal */
  get servesTls(): boolean {
    return this.#serving.servesTls;
  }

  /** Whether input requests of handlers have spans. @internal */
  get isTracingEnabled(): boolean {
    return this.#tracing.isEnabled;
  }

  /** Returns an exchange of an HTTP application. @internal */
  mounted(number: number): HttpExchange | undefined {
    return this.#mounts.exchange(number);
  }

  /**
   * Runs the handlers of calls without a context of their own in the current one, until the returned function is called.
   * @internal
   */
  enterContext(): () => void {
    return this.#serving.enterContext();
  }

  #ownApp(): HttpApp {
    this.#app ??= this.httpApp();
    return this.#app;
  }
}
