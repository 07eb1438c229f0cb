/** Servers: what they offer, and how they are served. */

import type { IncomingMessage, ServerResponse } from "node:http";

import { principalJson, type Verified, verifying } from "./auth.js";
import { type Channel, Channels, type Incoming } from "./channel.js";
import { Context } from "./context.js";
import { attempt, RpcError, UsageError } from "./errors.js";
import { HttpApp } from "./http.js";
import { type Callee, disown, finish, hub, isHeldUp, keep, Kind, letGo, promised, register } from "./hub.js";
import { native, type NativeHttpApp, type NativeServer, type NativeServing } from "./native.js";
import { isPromise } from "./promises.js";
import type {
  Annotations,
  CallToolResult,
  CompleteParams,
  CompletionValues,
  ContentBlock,
  GetPromptResult,
  Icon,
  Implementation,
  JsonSchema,
  Meta,
  PromptMessage,
  ReadResourceResult,
  ToolAnnotations,
} from "./protocol.js";
import type { PartialContents } from "./content.js";
import type { ExtendedResult, Extension } from "./extension.js";
import type { InputRequired } from "./questions.js";
import {
  finishCompletion,
  finishEvent,
  finishFailed,
  finishPrompt,
  finishRequest,
  finishResource,
  finishTool,
} from "./results.js";
import { jsonSchemaOf, type Parsed, type Returned, type Schema, validatorOf } from "./schemas.js";
import { httpOptions, type HttpSettings, type Rate, serverOptions, type ServerSettings } from "./settings.js";

/** What a server is, and how it behaves. */
export interface ServerOptions extends Implementation {
  /** What clients tell their models of how to use the server. */
  instructions?: string;
  /** Extensions of the protocol that the server offers. */
  extensions?: readonly Extension[];
  /** Limits, times and declarations. */
  settings?: ServerSettings;
}

/** What a handler gives, now or later. */
export type Awaitable<T> = T | Promise<T>;

/** What a tool's handler may return without an output schema. */
export type ToolReturn =
  | string
  | ContentBlock
  | readonly (string | ContentBlock)[]
  | Partial<CallToolResult>
  | InputRequired
  | number
  | boolean
  | object
  | null
  | undefined
  | void;

/** What a resource's handler may return: text, bytes, contents, several of these, or the result on the wire. */
export type ResourceReturn =
  | string
  | Uint8Array
  | PartialContents
  | readonly PartialContents[]
  | ReadResourceResult
  | InputRequired
  | ExtendedResult
  | object;

/** What a prompt's handler may return: what the user says, messages, or the result on the wire. */
export type PromptReturn =
  | string
  | ContentBlock
  | LooseMessage
  | readonly (string | ContentBlock | LooseMessage)[]
  | GetPromptResult
  | InputRequired
  | ExtendedResult;

/** A message whose content may be a string, or several pieces. */
export interface LooseMessage {
  role: PromptMessage["role"];
  content: string | ContentBlock | readonly (string | ContentBlock)[];
}

/** What a completion's handler may return, best first. */
export type CompletionReturn = readonly string[] | CompletionValues | null | undefined;

/** Candidates for an argument: a list, or what finds them. */
export type Completer =
  readonly string[] | ((value: string, ctx: Context, params: CompleteParams) => Awaitable<CompletionReturn>);

/** What everything that is offered may have. */
export interface Described {
  /** A name for people. */
  title?: string;
  /** What it is for, in words for the model. */
  description?: string;
  icons?: Icon[];
  /** `_meta` of the definition. */
  meta?: Meta;
  /**
   * The scopes that a caller needs to see and use it, where the server is protected ({@link HttpSettings.auth}). Whoever lacks
   * one finds it in no list; a call is answered with what is needed, for the client to ask its user for (2025-11-25,
   * `basic/authorization`, step-up).
   */
  scopes?: readonly string[];
}

/** A tool's definition. */
export interface ToolOptions<
  I extends Schema | undefined = Schema,
  O extends Schema | undefined = Schema,
> extends Described {
  /** The arguments: an object schema. Without one the tool takes none. */
  input?: I;
  /** The structured content. */
  output?: O;
  annotations?: ToolAnnotations;
  /** A call that is replayed in another process (2026-07-28) is refused rather than run again. */
  runOnce?: boolean;
  /** How often a client may call it. */
  rate?: Rate;
}

