/** Middleware: code around the requests that a server answers ({@link Server.use}). */

import { beginOrigin, captureContext, endOrigin } from "./async_context.js";
import { BuiltInMiddleware } from "./built_in_middleware.js";
import { jsonOf } from "./content.js";
import type { Context } from "./context.js";
import { attempt, UrlElicitationRequiredError, UsageError } from "./errors.js";
import type { ExtendedResult } from "./extension.js";
import { checkMiddleware } from "./feature_checks.js";
import type { Awaitable, FeatureSelection } from "./feature_options.js";
import type { FeatureRegistry } from "./feature_registry.js";
import { dropPromise, hasReported, hub, promised } from "./hub.js";
import { isPromise } from "./is_promise.js";
import { endOf, receivedResult } from "./middleware_results.js";
import { checkOptions, typeName } from "./option_checks.js";
import { optionNames } from "./option_names.js";
import type {
  CallToolResult,
  CompleteParams,
  CompleteResult,
  ContentBlock,
  CreateMessageParams,
  CreateMessageResult,
  ElicitAnswer,
  ElicitParams,
  GetPromptResult,
  InputRequiredResult,
  LogLevel,
  Meta,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Root,
  Tool,
} from "./protocol.js";
import type { ToolResult } from "./tool_result.js";

interface ListParams {
  cursor?: string;
  _meta?: Meta;
}

interface NamedParams {
  name: string;
  arguments?: Record<string, unknown>;
  _meta?: Meta;
}

type ListResult<Members> = Members & {
  nextCursor?: string;
  ttlMs?: number;
  cacheScope?: "public" | "private";
  _meta?: Meta;
};

/** A result that may ask the client for input instead (2026-07-28). */
type ResultOrInputRequired<Result> = (Result & { resultType?: "complete" }) | InputRequiredResult;

/** The methods of the protocol that middleware sees, with their parameters and results. */
export interface MiddlewareMethods {
  "tools/list": { params: ListParams; result: ListResult<{ tools: Tool[] }> };
  "tools/call": { params: NamedParams; result: ResultOrInputRequired<CallToolResult> };
  "resources/list": { params: ListParams; result: ListResult<{ resources: Resource[] }> };
  "resources/templates/list": { params: ListParams; result: ListResult<{ resourceTemplates: ResourceTemplate[] }> };
  "resources/read": { params: { uri: string; _meta?: Meta }; result: ResultOrInputRequired<ReadResourceResult> };
  "prompts/list": { params: ListParams; result: ListResult<{ prompts: Prompt[] }> };
  "prompts/get": { params: NamedParams; result: ResultOrInputRequired<GetPromptResult> };
  "completion/complete": { params: CompleteParams & { _meta?: Meta }; result: CompleteResult };
  "sampling/createMessage": { params: CreateMessageParams; result: CreateMessageResult };
  "elicitation/create": { params: ElicitParams; result: ElicitAnswer };
  "roots/list": { params: { _meta?: Meta }; result: { roots: Root[]; _meta?: Meta } };
  "notifications/message": { params: { level: LogLevel; logger?: string; data: unknown }; result: object };
  "notifications/progress": { params: { progress: number; total?: number; message?: string }; result: object };
  "notifications/initialized": { params: { _meta?: Meta }; result: object };
  "notifications/roots/list_changed": { params: { _meta?: Meta }; result: object };
}

/**
 * What a {@link MiddlewareRequest} is:
 *
 * - `request`: a request of the client.
 * - `input_request`: a request of a handler to the client, such as `elicitation/create`. The result of {@link Next} is the client's
 *   answer.
 * - `sent_notification`: a notification of a handler to the client, such as `notifications/message`. Those of a handler keep their
 *   order, and its result follows them.
 * - `received_notification`: a notification of the client that the server has a handler for.
 *
 * A notification is dropped if the middleware does not call {@link Next}. What the middleware returns for it does not matter.
 */
export type MessageKind = "request" | "input_request" | "sent_notification" | "received_notification";

/** Parameters of a request at a middleware: those of its methods, or of any method. */
export type MiddlewareParams<M extends string = string> = M extends keyof MiddlewareMethods
  ? MiddlewareMethods[M]["params"]
  : Record<string, unknown>;

/**
 * Result of a request at a middleware, as it is sent to the client.
 *
 * If the handler asks the client for input, it is an {@link InputRequiredResult} on 2026-07-28; the client's answers then
 * arrive with another request. On earlier revisions the handler waits for the answers.
 */
export type MiddlewareResult<M extends string = string> = M extends keyof MiddlewareMethods
  ? MiddlewareMethods[M]["result"]
  : Record<string, unknown>;

/** What a tool may return, except data. */
type ToolContent = string | ContentBlock | readonly (string | ContentBlock)[] | ToolResult;

/** Any object but a promise, whose value may be missing. */
type ObjectResult = object & { then?: never };

/**
 * Return value of a middleware: the result of {@link Next}, or another one. For `tools/call` it may also be text, content
 * blocks, or a complete result ({@link result}).
 */
