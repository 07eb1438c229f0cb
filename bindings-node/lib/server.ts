/** MCP servers: registration of features, and serving. */

import { writeSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

import { principalJson, type Verified, registerVerifier } from "./auth.js";
import { type Channel, Channels, type MessageReceiver } from "./channel.js";
import { Context } from "./context.js";
import { type AsyncContext, beginOrigin, captureContext, contextOf, endOrigin } from "./async_context.js";
import { attempt, RpcError, ToolError, TransportError, UsageError } from "./errors.js";
import { type Exchange, HttpApp } from "./http.js";
import type { FastifyReplyLike, FastifyRequestLike, MountedRequestOptions } from "./outer_request.js";
import {
  type CallReceiver,
  dropPromise,
  finish,
  hub,
  runsOnlyCancelledCalls,
  Kind,
  preventCollection,
  allowCollection,
  promised,
  register,
} from "./hub.js";
import { type FeatureKind, native, type NativeHttpApp, type NativeServer, type NativeServedChannel } from "./native.js";
import {
  checkChanges,
  checkMethod,
  checkMount,
  checkPrompt,
  checkResource,
  checkRoute,
  checkSelection,
  checkTransform,
  checkServer,
  checkTemplate,
  checkTool,
} from "./feature_checks.js";
import type {
  ArgumentsOf,
  Awaitable,
  Completer,
  Completers,
  CompletionReturn,
  DescriptionChanges,
  FeatureSelection,
  Literals,
  MethodOptions,
  MountOptions,
  NoArguments,
  ParamsOf,
  OptionsOfUri,
  PromptArguments,
  PromptArgumentValues,
  PromptOptions,
  PromptReturn,
  RequestReturn,
  ResourceChanges,
  ResourceOptions,
  ResourceReturn,
  ResourceTemplateOptions,
  ReturnOf,
  ToolChanges,
  ToolOptions,
  ToolTransform,
  VariablesOf,
} from "./feature_options.js";
import { type FailedHandler, isUnexpected, type OnError, report } from "./handler_errors.js";
import { isPromise } from "./is_promise.js";
import { addOpenApi, type OpenApiOptions } from "./openapi.js";
import { checkHandler, checkName, checkOptions, typeName } from "./option_checks.js";
import { optionNames } from "./option_names.js";
import { usableArguments } from "./prompt_arguments.js";
import type { CompleteParams, Implementation, JsonSchema } from "./protocol.js";
import type { Extension } from "./extension.js";
import {
  finishCompletion,
  finishEvent,
  finishFailed,
  finishPrompt,
  finishRequest,
  finishResource,
  finishTool,
} from "./results.js";
import { type Schema, usableSchema, type Validate } from "./schemas.js";
import { type OnRequestEnd, reportRequest } from "./request_log.js";
import { callRoute, finishRoute, type PathVariablesOf, type RouteHandler, type RouteOptions } from "./routes.js";
import {
  HTTP_NAMES,
  httpOptions,
  type HttpSettings,
  rateOf,
  toolTimeout,
  serverOptions,
  type ServerSettings,
} from "./settings.js";

/**
 * Options of a server.
 *
 * @typeParam C Type of {@link Context.context}.
 * @typeParam State Type of {@link Server.state}.
 */
export interface ServerOptions<C = unknown, State = unknown> extends Implementation {
  /** How to use the server, for the model. */
  instructions?: string;
  /** Protocol extensions to offer. */
  extensions?: readonly Extension[];
  /** Limits and timeouts. */
  settings?: ServerSettings;
  /**
   * Called with what a handler throws, unless it is for the client or the model ({@link RpcError}, {@link ToolError} and
   * the like) or the call was cancelled: for Sentry, OpenTelemetry and logs. It runs in the asynchronous context of the
   * handler, before the client gets its response, which does not contain the error. The error is also emitted as a
   * warning of the process. If the function returns a {@link ToolError} or an {@link RpcError}, the client gets that, and
   * there is no warning; a promise is not awaited.
   */
  onError?: OnError<C, State>;
  /**
   * Called at the end of each request, except notifications, for a log of requests. It runs after the response was
   * passed on, in the asynchronous context in which the server was created. Requests that are refused by their HTTP headers are
   * not among them. Without the function, requests cost nothing more. What it throws is emitted as a warning of the process; a
   * promise is not awaited.
   */
  onRequestEnd?: OnRequestEnd;
  /**
   * Creates the value of {@link Context.context} for a call whose request came without one, from the caller, the headers
   * or the request. It is called when a handler first reads the value; other calls do not pay for it. If it returns a
   * promise, handlers await `ctx.context`. What it throws is an error of the handler. In the function, `ctx.context` is
   * `undefined`.
   */
  createContext?: (ctx: Context<undefined, State>) => C;
  /** A value that all handlers share, such as a connection pool: {@link Server.state}. */
  state?: State;
}

/** Options that a server needs because of its types: values that are not `undefined` have to come from somewhere. */
type NeededOptions<C, State> = ([undefined] extends [C] ? unknown : { createContext: unknown }) &
  ([undefined] extends [State] ? unknown : { state: State });

/** Options of {@link Server.listen}. */
export interface ListenOptions extends HttpSettings {
  /** Port to bind; 0 selects a free one. Default: 0. */
  port?: number;
  /** Address to bind. Default: `127.0.0.1`. `0.0.0.0` binds all IPv4 interfaces. */
  host?: string;
  /** Certificate and private key, to serve `https` URLs. Default: none, `http`. */
  tls?: Tls;
}

/**
 * The certificate and the private key of a server. The server speaks TLS 1.2 and 1.3.
 *
 * If both are files, they are read again when clients connect, at most every ten seconds: a renewed certificate is used
 * without a restart. If the new files cannot be used, the old certificate stays, and a warning is emitted.
 */
export interface Tls {
  /**
   * Path of a PEM file, or PEM as text or bytes: the server's certificate, followed by the intermediate certificates up to
   * the authority.
   */
  certificate: string | Uint8Array;
  /** Path of a PEM file, or PEM as text or bytes: the private key (PKCS #8, PKCS #1 or SEC 1), not encrypted. */
  key: string | Uint8Array;
}

/** A running HTTP server. */
export interface Listening {
  /** The bound address. */
  readonly host: string;
  /** The bound port. */
  readonly port: number;
  /** URL of the MCP endpoint. */
  readonly url: string;
  /** Settles when the server has stopped. */
  readonly closed: Promise<void>;
  /** Stops the server gracefully, as {@link Server.close} does. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A client that is served over a custom transport. */
export interface ServedChannel {
  /** Resolves when the channel has ended, closed by either side. Rejects if the transport failed. */
  readonly closed: Promise<void>;
  /** Ends the channel gracefully, as {@link Server.close} does. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Options of {@link Server.serveChannel}. */
export interface ChannelOptions {
  /**
   * The client's identity, as authenticated by the transport. It does not change until the channel closes. Handlers
   * read it from {@link Context.auth}. Scopes of tools, resources, prompts and custom methods apply as over HTTP:
   * features that it may not use are hidden from lists, and calls are refused with error -31001. All channels of a
   * principal count as one client. Without a principal the client may do everything, which is right if this process
   * started the client, or the client started this process.
   */
  principal?: Verified;
}

/** The handler of a feature. */
interface Plan extends Omit<FailedHandler, "ctx"> {
  /** Runs the handler for a call. */
  run: (ctx: Context, text: string) => void;
}

type Place = Omit<FailedHandler, "ctx">;

const LISTEN = [...HTTP_NAMES, "port", "host", "tls"];
const TLS = optionNames<Tls>({ certificate: true, key: true });
const MAX_PORT = 65_535;

/** Time that the program has to exit by itself after a signal has stopped its server, in milliseconds. */
const EXIT_AFTER = 250;

interface Serving {
  native: NativeServedChannel;
  ended: Promise<void>;
}

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
  readonly #number: number;
  /** Runs calls; lives as long as the server. */
  readonly #receiver: CallReceiver = {
    run: (plan, call, text, origin) => {
      const context = contextOf(origin, this.#context());
      context.runInAsyncScope(this.#runHandler, this, plan, call, text);
    },
    requestEnded: (record) => {
      this.#recorded?.(record);
    },
  };
  readonly #plans = new Map<number, Plan>();
  readonly #onError: OnError | undefined;
  readonly #recorded: ((record: string) => void) | undefined;
  readonly #createContext: ((ctx: Context<undefined>) => unknown) | undefined;
  /** The {@link ServerOptions.state} of the program; `undefined` if it gave none. */
  readonly state: State;
  /** Numbers of plans by feature, to be removed with it. */
  readonly #names = new Map<string, number>();
  readonly #servings = new Set<Serving>();
  readonly #apps = new Set<HttpApp>();
  /** Contexts of stdio, of HTTP and of clients in this process while they are served. The last one is used. */
  readonly #contexts: AsyncContext[] = [];
  /** The servers that are mounted in this one, and those that this one is mounted in. */
  readonly #mounted = new Set<Server>();
  readonly #parents = new Set<WeakRef<Server>>();
  /** Servers that this one was mounted in: calls that began there may still run. */
  #formerParents: WeakRef<Server>[] = [];
  /** Whether another server may have handlers of this one that were removed here. */
  #isCopied = false;
  #lastPlan = 0;
  #app: HttpApp | undefined;

  /** @throws UsageError if a setting has an invalid value, or an extension cannot be registered. */
  constructor(options: ServerOptions<C, State> & NeededOptions<C, State>) {
    checkServer(options);
    const {
      instructions,
      extensions = [],
      settings,
      onError,
      onRequestEnd,
      createContext,
      state,
      ...info
    } = options as ServerOptions;
    this.#onError = onError;
    this.#createContext = createContext;
    this.state = state as State;
    this.#number = register(this.#receiver);
    const given = serverOptions(settings ?? {}, extensions);
    this.#native = attempt(() => new native.Server(hub, this.#number, JSON.stringify(info), instructions, given));
    if (this.#native.isDebugged) {
      flushTrafficAtExit();
    }
    if (onRequestEnd !== undefined) {
      const context = captureContext();
      this.#recorded = (record) => {
        context.runInAsyncScope(reportRequest, undefined, onRequestEnd, record);
      };
      this.#native.recordRequests();
    }
    this.fetch = this.fetch.bind(this);
    this.handler = this.handler.bind(this);
    for (const extension of extensions) {
      extension.addTo(this);
    }
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
    checkTool(name, options, handler);
    const { input, output, runOnce, timeout, rate, scopes, tags, meta, ...rest } = options;
    const where = `tool \`${name}\``;
    const taken =
      input === undefined ? undefined : usableSchema(input, "input", `${where}: \`input\``, invalidArguments);
    const given =
      output === undefined
        ? undefined
        : usableSchema(output, "output", `${where}: \`output\``, (issues) => invalidOutput(where, issues));
    const definition = {
      name,
      ...rest,
      inputSchema: objectSchema(taken?.json ?? {}),
      ...(given === undefined ? {} : { outputSchema: given.json }),
      ...(meta === undefined ? {} : { _meta: meta }),
    };
    const validate = taken?.validate;
    const apply: Validate | undefined = given === undefined ? undefined : (given.validate ?? unchanged);
    const run = handler as (args: unknown, ctx: Context) => unknown;
    const end = (call: number, value: unknown) => finishTool(call, value, apply);
    const place: Place = { kind: "tool", name };
    const plan = this.#planned(place, (ctx, text) => {
      this.#end(
        place,
        ctx,
        validated(validate, text, (args) => run(args, ctx)),
        end,
      );
    });
    const limits = rate === undefined ? undefined : rateOf("rate", rate);
    const decodes = validate !== undefined;
    this.#add("tool", name, definition, plan, {
      run_once: runOnce,
      timeout: timeout === undefined ? undefined : toolTimeout(where, timeout),
      rate: limits,
      scopes,
      tags,
      decodes_itself: decodes,
    });
    return this;
  }

  /**
   * Removes a tool and notifies clients (`notifications/tools/list_changed`). Returns whether the tool was registered.
   * Calls in flight continue.
   */
  removeTool(name: string): boolean {
    return this.#remove("tool", name);
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
    const run = handler as (variables: object, ctx: Context) => Awaitable<ResourceReturn>;
    if (typeof uri === "string" && uri.includes("{")) {
      return this.#addTemplate(uri, options as ResourceTemplateOptions, run);
    }
    return this.#addResource(uri, options, run);
  }

  #addResource(
    uri: string,
    options: ResourceOptions,
    run: (variables: object, ctx: Context) => Awaitable<ResourceReturn>,
  ): this {
    checkResource(uri, options, run);
    const { meta, scopes, tags, ...rest } = options;
    const definition = { uri, ...rest, ...(meta === undefined ? {} : { _meta: meta }) };
    const place: Place = { kind: "resource", name: uri };
    const plan = this.#planned(place, (ctx) => {
      this.#endResource(place, ctx, run({}, ctx), () => hub.callName(ctx.call) ?? uri, options.mimeType);
    });
    this.#add("resource", uri, definition, plan, { scopes, tags });
    return this;
  }

  #addTemplate(
    uriTemplate: string,
    options: ResourceTemplateOptions,
    run: (variables: object, ctx: Context) => Awaitable<ResourceReturn>,
  ): this {
    checkTemplate(uriTemplate, options, run);
    const { meta, complete, scopes, tags, uncheckedVariables, ...rest } = options;
    const definition = { uriTemplate, ...rest, ...(meta === undefined ? {} : { _meta: meta }) };
    const place: Place = { kind: "resource", name: uriTemplate };
    const plan = this.#planned(place, (ctx, text) => {
      const uri = () => hub.callName(ctx.call) ?? uriTemplate;
      this.#endResource(place, ctx, run(JSON.parse(text) as object, ctx), uri, options.mimeType);
    });
    this.#add("resource", uriTemplate, definition, plan, { scopes, tags, unchecked_variables: uncheckedVariables });
    this.#addCompleters(uriTemplate, complete);
    return this;
  }

  /** Removes a resource or template and notifies clients. Returns whether it was registered. */
  removeResource(uri: string): boolean {
    return this.#remove("resource", uri);
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
    checkPrompt(name, options, handler);
    const { meta, scopes, tags, arguments: _, complete: _complete, ...rest } = options;
    const { list, validate, complete } = usableArguments(name, options as PromptOptions);
    const definition = { name, ...rest, arguments: list, ...(meta === undefined ? {} : { _meta: meta }) };
    const run = handler as (args: unknown, ctx: Context) => unknown;
    const place: Place = { kind: "prompt", name };
    const plan = this.#planned(place, (ctx, text) => {
      this.#end(
        place,
        ctx,
        validated(validate, text, (args) => run(args, ctx)),
        finishPrompt,
      );
    });
    this.#add("prompt", name, definition, plan, { scopes, tags });
    this.#addCompleters(name, complete);
    return this;
  }

  /**
   * Removes a prompt and notifies clients (`notifications/prompts/list_changed`). Returns whether the prompt was
   * registered.
   */
  removePrompt(name: string): boolean {
    return this.#remove("prompt", name);
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
    this.#update("tool", name, changes);
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
    checkTransform(name, transform);
    attempt(() => {
      this.#native.transformTool(name, JSON.stringify(transform));
    });
    this.#renamed("tool", name, transform.name);
  }

  /**
   * Changes the definition of a resource or resource template and notifies clients; see {@link updateTool}.
   *
   * @param uri The URI of the resource, or the URI template.
   * @throws UsageError if there is no such resource, or it belongs to a mounted server.
   */
  updateResource(uri: string, changes: ResourceChanges): void {
    this.#update("resource", uri, changes);
  }

  /**
   * Changes the definition of a prompt and notifies clients (`notifications/prompts/list_changed`); see {@link updateTool}.
   *
   * @throws UsageError if there is no such prompt, it belongs to a mounted server, or the new name is taken.
   */
  updatePrompt(name: string, changes: DescriptionChanges): void {
    this.#update("prompt", name, changes);
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
    return this.#setEnabled(true, selection);
  }

  /**
   * Disables features: for clients they do not exist. Returns how many were enabled before. Calls in flight continue. See
   * {@link enable}.
   */
  disable(selection: FeatureSelection = {}): number {
    return this.#setEnabled(false, selection);
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
    checkMount(options);
    const { prefix, snapshot = false, tools } = options;
    attempt(() => {
      this.#native.mount(server.#native, prefix, snapshot, tools && JSON.stringify(tools));
    });
    if (snapshot) {
      server.#keepHandlers();
    }
    if (!this.#mounted.has(server)) {
      this.#mounted.add(server);
      server.#parents.add(new WeakRef(this));
    }
    return this;
  }

  /** Reverts {@link mount}, whatever the prefixes. Returns whether the server was mounted. */
  unmount(server: Server): boolean {
    const wasMounted = this.#native.unmount(server.#native);
    this.#mounted.delete(server);
    for (const parent of server.#parents) {
      if (parent.deref() === this || parent.deref() === undefined) {
        server.#parents.delete(parent);
      }
    }
    const others = server.#formerParents.filter((reference) => {
      const parent = reference.deref();
      return parent !== undefined && parent !== this;
    });
    server.#formerParents = [...others, new WeakRef<Server>(this)];
    return wasMounted;
  }

  /**
   * Adds tools and resources for the operations of an HTTP API, from its OpenAPI document. All are added or none. Returns the
   * names of tools, and the URIs or URI templates of resources.
   *
   * Calls become HTTP requests, which the library sends without running JavaScript. The annotations of tools follow from the
   * HTTP method, their tags are those of the document. To put a prefix before the names, add the API to a server of its own
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
    return addOpenApi(this.#native, document, options);
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
    return this.#addMethod("request", method, options, handler, finishRequest);
  }

  /** Removes the handler of a custom request. Returns whether there was one. Calls in flight continue. */
  removeRequestHandler(method: string): boolean {
    return this.#remove("request", method);
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
    return this.#addMethod("notification", method, options, handler, finishEvent);
  }

  /**
   * Removes the handler of a custom notification. Returns whether there was one. Handlers that are running continue.
   */
  removeNotificationHandler(method: string): boolean {
    return this.#remove("notification", method);
  }

  #addMethod(
    kind: "request" | "notification",
    method: string,
    options: MethodOptions<Schema | undefined>,
    handler: unknown,
    finish: (call: number, value: unknown) => void,
  ): this {
    checkMethod(method, options, handler);
    const { params, scopes, extension, runOnce } = options;
    const where = `method \`${method}\`: \`params\``;
    const schema = params === undefined ? undefined : usableSchema(params, "input", where, invalidParams);
    const validate = schema?.validate;
    if (validate !== undefined && (schema?.json["type"] ?? "object") !== "object") {
      throw new UsageError(`${where} must be the schema of an object`);
    }
    // The core would validate against it as well.
    const checked = validate === undefined ? schema?.json : undefined;
    const run = handler as (params: unknown, ctx: Context) => unknown;
    const place: Place = { kind, name: method };
    const plan = this.#planned(place, (ctx, text) => {
      this.#end(
        place,
        ctx,
        validated(validate, text, (params) => run(params, ctx)),
        finish,
      );
    });
    this.#add(kind, method, { method, params_schema: checked }, plan, { scopes, extension, run_once: runOnce });
    return this;
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
   *   Requests with `..`, NUL, an absolute path, or a slash in a segment, are refused. It may be the path of the health check,
   *   which it replaces.
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
    checkRoute(path, options, handler);
    const { methods, scopes, public: isPublic } = options as RouteOptions;
    const place: Place = { kind: "route", name: path };
    const plan = this.#planned(place, (ctx) => {
      this.#end(place, ctx, callRoute(handler as RouteHandler, ctx.call, this), finishRoute);
    });
    const definition = { path, methods, public: isPublic };
    this.#add("route", `${methods?.join(",") ?? ""} ${path}`, definition, plan, { scopes });
    return this;
  }

  /**
   * Registers a function that completes every argument without a completer of its own (`server/utilities/completion`).
   *
   * @param handler Called with the parameters of the request; returns the candidates, best first.
   */
  completion(handler: (params: CompleteParams, ctx: Context<C, State>) => Awaitable<CompletionReturn>): this {
    checkHandler("completion", handler);
    const run = handler as (params: CompleteParams, ctx: Context) => Awaitable<CompletionReturn>;
    this.#add("completion", "", null, this.#completing("", run));
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
    return this.#onEvent("notifications/initialized", handler);
  }

  /**
   * Registers a function to call when a client's roots have changed.
   *
   * The function is as in {@link onInitialized}; await `ctx.listRoots()` to get the roots. Changes that arrive while it
   * runs for a session cause one more call after it has returned. Revisions up to 2025-11-25 (`client/roots`, root list
   * changes).
   */
  onRootsChanged(handler: (ctx: Context<C, State>) => Awaitable<void>): this {
    return this.#onEvent("notifications/roots/list_changed", handler);
  }

  #onEvent(method: string, handler: (ctx: Context<C, State>) => Awaitable<void>): this {
    checkHandler(`\`${method}\``, handler);
    const place: Place = { kind: "event", name: method };
    const plan = this.#planned(place, (ctx) => {
      this.#end(place, ctx, handler(ctx as Context<C, State>), finishEvent);
    });
    this.#add("event", method, { method }, plan);
    return this;
  }

  /** Notifies the subscribers of a resource that it has changed (`notifications/resources/updated`). */
  notifyResourceUpdated(uri: string): void {
    this.#native.notifyResourceUpdated(uri);
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
  async run(): Promise<void> {
    let serving: Serving | undefined;
    const stop = () => {
      serving?.native.stop();
    };
    const leave = this.enterContext();
    // Before a client can detect that the server runs.
    process.once("SIGINT", stop).once("SIGTERM", stop);
    try {
      const [number, ended] = promised();
      serving = this.#serve([number], ended, () => this.#native.serveStdio(number));
      announce(serving.native.startupMessage);
      await serving.ended;
    } finally {
      leave();
      process.off("SIGINT", stop).off("SIGTERM", stop);
      exitSoon(() => this.#apps.size === 0 && runsOnlyCancelledCalls());
    }
  }

  /**
   * Serves one client over a custom transport, until either side closes the channel.
   *
   * @param open Opens the channel; called once, with the receiver of the client's messages.
   * @throws TransportError if the channel cannot be opened.
   * @throws UsageError if the principal is invalid; the channel is not opened then.
   */
  async serveChannel(
    open: (incoming: MessageReceiver) => Channel | Promise<Channel>,
    { principal }: ChannelOptions = {},
  ): Promise<ServedChannel> {
    const named = principal === undefined ? undefined : principalJson(principal, "principal");
    const channels = new Channels({ open });
    const [openedNumber, opened] = promised();
    const [endedNumber, ended] = promised();
    let serving: Serving;
    beginOrigin(endedNumber, captureContext());
    const end = () => {
      endOrigin(endedNumber);
      channels.end();
    };
    try {
      serving = this.#serve([openedNumber, endedNumber], ended, () =>
        this.#native.serveChannel(openedNumber, endedNumber, channels.native, named),
      );
    } catch (error) {
      end();
      throw error;
    }
    const ends = () => {
      dropPromise(openedNumber);
      end();
    };
    serving.ended.then(ends, ends);
    await Promise.race([opened, serving.ended]);
    const close = async () => {
      serving.native.stop();
      await serving.ended;
    };
    return { closed: serving.ended, close, [Symbol.asyncDispose]: close };
  }

  /**
   * Serves over HTTP: Streamable HTTP and HTTP+SSE, every revision at once.
   *
   * @throws TransportError if the address cannot be bound.
   */
  async listen(options: ListenOptions = {}): Promise<Listening> {
    checkOptions("`listen`", options, LISTEN);
    const { port = 0, host = "127.0.0.1", tls, ...settings } = options;
    if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) {
      throw new UsageError(`\`port\` must be a whole number from 0 to ${String(MAX_PORT)}, not ${String(port)}`);
    }
    checkName("`host`", host);
    const serialized = httpOptions(settings);
    const certified = tls === undefined ? undefined : tlsOptions(tls);
    const verifier = registerVerifier(settings.auth);
    const [boundNumber, bound] = promised();
    const [endedNumber, ended] = promised();
    let serving: Serving;
    try {
      serving = this.#serve([boundNumber, endedNumber], ended, () =>
        this.#native.serveHttp(boundNumber, endedNumber, host, port, serialized, verifier.native, certified),
      );
    } catch (error) {
      verifier.end();
      throw error;
    }
    const leave = this.enterContext();
    const end = () => {
      leave();
      verifier.end();
    };
    serving.ended.then(end, end);
    let facts;
    try {
      facts = await bound;
    } catch (error) {
      throw error instanceof TransportError ? unboundError(error, host, port) : error;
    }
    const [actualHost, actualPort, url, message] = JSON.parse(facts ?? "[]") as [string, number, string, string | null];
    announce(message);
    const close = async () => {
      serving.native.stop();
      await serving.ended;
    };
    return {
      host: actualHost,
      port: actualPort,
      url,
      closed: serving.ended,
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /** Returns the server as an HTTP application, to mount in another server at its own path. */
  httpApp(settings: HttpSettings = {}): HttpApp<C> {
    const options = httpOptions(settings);
    const verifier = registerVerifier(settings.auth);
    let made: NativeHttpApp;
    try {
      made = attempt(() => this.#native.httpApp(options, verifier.native));
    } catch (error) {
      verifier.end();
      throw error;
    }
    const app = new HttpApp(made, settings.auth !== undefined, () => {
      this.#apps.delete(app);
      verifier.end();
    });
    this.#apps.add(app);
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
    const close = () => {
      process.off("SIGINT", close).off("SIGTERM", close);
      void this.close().finally(() => {
        exitSoon(() => true);
      });
    };
    process.once("SIGINT", close).once("SIGTERM", close);
    return this;
  }

  /**
   * Stops serving gracefully.
   *
   * Calls in flight have `shutdownGrace` to finish. After that they are aborted (`ctx.signal`), and answered with an
   * error which says that the server is shutting down. Later requests to {@link fetch} and {@link handler} are refused
   * with HTTP 503.
   *
   * Handlers that ignore `ctx.signal` keep the process alive: pass the signal on, or exit.
   */
  async close(): Promise<void> {
    const servings = [...this.#servings];
    for (const { native } of servings) {
      native.stop();
    }
    const apps = [...this.#apps].map((app) => app.close());
    await Promise.allSettled([...apps, ...servings.map(({ ended }) => ended)]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Creates the value of a call for which the program passed none. @internal */
  createContext(ctx: Context<C, State>): unknown {
    return this.#createContext?.(ctx as unknown as Context<undefined>);
  }

  /** Returns an exchange of an HTTP application. @internal */
  mounted(number: number): Exchange | undefined {
    for (const app of this.#apps) {
      const exchange = app.exchange(number);
      if (exchange !== undefined) {
        return exchange;
      }
    }
    for (const parent of [...this.#parents, ...this.#formerParents]) {
      const exchange = parent.deref()?.mounted(number);
      if (exchange !== undefined) {
        return exchange;
      }
    }
    return undefined;
  }

  /** Keeps handlers that are removed: another server has copies of the features, also of those that are mounted here. */
  #keepHandlers(): void {
    this.#isCopied = true;
    for (const server of this.#mounted) {
      server.#keepHandlers();
    }
  }

  /** The context of calls without one of their own: that of this server, or of one that it is mounted in. */
  #context(): AsyncContext | undefined {
    let context = this.#contexts.at(-1);
    for (const reference of this.#parents) {
      const parent = reference.deref();
      if (context === undefined && parent !== undefined) {
        context = parent.#context();
      }
    }
    return context;
  }

  /**
   * Runs the handlers of calls without a context of their own in the current one, until the returned function is called.
   * @internal
   */
  enterContext(): () => void {
    const context = captureContext();
    this.#contexts.push(context);
    return () => {
      const index = this.#contexts.indexOf(context);
      if (index >= 0) {
        this.#contexts.splice(index, 1);
      }
    };
  }

  #runHandler(plan: number, call: number, text: string): void {
    const planned = this.#plans.get(plan);
    if (planned === undefined) {
      finish(call, Kind.InternalFailure, "the handler was removed");
      return;
    }
    const ctx = new Context(call, this);
    try {
      planned.run(ctx, text);
    } catch (error) {
      this.#fail(planned, ctx, error);
    }
  }

  #ownApp(): HttpApp {
    this.#app ??= this.httpApp();
    return this.#app;
  }

  #serve(promises: number[], ended: Promise<unknown>, start: () => NativeServedChannel): Serving {
    let native: NativeServedChannel;
    try {
      native = attempt(start);
    } catch (error) {
      promises.forEach(dropPromise);
      throw error;
    }
    preventCollection(this.#number, this.#receiver);
    const serving: Serving = {
      native,
      ended: ended.then(
        () => {
          this.#served(serving);
        },
        (error: unknown) => {
          this.#served(serving);
          throw error;
        },
      ),
    };
    // Programs need not handle the rejection.
    serving.ended.catch(() => undefined);
    this.#servings.add(serving);
    return serving;
  }

  #served(serving: Serving): void {
    this.#servings.delete(serving);
    if (this.#servings.size === 0) {
      allowCollection(this.#number);
    }
  }

  #planned(place: Place, run: Plan["run"]): number {
    this.#plans.set(++this.#lastPlan, { ...place, run });
    return this.#lastPlan;
  }

  /** Registers a feature; `options` are in the core's case. */
  #add(kind: FeatureKind, name: string, definition: object | null, plan: number, options?: object): void {
    const given = options === undefined ? undefined : JSON.stringify(options);
    try {
      attempt(() => {
        this.#native.addFeature(kind, JSON.stringify(definition), given, plan);
      });
    } catch (error) {
      this.#plans.delete(plan);
      throw error;
    }
    this.#names.set(`${kind} ${name}`, plan);
  }

  #remove(kind: FeatureKind, name: string): boolean {
    const wasRegistered = this.#native.removeFeature(kind, name);
    if (wasRegistered) {
      this.#forget(kind, name);
    }
    return wasRegistered;
  }

  #update(kind: "tool" | "resource" | "prompt", name: string, changes: object): void {
    checkChanges(kind, name, changes);
    const { meta, ...rest } = changes as DescriptionChanges;
    const members = meta === undefined ? rest : { ...rest, _meta: meta };
    attempt(() => {
      this.#native.updateFeature(kind, name, JSON.stringify(members));
    });
    if (kind !== "resource") {
      this.#renamed(kind, name, rest.name);
    }
  }

  #renamed(kind: "tool" | "prompt", name: string, newName: string | undefined): void {
    const plan = this.#names.get(`${kind} ${name}`);
    if (newName !== undefined && plan !== undefined) {
      this.#names.delete(`${kind} ${name}`);
      this.#names.set(`${kind} ${newName}`, plan);
    }
  }

  #setEnabled(enabled: boolean, selection: FeatureSelection): number {
    checkSelection(selection);
    const { kinds, names, tags } = selection;
    const copied = [kinds, names, tags].map((texts) => (texts === undefined ? undefined : [...texts]));
    return attempt(() => this.#native.setEnabled(enabled, copied[0], copied[1], copied[2]));
  }

  /** Drops the plan of a feature that was removed. That of a replaced one stays: it may have calls that are queued. */
  #forget(kind: FeatureKind, name: string): void {
    const key = `${kind} ${name}`;
    const plan = this.#names.get(key);
    if (plan !== undefined) {
      this.#names.delete(key);
      if (!this.#isCopied) {
        this.#plans.delete(plan);
      }
    }
  }

  #addCompleters(reference: string, completers: Completers | undefined): void {
    for (const [argument, completer] of Object.entries(completers ?? {})) {
      if (completer !== undefined) {
        this.#complete(reference, argument, completer);
      }
    }
  }

  #complete(reference: string, argument: string, completer: Completer): void {
    if (typeof completer === "function") {
      const plan = this.#completing(reference, (params, ctx) => completer(params.argument.value, ctx, params));
      this.#add("completion", `${reference}\n${argument}`, { reference, argument }, plan);
    } else {
      attempt(() => {
        this.#native.addCandidates(reference, argument, [...completer]);
      });
    }
  }

  #completing(
    reference: string,
    handler: (params: CompleteParams, ctx: Context) => Awaitable<CompletionReturn>,
  ): number {
    const place: Place = { kind: "completion", name: reference };
    return this.#planned(place, (ctx, text) => {
      this.#end(place, ctx, handler(JSON.parse(text) as CompleteParams, ctx), finishCompletion);
    });
  }

  #endResource(place: Place, ctx: Context, result: unknown, uri: () => string, mimeType: string | undefined): void {
    this.#end(place, ctx, result, (call, value) => {
      finishResource(call, value, uri, mimeType);
    });
  }

  /** Ends a call with the return value of its handler, or with the value of the promise. */
  #end(place: Place, ctx: Context, result: unknown, end: (call: number, value: unknown) => unknown): void {
    const fail = (error: unknown) => {
      this.#fail(place, ctx, error);
    };
    const finish = (value: unknown) => {
      const ended = end(ctx.call, value);
      if (isPromise(ended)) {
        ended.then(undefined, fail);
      }
    };
    if (!isPromise(result)) {
      finish(result);
      return;
    }
    result.then((value) => {
      try {
        finish(value);
      } catch (error) {
        fail(error);
      }
    }, fail);
  }

  #fail({ kind, name }: Place, ctx: Context, error: unknown): void {
    let response = error;
    if (this.#onError !== undefined && isUnexpected(error) && !hub.callCancelled(ctx.call)) {
      response = report(this.#onError, error, { kind, name, ctx });
    }
    finishFailed(ctx.call, response);
  }
}