/** A resource's definition. */
export interface ResourceOptions extends Described {
  name: string;
  mimeType?: string;
  /** In bytes. */
  size?: number;
  annotations?: Annotations;
}

/** A resource template's definition. */
export interface ResourceTemplateOptions extends Described {
  name: string;
  mimeType?: string;
  annotations?: Annotations;
  /** Candidates for its variables. */
  complete?: Record<string, Completer>;
}

/** A prompt's argument. */
export interface PromptArgumentOptions {
  title?: string;
  description?: string;
  /** Whether it has to be given; it has. */
  required?: boolean;
  /** Candidates for it. */
  complete?: Completer;
}

/** A prompt's definition. */
export interface PromptOptions<
  A extends Record<string, PromptArgumentOptions> = Record<string, PromptArgumentOptions>,
> extends Described {
  arguments?: A;
}

/** How a custom request is served, or a custom notification handled. */
export interface MethodOptions<P extends Schema | undefined = Schema> {
  /**
   * The `params`, which are an object. A request that doesn't match is refused with -32602, a notification dropped with a
   * warning; without a schema all are taken.
   */
  params?: P;
  /**
   * The scopes that a caller needs, where the server is protected ({@link HttpSettings.auth}). A request of a caller who lacks
   * one is answered with what is needed (2025-11-25, `basic/authorization`, step-up).
   */
  scopes?: readonly string[];
  /**
   * The extension that the method belongs to, one of the server's: clients that don't declare it are answered with -32021. See
   * {@link Extension.onRequest}.
   */
  extension?: string;
  /** A request that is replayed in another process (2026-07-28) is refused rather than run again. */
  runOnce?: boolean;
}

/** What a custom request's handler may return: an object, whose members are the result's. */
export type RequestReturn = object | InputRequired | null | undefined | void;

/** The arguments of a prompt that has none. */
export type NoArguments = Record<never, PromptArgumentOptions>; // eslint-disable-line @typescript-eslint/no-generated-empty-object-type

/** What a prompt's handler is given: each argument by its name. */
export type PromptArguments<A> = {
  [Name in keyof A as A[Name] extends { readonly required: false } ? never : Name]: string;
} & {
  [Name in keyof A as A[Name] extends { readonly required: false } ? Name : never]?: string;
};

type ArgumentsOf<I> = [I] extends [Schema] ? Parsed<I> : Record<string, never>;
export type ParamsOf<P> = [P] extends [Schema] ? Parsed<P> : Record<string, unknown>;
type ReturnOf<O> = [O] extends [Schema] ? Returned<O> | CallToolResult | InputRequired | ExtendedResult : ToolReturn;

/** Where and how to listen. */
export interface ListenOptions extends HttpSettings {
  /** 0, the default, for one that is free. */
  port?: number;
  /** Only this machine, if nothing else is said. */
  host?: string;
}

/** A server that listens. */
export interface Listening {
  readonly host: string;
  readonly port: number;
  /** The URL of the MCP endpoint. */
  readonly url: string;
  /** Settled when it has ended. */
  readonly closed: Promise<void>;
  /** Ends it, as {@link Server.close} does. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A client that is served over a transport of one's own. */
export interface ServedChannel {
  /** Settled when it has ended: either side has closed the channel. Rejected if the transport failed. */
  readonly closed: Promise<void>;
  /** Ends it, as {@link Server.close} does. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** How a client is served over a transport of one's own. */
export interface ChannelOptions {
  /**
   * Who the client is, as the transport has authenticated it. It is fixed until the channel is closed. Handlers find it in
   * `ctx.auth`. Scopes of tools, resources, prompts and custom methods hold for it as over HTTP: what it may not use is left
   * out of lists, and refused with the error -31001. Its channels count as one client. A client of whom nothing is known may
   * do everything: right for one that this process has started, or that has started it.
   */
  principal?: Verified;
}

/** How one handler is called. */
type Plan = (call: number, text: string) => void;

/** How long, in ms, a program may take to end by itself after a signal has ended its server. */
const EXIT_AFTER = 250;

interface Serving {
  native: NativeServing;
  ended: Promise<void>;
}

/**
 * A server and everything that it offers.
 *
 * ```ts
 * const server = new Server({ name: "weather", version: "1.0.0" });
 * server.tool("forecast", { input: z.object({ city: z.string() }) }, ({ city }) => `${city}: sunny`);
 * await server.run();
 * ```
 */
export class Server {
  readonly #native: NativeServer;
  readonly #number: number;
  /** What calls are run by: lives as long as the server. */
  readonly #callee: Callee = {
    run: (plan, call, text) => {
      this.#run(plan, call, text);
    },
  };
  readonly #plans = new Map<number, Plan>();
  /** Plans by what they are for, to be forgotten with it. */
  readonly #names = new Map<string, number>();
  readonly #servings = new Set<Serving>();
  readonly #apps = new Set<HttpApp>();
  #lastPlan = 0;
  #app: HttpApp | undefined;

