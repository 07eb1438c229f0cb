/** Registration of each kind of feature: checks its options, and makes its definition and its handler from them. */

import type { Context } from "./context.js";
import { RpcError, ToolError, UsageError } from "./errors.js";
import { checkMethod, checkPrompt, checkResource, checkRoute, checkTemplate, checkTool } from "./feature_checks.js";
import type {
  Awaitable,
  Completer,
  Completers,
  CompletionReturn,
  MethodOptions,
  PromptOptions,
  ResourceOptions,
  ResourceTemplateOptions,
  ToolOptions,
} from "./feature_options.js";
import type { FeatureRegistry } from "./feature_registry.js";
import { hub } from "./hub.js";
import { isPromise } from "./is_promise.js";
import { checkHandler } from "./option_checks.js";
import { usableArguments } from "./prompt_arguments.js";
import type { CompleteParams } from "./protocol.js";
import {
  finishCompletion,
  finishEvent,
  finishPrompt,
  finishRequest,
  finishResource,
  finishResourceList,
  finishTool,
} from "./results.js";
import { callRoute, finishRoute, type RouteHandler, type RouteOptions } from "./routes.js";
import { type Schema, usableSchema, type Validate } from "./schemas.js";
import { type CacheHint, convertedSetting, rateOf, toolTimeout } from "./settings.js";

/** A handler with an input. Its types are those of the public functions, which are erased here. */
type Handler = (input: unknown, ctx: Context) => unknown;

export function addTool(
  registry: FeatureRegistry,
  name: string,
  options: ToolOptions<Schema | undefined, Schema | undefined>,
  handler: unknown,
): void {
  checkTool(name, options, handler);
  const { input, output, runOnce, timeout, rate, scopes, tags, meta, ...rest } = options;
  const where = `tool \`${name}\``;
  const taken = input === undefined ? undefined : usableSchema(input, "input", `${where}: \`input\``, invalidArguments);
  const given =
    output === undefined
      ? undefined
      : usableSchema(output, "output", `${where}: \`output\``, (issues) => invalidOutput(where, issues));
  const definition = {
    name,
    ...rest,
    inputSchema: taken?.json ?? {},
    ...(given === undefined ? {} : { outputSchema: given.json }),
    ...metaOf(meta),
  };
  const validate = taken?.validate;
  const apply: Validate | undefined = given === undefined ? undefined : (given.validate ?? unchanged);
  registry.add({
    kind: "tool",
    name,
    definition,
    options: {
      run_once: runOnce,
      timeout: timeout === undefined ? undefined : toolTimeout(where, timeout),
      rate: rate === undefined ? undefined : rateOf("rate", rate),
      scopes,
      tags,
      decodes_itself: validate !== undefined,
    },
    run: withInput(handler as Handler, validate),
    finish: (call, value) => finishTool(call, value, apply),
  });
}

/** Registers a resource, or a resource template if the URI has variables. */
export function addResource(registry: FeatureRegistry, uri: string, options: object, handler: unknown): void {
  if (typeof uri === "string" && uri.includes("{")) {
    addTemplate(registry, uri, options as ResourceTemplateOptions, handler);
    return;
  }
  checkResource(uri, options, handler);
  const { meta, scopes, tags, cache, ...rest } = options as ResourceOptions;
  const run = handler as Handler;
  registry.add({
    kind: "resource",
    name: uri,
    definition: { uri, ...rest, ...metaOf(meta) },
    options: { scopes, tags, cache: cacheOf(cache) },
    run: (ctx) => run({}, ctx),
    finish: resourceFinisher(uri, rest.mimeType),
  });
}

function addTemplate(
  registry: FeatureRegistry,
  uriTemplate: string,
  options: ResourceTemplateOptions,
  handler: unknown,
): void {
  checkTemplate(uriTemplate, options, handler);
  const { meta, complete, list, scopes, tags, uncheckedVariables, cache, ...rest } = options;
  registry.add({
    kind: "resource",
    name: uriTemplate,
    definition: { uriTemplate, ...rest, ...metaOf(meta) },
    options: { scopes, tags, unchecked_variables: uncheckedVariables, cache: cacheOf(cache) },
    run: withInput(handler as Handler, undefined),
    finish: resourceFinisher(uriTemplate, rest.mimeType),
  });
  addCompleters(registry, uriTemplate, complete);
  if (list !== undefined) {
    registry.add({
      kind: "resource_list",
      name: uriTemplate,
      definition: { uri_template: uriTemplate },
      run: (ctx) => list(ctx),
      finish: finishResourceList,
    });
  }
}

/** Converts the cache hints of a resource for the core. */
function cacheOf(cache: CacheHint | undefined): unknown {
  return cache === undefined ? undefined : convertedSetting("cache", "cache", cache);
}

/** Returns what ends a call that reads a resource. The URI is the one that the client has requested. */
function resourceFinisher(registered: string, mimeType: string | undefined) {
  return (call: number, value: unknown) => {
    finishResource(call, value, () => hub.callName(call) ?? registered, mimeType);
  };
}