/** Calls a handler with its input, after the validation of a library's schema if there is one. */
function validated(validate: Validate | undefined, text: string, run: (input: unknown) => unknown): unknown {
  const given: unknown = JSON.parse(text);
  const valid = validate === undefined ? given : validate(given);
  return isPromise(valid) ? valid.then(run) : run(valid);
}

/** Exits the process after {@link EXIT_AFTER} if the condition holds, unless it ends by itself. */
function exitSoon(condition: () => boolean): void {
  const exit = () => {
    if (condition()) {
      process.exit();
    }
  };
  setTimeout(exit, EXIT_AFTER).unref();
}

/** Adds the address to the error of a server that cannot listen on it. */
function unboundError({ source, operation }: TransportError, host: string, port: number): TransportError {
  const shown = host.includes(":") ? `[${host}]` : host;
  const reason = source instanceof RpcError ? source.message : (source ?? "unknown reason");
  return new TransportError(`cannot listen on ${shown}:${String(port)}: ${reason}`, { source, operation });
}

/** The error of a tool whose arguments do not match the schema, for the model. */
function invalidArguments(issues: string): ToolError {
  return new ToolError(`Invalid arguments: ${issues}`);
}

/** The error of a tool whose handler returned something else than its output schema says, for the program. */
function invalidOutput(where: string, issues: string): UsageError {
  return new UsageError(`${where}: the returned value does not match \`output\`: ${issues}`);
}