  constructor(options: ServerOptions) {
    const { instructions, extensions = [], settings, ...info } = options;
    this.#number = register(this.#callee);
    const given = serverOptions(settings ?? {}, extensions);
    this.#native = attempt(() => new native.Server(hub, this.#number, JSON.stringify(info), instructions, given));
    this.fetch = this.fetch.bind(this);
    this.handler = this.handler.bind(this);
    for (const extension of extensions) {
      extension.addTo(this);
    }
  }

  /** The addon's half, for clients in the same process. @internal */
  get native(): NativeServer {
    return this.#native;
  }

  /**
   * Adds a tool (`server/tools`). Clients that are connected are told.
   *
   * @param handler Is given the arguments, checked and typed by the schema. It returns a string, content, or, with an
   *   output schema, the structured content; throws `ToolError` for what the model should read. Whatever else it throws
   *   is told to the developer as a warning of the process, and to the client as an internal error.
   * @throws UsageError if the name is taken, or a schema is unusable.
   */
  tool<const I extends Schema | undefined = undefined, const O extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    handler: (args: ArgumentsOf<I>, ctx: Context) => Awaitable<ReturnOf<O>>,
  ): this {
    const { input, output, runOnce, rate, scopes, meta, ...rest } = options;
    const where = `the tool ${name}`;
    const definition = {
      name,
      ...rest,
      inputSchema: objectSchema(input === undefined ? {} : jsonSchemaOf(input, "input", `the input of ${where}`)),
      ...(output === undefined ? {} : { outputSchema: jsonSchemaOf(output, "output", `the output of ${where}`) }),
      ...(meta === undefined ? {} : { _meta: meta }),
    };
    const validate = input === undefined ? undefined : validatorOf(input);
    const structured = output !== undefined;
    const run = handler as (args: unknown, ctx: Context) => unknown;
    const plan = this.#planned((call, text) => {
      const args: unknown = JSON.parse(text);
      const ctx = new Context(call, this);
      const valid = validate === undefined ? args : validate(args);
      const result = isPromise(valid) ? valid.then((args) => run(args, ctx)) : run(valid, ctx);
      this.#end(call, result, finishTool, structured);
    });
    attempt(() => {
      const limits = rate === undefined ? undefined : [rate.perSecond, rate.burst];
      this.#native.addTool(JSON.stringify(definition), plan, runOnce ?? false, limits, scopes);
    });
    this.#names.set(`tool ${name}`, plan);
    return this;
  }

  /** Removes a tool; `false` if there was none. Calls in flight go on. */
  removeTool(name: string): boolean {
    this.#forget(`tool ${name}`);
    return this.#native.removeTool(name);
  }

  /**
   * Adds a resource (`server/resources`). Clients that are connected are told.
   *
   * @throws UsageError if the URI is taken.
   */
  resource(uri: string, options: ResourceOptions, handler: (ctx: Context) => Awaitable<ResourceReturn>): this {
    const { meta, scopes, ...rest } = options;
    const definition = { uri, ...rest, ...(meta === undefined ? {} : { _meta: meta }) };
    const plan = this.#planned((call) => {
      this.#endResource(call, handler(new Context(call, this)), () => uri, options.mimeType);
    });
    attempt(() => {
      this.#native.addResource(JSON.stringify(definition), plan, scopes);
    });
    this.#names.set(`resource ${uri}`, plan);
    return this;
  }

  /**
   * Adds a resource template (RFC 6570; `server/resources`, resource templates). Clients that are connected are told.
   *
   * @param handler Is given the variables that the URI has: strings, arrays where they are exploded.
   * @throws UsageError if it is taken, or is no URI template.
   */
  resourceTemplate(
    uriTemplate: string,
    options: ResourceTemplateOptions,
    handler: (variables: Record<string, string>, ctx: Context) => Awaitable<ResourceReturn>,
  ): this {
    const { meta, complete, scopes, ...rest } = options;
    const definition = { uriTemplate, ...rest, ...(meta === undefined ? {} : { _meta: meta }) };
    const plan = this.#planned((call, text) => {
      const variables = JSON.parse(text) as Record<string, string>;
      const uri = () => hub.callName(call) ?? uriTemplate;
      this.#endResource(call, handler(variables, new Context(call, this)), uri, options.mimeType);
    });
    attempt(() => {
      this.#native.addResourceTemplate(JSON.stringify(definition), plan, scopes);
    });
    this.#names.set(`resource ${uriTemplate}`, plan);
    for (const [variable, completer] of Object.entries(complete ?? {})) {
      this.#complete(uriTemplate, variable, completer);
    }
    return this;
  }

  /** Removes a resource or a template; `false` if there was none. */
  removeResource(uri: string): boolean {
    this.#forget(`resource ${uri}`);
    return this.#native.removeResource(uri);
  }

  /**
   * Adds a prompt (`server/prompts`). Clients that are connected are told.
   *
   * @throws UsageError if the name is taken.
   */
  prompt<const A extends Record<string, PromptArgumentOptions> = NoArguments>(
    name: string,
    options: PromptOptions<A>,
    handler: (args: PromptArguments<A>, ctx: Context) => Awaitable<PromptReturn>,
  ): this {
    const { meta, scopes, arguments: given, ...rest } = options;
    const described = Object.entries<PromptArgumentOptions>(given ?? {});
    const definition = {
      name,
      ...rest,
      arguments: described.map(([name, { complete: _, required, ...rest }]) => ({
        name,
        ...rest,
        required: required ?? true,
      })),
      ...(meta === undefined ? {} : { _meta: meta }),
    };
    const run = handler as (args: unknown, ctx: Context) => unknown;
    const plan = this.#planned((call, text) => {
      this.#end(call, run(JSON.parse(text), new Context(call, this)), finishPrompt);
    });
    attempt(() => {
      this.#native.addPrompt(JSON.stringify(definition), plan, scopes);
    });
    this.#names.set(`prompt ${name}`, plan);
    for (const [argument, { complete }] of described) {
      if (complete !== undefined) {
        this.#complete(name, argument, complete);
      }
    }
    return this;
  }

  /** Removes a prompt; `false` if there was none. */
  removePrompt(name: string): boolean {
    this.#forget(`prompt ${name}`);
    return this.#native.removePrompt(name);
  }

  /**
   * Serves a request that no revision of the protocol defines.
   *
   * ```ts
   * server.onRequest("acme/search", { params: z.object({ query: z.string() }) }, async ({ query }, ctx) => {
   *   ctx.notify("acme/searching", { query });
   *   return { hits: [query] };
   * });
   * ```
   *
   * @param method The method, such as `acme/search`.
   * @param handler Is given the request's `params`, checked and typed by the schema. Progress, log messages, elicitation and
   *   cancellation work as in a tool, on every revision and transport. It returns the result, a JSON object; throws
   *   `RpcError` to answer with that error.
   * @throws UsageError if the method has a handler, the protocol defines it, or the schema is unusable.
   */
  onRequest<const P extends Schema | undefined = undefined>(
    method: string,
    options: MethodOptions<P>,
    handler: (params: ParamsOf<P>, ctx: Context) => Awaitable<RequestReturn>,
  ): this {
    const { native, plan } = this.#methodPlan(method, options, handler, finishRequest);
    attempt(() => {
      this.#native.addRequestHandler(method, native, plan);
    });
    this.#names.set(`request ${method}`, plan);
    return this;
  }

  /** Removes the handler of a custom request; `false` if there was none. Calls in flight go on. */
  removeRequestHandler(method: string): boolean {
    this.#forget(`request ${method}`);
    return this.#native.removeRequestHandler(method);
  }

  /**
   * Handles a notification that no revision of the protocol defines.
   *
   * Handlers are started in the order of arrival, but for `params` that take long to check, and run side by side. The end of
   * the session aborts `ctx.signal`, and a server that shuts down waits for them as for calls. A notification has no answer: one whose `params` don't match the schema, or whose
   * client lacks a scope or has too many calls and notifications in flight, is dropped with a warning.
   *
   * @param method The method, such as `acme/note`.
   * @param handler Is given the notification's `params`, checked and typed by the schema. In a session with a handshake its
   *   context logs and asks the client, as in {@link onInitialized}; on 2026-07-28 asking throws `UsageError`.
   * @throws UsageError if the method has a handler, the protocol defines it, or the schema is unusable.
   */
  onNotification<const P extends Schema | undefined = undefined>(
    method: string,
    options: MethodOptions<P>,
    handler: (params: ParamsOf<P>, ctx: Context) => Awaitable<void>,
  ): this {
    const { native, plan } = this.#methodPlan(method, options, handler, finishEvent);
    attempt(() => {
      this.#native.addNotificationHandler(method, native, plan);
    });
    this.#names.set(`notification ${method}`, plan);
    return this;
  }

  /** Removes the handler of a custom notification; `false` if there was none. Those that have begun go on. */
  removeNotificationHandler(method: string): boolean {
    this.#forget(`notification ${method}`);
    return this.#native.removeNotificationHandler(method);
  }

  #methodPlan(
    method: string,
    { params, scopes, extension, runOnce }: MethodOptions<Schema | undefined>,
    handler: unknown,
    finish: (call: number, value: unknown) => void,
  ): { native: string; plan: number } {
    const schema = params === undefined ? undefined : jsonSchemaOf(params, "input", `the params of ${method}`);
    const validate = params === undefined ? undefined : validatorOf(params, invalidParams);
    const run = handler as (params: unknown, ctx: Context) => unknown;
    const plan = this.#planned((call, text) => {
      const ctx = new Context(call, this);
      const given: unknown = JSON.parse(text);
      const valid = validate === undefined ? given : validate(given);
      this.#end(call, isPromise(valid) ? valid.then((params) => run(params, ctx)) : run(valid, ctx), finish);
    });
    const native = JSON.stringify({
      params_schema: schema,
      scopes: scopes ?? [],
      extension,
      run_once: runOnce ?? false,
    });
    return { native, plan };
  }

  /**
   * Completes whatever has no completer of its own (`server/utilities/completion`).
   *
   * @param handler Is given what is asked for, and returns candidates, best first.
   */
  completion(handler: (params: CompleteParams, ctx: Context) => Awaitable<CompletionReturn>): this {
    this.#native.setCompletion(this.#completing(handler));
    return this;
  }

  /**
   * Has a handler called for each session whose handshake is complete (`basic/lifecycle`, revisions up to 2025-11-25;
   * 2026-07-28 has no sessions).
   *
   * @param handler Asks the client by its context, outside of any call (`listRoots`, `sample`, `elicit`), for as long as it
   * runs; `ctx.signal` aborts when the session ends. Over HTTP the client has to have a GET stream open.
   */
  onInitialized(handler: (ctx: Context) => Awaitable<void>): this {
    this.#native.onInitialized(this.#eventHandler(handler));
    return this;
  }

  /**
   * Has a handler called when a client that declared roots tells that they changed (`client/roots`, root list changes,
   * revisions up to 2025-11-25). While it runs for a session, further changes there call it once more when it has ended.
   *
   * @param handler As in `onInitialized`: await `ctx.listRoots()` for the roots.
   */
  onRootsChanged(handler: (ctx: Context) => Awaitable<void>): this {
    this.#native.onRootsChanged(this.#eventHandler(handler));
    return this;
  }

  #eventHandler(handler: (ctx: Context) => Awaitable<void>): number {
    return this.#planned((call) => {
      this.#end(call, handler(new Context(call, this)), finishEvent);
    });
  }

  /** Tells the subscribers of a resource that it has changed. */
  notifyResourceUpdated(uri: string): void {
    this.#native.notifyResourceUpdated(uri);
  }

  /**
   * Tells the client that was sent to a URL under this id that the visit is over (2025-11-25, `client/elicitation`,
   * completion notifications). Says nothing to clients of other revisions, and nothing the second time.
   */
  notifyElicitationComplete(elicitationId: string): void {
    this.#native.notifyElicitationComplete(elicitationId);
  }

  /**
   * Serves stdio, until its input ends, or the process gets SIGINT or SIGTERM. A handler that then ignores `ctx.signal`
   * doesn't hold the process up: a quarter of a second after this has returned, the process exits.
   *
   * Meanwhile standard output belongs to the protocol: what the program prints there goes to standard error.
   *
   * @throws TransportError if stdio is served already.
   */
  async run(): Promise<void> {
    let serving: Serving | undefined;
    const stop = () => {
      serving?.native.stop();
    };
    // Before anybody can know that we serve.
    process.once("SIGINT", stop).once("SIGTERM", stop);
    try {
      const [number, ended] = promised();
      serving = this.#serve([number], ended, () => this.#native.serveStdio(number));
      await serving.ended;
    } finally {
      process.off("SIGINT", stop).off("SIGTERM", stop);
      exitSoon(() => this.#apps.size === 0 && isHeldUp());
    }
  }

  /**
   * Serves one client over a transport of one's own, until either side closes the channel.
   *
   * @param open Opens the channel; called once. It is given where to put what comes from the client.
   * @throws TransportError if it can't be opened.
   * @throws UsageError if the principal isn't one; nothing is opened then.
   */
  async serveChannel(
    open: (incoming: Incoming) => Channel | Promise<Channel>,
    { principal }: ChannelOptions = {},
  ): Promise<ServedChannel> {
    const named = principal === undefined ? undefined : principalJson(principal);
    const channels = new Channels({ open });
    const [openedNumber, opened] = promised();
    const [endedNumber, ended] = promised();
    let serving: Serving;
    try {
      serving = this.#serve([openedNumber, endedNumber], ended, () =>
        this.#native.serveChannel(openedNumber, endedNumber, channels.native, named),
      );
    } catch (error) {
      channels.end();
      throw error;
    }
    const end = () => {
      disown(openedNumber);
      channels.end();
    };
    serving.ended.then(end, end);
    await Promise.race([opened, serving.ended]);
    const close = async () => {
      serving.native.stop();
      await serving.ended;
    };
    return { closed: serving.ended, close, [Symbol.asyncDispose]: close };
  }

  /**
   * Listens for HTTP: Streamable HTTP, and HTTP+SSE beside it, every revision at once.
   *
   * @throws TransportError if the address can't be had.
   */
  async listen(options: ListenOptions = {}): Promise<Listening> {
    const { port = 0, host = "127.0.0.1", ...settings } = options;
    const serialized = httpOptions(settings);
    const verifier = verifying(settings.auth);
    const [boundNumber, bound] = promised();
    const [endedNumber, ended] = promised();
    let serving: Serving;
    try {
      serving = this.#serve([boundNumber, endedNumber], ended, () =>
        this.#native.serveHttp(boundNumber, endedNumber, host, port, serialized, verifier.native),
      );
    } catch (error) {
      verifier.end();
      throw error;
    }
    serving.ended.then(verifier.end, verifier.end);
    const address = await bound;
    const [actualHost, actualPort] = JSON.parse(address ?? "[]") as [string, number];
    const close = async () => {
      serving.native.stop();
      await serving.ended;
    };
    const shown = actualHost.includes(":") ? `[${actualHost}]` : actualHost;
    return {
      host: actualHost,
      port: actualPort,
      url: `http://${shown}:${String(actualPort)}${settings.path ?? "/mcp"}`,
      closed: serving.ended,
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /**
   * The server as an HTTP application of these settings, to be mounted in another one: on a path of its own, to which it
   * answers everything.
   */
  httpApp(settings: HttpSettings = {}): HttpApp {
    const options = httpOptions(settings);
    const verifier = verifying(settings.auth);
    let made: NativeHttpApp;
    try {
      made = attempt(() => this.#native.httpApp(options, verifier.native));
    } catch (error) {
      verifier.end();
      throw error;
    }
    const app = new HttpApp(made, () => {
      this.#apps.delete(app);
      verifier.end();
    });
    this.#apps.add(app);
    return app;
  }

  /** Answers one HTTP request, with default settings; see {@link httpApp}. May be passed around without the server. */
  fetch(request: Request): Promise<Response> {
    return this.#ownApp().fetch(request);
  }

  /**
   * Answers one request of `node:http`, Express, Connect or Fastify (`request.raw` and `reply.raw` there), with default
   * settings; see {@link httpApp}. May be passed around without the server.
   */
  handler(request: IncomingMessage, response: ServerResponse): void {
    this.#ownApp().handler(request, response);
  }

  /**
   * From now on SIGINT and SIGTERM {@link close} the server and end the process: by itself if nothing else is left, else by
   * `process.exit` a quarter of a second later, so that no handler that ignores `ctx.signal` holds it up. A second signal
   * ends the process at once. For programs that are nothing but the server.
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
   * Ends whatever serves. Calls in flight may end within the grace period (`shutdownGrace`); then they are aborted
   * (`ctx.signal`), and answered with an error that says that the server is shutting down.
   *
   * Requests that {@link fetch} and {@link handler} get later are refused with status 503.
   *
   * Node goes on for as long as a handler waits for something, also once it was aborted: hand `ctx.signal` on, or exit.
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

  /** The request of an exchange of one of its applications. @internal */
  mounted(exchange: number): unknown {
    for (const app of this.#apps) {
      const request = app.request(exchange);
      if (request !== undefined) {
        return request;
      }
    }
    return undefined;
  }

  #run(plan: number, call: number, text: string): void {
    const run = this.#plans.get(plan);
    if (run === undefined) {
      finish(call, Kind.InternalFailure, "the handler was removed");
      return;
    }
    try {
      run(call, text);
    } catch (error) {
      this.#fail(call, error);
    }
  }

  #ownApp(): HttpApp {
    this.#app ??= this.httpApp();
    return this.#app;
  }

  #serve(promises: number[], ended: Promise<unknown>, start: () => NativeServing): Serving {
    let native: NativeServing;
    try {
      native = attempt(start);
    } catch (error) {
      promises.forEach(disown);
      throw error;
    }
    keep(this.#number, this.#callee);
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
    // Whoever waits hears of a failure; nobody has to.
    serving.ended.catch(() => undefined);
    this.#servings.add(serving);
    return serving;
  }

  #served(serving: Serving): void {
    this.#servings.delete(serving);
    if (this.#servings.size === 0) {
      letGo(this.#number);
    }
  }

  #planned(plan: Plan): number {
    this.#plans.set(++this.#lastPlan, plan);
    return this.#lastPlan;
  }

  #forget(name: string): void {
    const plan = this.#names.get(name);
    if (plan !== undefined) {
      this.#names.delete(name);
      this.#plans.delete(plan);
    }
  }

  #complete(reference: string, argument: string, completer: Completer): void {
    if (typeof completer === "function") {
      const plan = this.#completing((params, ctx) => completer(params.argument.value, ctx, params));
      this.#native.addCompleter(reference, argument, plan);
    } else {
      this.#native.addCandidates(reference, argument, [...completer]);
    }
  }

  #completing(handler: (params: CompleteParams, ctx: Context) => Awaitable<CompletionReturn>): number {
    return this.#planned((call, text) => {
      const result = handler(JSON.parse(text) as CompleteParams, new Context(call, this));
      this.#end(call, result, finishCompletion);
    });
  }

  #endResource(call: number, result: unknown, uri: () => string, mimeType: string | undefined): void {
    this.#end(call, result, (call, value) => {
      finishResource(call, value, uri, mimeType);
    });
  }

  /** Ends a call with what its handler returned, now or when that is there. */
  #end(
    call: number,
    result: unknown,
    end: (call: number, value: unknown, structured: boolean) => void,
    structured = false,
  ): void {
    if (!isPromise(result)) {
      end(call, result, structured);
      return;
    }
    result.then(
      (value) => {
        try {
          end(call, value, structured);
        } catch (error) {
          this.#fail(call, error);
        }
      },
      (error: unknown) => {
        this.#fail(call, error);
      },
    );
  }

  #fail(call: number, error: unknown): void {
    finishFailed(call, error);
  }
}

/** Ends the process on this condition, if it doesn't end by itself. */
function exitSoon(condition: () => boolean): void {
  const exit = () => {
    if (condition()) {
      process.exit();
    }
  };
  setTimeout(exit, EXIT_AFTER).unref();
}

/** The answer to a request whose params a schema library refuses. */
function invalidParams(issues: string): RpcError {
  return new RpcError(-32602, `params: ${issues}`);
}

/** A schema of arguments must be an object's. */
function objectSchema(schema: JsonSchema): JsonSchema {
  // What is no schema of an object at all is the core's to refuse.
  if (Object(schema) !== schema || schema["type"] === "object" || "$ref" in schema) {
    return schema;
  }
  if (schema["type"] === undefined) {
    return { type: "object", ...schema };
  }
  throw new UsageError("a tool's arguments are an object");
}