export type MiddlewareReturn<M extends string = string> =
  (string extends M ? ToolContent | ObjectResult : ReturnOfMethod<M>) | ExtendedResult;

type ReturnOfMethod<M extends string> =
  | (M extends `notifications/${string}` ? void : never)
  | (M extends keyof MiddlewareMethods ? MiddlewareResult<M> : ObjectResult)
  | (M extends "tools/call" ? ToolContent : never);

/**
 * Passes the request on, to the next middleware or to the handler. Resolves to the result.
 *
 * It may be called several times, to try again: each time the handler runs. Not at all, and the middleware answers instead.
 *
 * @param request The request, or a changed one ({@link MiddlewareRequest.with}). Default: unchanged.
 * @throws RpcError if the request fails. If the middleware does not catch it, the client gets it as it is.
 * @throws RequestCancelledError if the request ends early; {@link Context.signal} is aborted then.
 * @throws ClosedError if the middleware has returned.
 */
export type Next<M extends string = string> = (
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the types of the program's values do not matter here
  request?: MiddlewareRequest<M, any, any>,
) => Promise<MiddlewareResult<M>>;

/**
 * Code around requests.
 *
 * Returns the result. Throws {@link RpcError} for an error of the request; for `tools/call`, {@link ToolError} for one that the
 * model should read. Any other error goes to {@link ServerOptions.onError}; the client gets an internal error.
 *
 * @typeParam M The methods of the requests.
 * @typeParam C Type of {@link Context.context}.
 * @typeParam State Type of {@link Context.state}.
 */
export type Middleware<M extends string = string, C = unknown, State = unknown> = (
  request: MiddlewareRequest<M, C, State>,
  next: Next<M>,
) => Awaitable<MiddlewareReturn<M>>;

/**
 * What a middleware sees: requests of clients that match each of the criteria that are given, and other messages whose methods
 * it names.
 *
 * `kinds`, `names` and `tags` select requests for features, as {@link Server.disable} does: calls of tools, reads of resources,
 * requests for prompts, and completions. Lists and custom requests are for no feature.
 */
export interface MiddlewareScope<M extends string = string> extends FeatureSelection {
  /**
   * Methods: of requests of clients, such as `tools/call`; of input requests of handlers, such as `elicitation/create`; of
   * notifications of handlers, such as `notifications/message`; and of notifications of clients that have handlers. The last three
   * are seen only if they are named here: see {@link MessageKind}.
   */
  methods?: readonly M[];
}

/** What {@link MiddlewareRequest.with} changes. */
export interface RequestChanges {
  /** The arguments of a tool or prompt. */
  arguments?: object;
  /** All parameters. If `arguments` are given too, they replace those of the parameters. */
  params?: object;
}

const CHANGES = optionNames<RequestChanges>({ arguments: true, params: true });

/** Separates what describes a request from its parameters, in the core's JSON. No string contains it, because of the quotes. */
const PARAMS = ',"params":';

/** The parameters that {@link MiddlewareRequest.with} gave to a request, as JSON. */
const changedParams = new WeakMap<MiddlewareRequest, string>();

/**
 * A request, or another message, on its way through middleware. It cannot be changed; {@link with} returns a changed one.
 *
 * @typeParam M The method, if the scope names methods.
 * @typeParam C Type of {@link Context.context}: that of the server, `Server<C>`.
 * @typeParam State Type of {@link Context.state}: that of the server, `Server<C, State>`.
 */
export class MiddlewareRequest<M extends string = string, C = unknown, State = unknown> {
  /** What it is. */
  readonly kind: MessageKind;
  /** The method, such as `tools/call`. */
  readonly method: M;
  /**
   * The name of the tool or prompt, or the URI of the resource; for a completion those of the prompt or template.
   * `undefined` for other methods. Middleware of a mounted server sees the name without the prefix of the mount.
   */
  readonly name: string | undefined;
  /**
   * The request context, as handlers get it. Leave input requests such as {@link Context.elicit} to handlers: on 2026-07-28
   * they throw {@link UsageError} in a middleware.
   */
  readonly context: Context<C, State>;
  readonly #json: string;
  #params: MiddlewareParams<M> | undefined;

  /** @param json The parameters. @internal */
  constructor(kind: MessageKind, method: M, name: string | undefined, context: Context<C, State>, json: string) {
    this.kind = kind;
    this.method = method;
    this.name = name;
    this.context = context;
    this.#json = json;
  }

  /** The parameters, with `_meta`; empty if the request has none. Frozen. */
  get params(): Readonly<MiddlewareParams<M>> {
    this.#params ??= frozen(JSON.parse(this.#json) as MiddlewareParams<M>);
    return this.#params;
  }

  /** The arguments of the tool or prompt; empty if the request has none. Frozen. */
  get arguments(): Readonly<Record<string, unknown>> {
    const given = (this.params as Record<string, unknown>)["arguments"];
    return typeof given === "object" && given !== null ? (given as Record<string, unknown>) : NONE;
  }