/** JSON Schema is applied by the core. */
function unchanged(value: unknown): unknown {
  return value;
}

/** The response to a request whose `params` do not match the schema. */
function invalidParams(issues: string): RpcError {
  return new RpcError(-32602, `params: ${issues}`);
}

/** Checks that the schema of arguments describes an object. */
function objectSchema(schema: JsonSchema): JsonSchema {
  // The core rejects invalid schemas.
  if (Object(schema) !== schema || schema["type"] === "object" || "$ref" in schema) {
    return schema;
  }
  if (schema["type"] === undefined) {
    return { type: "object", ...schema };
  }
  throw new UsageError("a tool's arguments are an object");
}

let flushesTraffic = false;

/** Prints what servers in debug mode have exchanged with their clients before the process ends. */
function flushTrafficAtExit(): void {
  if (!flushesTraffic) {
    flushesTraffic = true;
    process.on("exit", () => {
      native.flushTraffic();
    });
  }
}

/** Writes the line that says that a transport is ready, if there is to be one. Stdout may carry the protocol. */
function announce(message: string | null): void {
  if (message !== null) {
    try {
      // The stream would report a reader that is gone by an event, which ends the program.
      writeSync(2, `${message}\n`);
    } catch {
      // A closed stderr does not end the program.
    }
  }
}

/** Converts the options of TLS to the core's JSON, which distinguishes PEM from a path by its first line. */
function tlsOptions(tls: Tls): string {
  checkOptions("`tls`", tls, TLS);
  const text = (name: "certificate" | "key") => {
    const value: unknown = tls[name];
    if (typeof value === "string") {
      return value;
    }
    if (!(value instanceof Uint8Array)) {
      throw new UsageError(`\`tls.${name}\` must be a path, or PEM as text or bytes, not ${typeName(value)}`);
    }
    const pem = new TextDecoder().decode(value);
    if (!pem.includes("-----BEGIN ")) {
      throw new UsageError(`\`tls.${name}\`: the bytes contain no PEM (\`-----BEGIN …-----\`)`);
    }
    return pem;
  };
  return JSON.stringify({ certificate: text("certificate"), key: text("key") });
}