export function addPrompt(registry: FeatureRegistry, name: string, options: PromptOptions, handler: unknown): void {
  checkPrompt(name, options, handler);
  const { meta, scopes, tags, arguments: _, complete: _complete, ...rest } = options;
  const { list, validate, complete } = usableArguments(name, options);
  registry.add({
    kind: "prompt",
    name,
    definition: { name, ...rest, arguments: list, ...metaOf(meta) },
    options: { scopes, tags },
    run: withInput(handler as Handler, validate),
    finish: finishPrompt,
  });
  addCompleters(registry, name, complete);
}

/** Registers the handler of a custom request or notification. */
export function addMethod(
  registry: FeatureRegistry,
  kind: "request" | "notification",
  method: string,
  options: MethodOptions<Schema | undefined>,
  handler: unknown,
): void {
  checkMethod(method, options, handler);
  const { params, scopes, extension, runOnce } = options;
  const where = `method \`${method}\`: \`params\``;
  const schema = params === undefined ? undefined : usableSchema(params, "input", where, invalidParams);
  const validate = schema?.validate;
  if (validate !== undefined && (schema?.json.type ?? "object") !== "object") {
    throw new UsageError(`${where} must be the schema of an object`);
  }
  // The core would validate against it as well.
  const checked = validate === undefined ? schema?.json : undefined;
  registry.add({
    kind,
    name: method,
    definition: { method, params_schema: checked },
    options: { scopes, extension, run_once: runOnce },
    run: withInput(handler as Handler, validate),
    finish: kind === "request" ? finishRequest : finishEvent,
  });
}

export function addRoute(registry: FeatureRegistry, path: string, options: unknown, handler: unknown): void {
  checkRoute(path, options, handler);
  const { methods, scopes, public: isPublic } = options as RouteOptions;
  registry.add({
    kind: "route",
    name: path,
    key: `${methods?.join(",") ?? ""} ${path}`,
    definition: { path, methods, public: isPublic },
    options: { scopes },
    run: (ctx) => callRoute(handler as RouteHandler, ctx.call, ctx.server),
    finish: finishRoute,
  });
}

/** Registers the handler of a notification that the protocol defines. */
export function addEvent(registry: FeatureRegistry, method: string, handler: unknown): void {
  checkHandler(`\`${method}\``, handler);
  const run = handler as (ctx: Context) => unknown;
  registry.add({ kind: "event", name: method, definition: { method }, run: (ctx) => run(ctx), finish: finishEvent });
}

/** Registers the completion of arguments that have no completer. */
export function addCompletion(registry: FeatureRegistry, handler: unknown): void {
  checkHandler("completion", handler);
  registry.add({
    kind: "completion",
    name: "",
    definition: null,
    run: completing(handler as CompletionHandler),
    finish: finishCompletion,
  });
}

type CompletionHandler = (params: CompleteParams, ctx: Context) => Awaitable<CompletionReturn>;

function completing(handler: CompletionHandler) {
  return (ctx: Context, input: string) => handler(JSON.parse(input) as CompleteParams, ctx);
}

/**
 * Registers the completers of arguments.
 *
 * @param reference Name of the prompt, or URI template.
 */
function addCompleters(registry: FeatureRegistry, reference: string, completers: Completers | undefined): void {
  for (const [argument, completer] of Object.entries(completers ?? {})) {
    if (completer !== undefined) {
      addCompleter(registry, reference, argument, completer);
    }
  }
}

function addCompleter(registry: FeatureRegistry, reference: string, argument: string, completer: Completer): void {
  if (typeof completer !== "function") {
    registry.addCandidates(reference, argument, completer);
    return;
  }
  registry.add({
    kind: "completion",
    name: reference,
    key: `${reference}\n${argument}`,
    definition: { reference, argument },
    run: completing((params, ctx) => completer(params.argument.value, ctx, params)),
    finish: finishCompletion,
  });
}

/** Returns what calls a handler with its input, after the validation of a library's schema if there is one. */
function withInput(handler: Handler, validate: Validate | undefined) {
  return (ctx: Context, input: string): unknown => {
    const given: unknown = JSON.parse(input);
    const valid = validate === undefined ? given : validate(given);
    return isPromise(valid) ? valid.then((value) => handler(value, ctx)) : handler(valid, ctx);
  };
}

function metaOf(meta: object | undefined): object {
  return meta === undefined ? {} : { _meta: meta };
}

/** The error of a tool whose arguments do not match the schema, for the model. */
function invalidArguments(issues: string): ToolError {
  return new ToolError(`Invalid arguments: ${issues}`);
}

/** The error of a tool whose handler returned something else than its output schema says, for the program. */
function invalidOutput(where: string, issues: string): UsageError {
  return new UsageError(`${where}: the returned value does not match \`output\`: ${issues}`);
}

/** The response to a request whose `params` do not match the schema. */
function invalidParams(issues: string): RpcError {
  return new RpcError(-32602, `params: ${issues}`);
}

/** JSON Schema is applied by the core. */
function unchanged(value: unknown): unknown {
  return value;
}