  /**
   * Returns a request with other arguments or parameters, for {@link Next}.
   *
   * With another name or URI in `params` the request goes to that feature, through the middleware whose scope has it;
   * middleware of a mounted server cannot do this. If the handler asks the client for input on 2026-07-28, the answers are
   * accepted only if the middleware changes the request in the same way then.
   *
   * @throws UsageError if a value is not an object.
   */
  with(changes: RequestChanges): MiddlewareRequest<M, C, State> {
    checkOptions("`with` of a request", changes, CHANGES);
    const { arguments: given, params = this.params } = changes;
    const members: object = given === undefined ? params : { ...params, arguments: given };
    const objects: Record<string, unknown> = { params, arguments: given ?? {} };
    for (const [what, value] of Object.entries(objects)) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw new UsageError(`\`with\` of a request: \`${what}\` must be an object, not ${typeName(value)}`);
      }
    }
    const json = jsonOf(members);
    const target = targetOf(this.method, JSON.parse(json));
    const isSame = target === targetOf(this.method, this.params);
    const name = this.kind !== "request" || isSame ? this.name : target;
    const changed = new MiddlewareRequest(this.kind, this.method, name, this.context, json);
    changedParams.set(changed, json);
    return changed;
  }
}

const NONE: Readonly<Record<string, unknown>> = Object.freeze({});

/** Freezes a JSON value. The core limits how deep it is. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

/** Returns the feature that the parameters name. */
function targetOf(method: string, params: unknown): string | undefined {
  const { name, uri, ref } = params as {
    name?: unknown;
    uri?: unknown;
    ref?: { name?: unknown; uri?: unknown } | null;
  };
  const targets: Readonly<Record<string, unknown>> = {
    "tools/call": name,
    "prompts/get": name,
    "resources/read": uri,
    "completion/complete": ref?.name ?? ref?.uri,
  };
  const target = Object.hasOwn(targets, method) ? targets[method] : undefined;
  return typeof target === "string" ? target : undefined;
}

/** Registers a middleware: a scope and a function or a {@link BuiltInMiddleware}, or the latter alone. */
export function addMiddleware(registry: FeatureRegistry, given: readonly unknown[]): void {
  const [scope, middleware] = checkMiddleware(given) as [MiddlewareScope, Middleware | BuiltInMiddleware];
  const { methods, kinds, names, tags } = scope;
  const definition = { methods, kinds, names, tags };
  if (middleware instanceof BuiltInMiddleware) {
    registry.addBuiltInMiddleware(middleware.definition, definition);
    return;
  }
  registry.add({
    kind: "middleware",
    name: middleware.name,
    definition,
    run: (ctx, input) => {
      const request = received(ctx, input);
      const end = (value: unknown) => endOf(request, value);
      try {
        const returned: unknown = middleware(request, (passed) => passOn(request, passed));
        return isPromise(returned) ? returned.then(end, refuseUrlElicitation) : end(returned);
      } catch (error) {
        return refuseUrlElicitation(error);
      }
    },
    finish: (call, end) => {
      (end as (call: number) => void)(call);
    },
  });
}

/** Throws an error of a middleware, or another one if the error asks the client for input. */
function refuseUrlElicitation(error: unknown): never {
  if (error instanceof UrlElicitationRequiredError) {
    throw new UsageError("a middleware cannot throw `UrlElicitationRequiredError`: only handlers can", {
      cause: error,
    });
  }
  throw error;
}

/** Returns the request that the core describes. */
function received(ctx: Context, input: string): MiddlewareRequest {
  const place = input.indexOf(PARAMS);
  const head = place < 0 ? input : `${input.slice(0, place)}}`;
  const params = place < 0 ? "{}" : input.slice(place + PARAMS.length, -1);
  const { kind, method, name } = JSON.parse(head) as { kind: MessageKind; method: string; name?: string };
  return new MiddlewareRequest(kind, method, name, ctx, params);
}

function isSameRequest(own: MiddlewareRequest, passed: unknown): passed is MiddlewareRequest {
  return passed instanceof MiddlewareRequest && passed.context === own.context;
}

/** Passes a request on, in the current asynchronous context. */
function passOn(own: MiddlewareRequest, passed: unknown): Promise<MiddlewareResult> {
  const result = run(own, passed);
  // Not every caller waits for it, and its end may come when the middleware is gone.
  result.catch(() => undefined);
  return result;
}

async function run(own: MiddlewareRequest, passed: unknown = own): Promise<MiddlewareResult> {
  if (!isSameRequest(own, passed)) {
    const hint = passed instanceof Error ? ": throw an error instead of passing it" : "";
    throw new UsageError(`\`next\` takes the request, or one that \`request.with\` returned${hint}`);
  }
  const [number, settled] = promised(false);
  beginOrigin(number, captureContext());
  try {
    attempt(() => {
      hub.runNext(own.context.call, number, changedParams.get(passed));
    });
    hasReported();
    return receivedResult((await settled) as string);
  } catch (error) {
    dropPromise(number);
    throw error;
  } finally {
    endOrigin(number);
  }
}
