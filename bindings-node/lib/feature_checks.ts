/** Checks of the registration of features: names, options, handlers and completions. */

import { BuiltInMiddleware } from "./built_in_middleware.js";
import { checkDefinition } from "./definition_checks.js";
import { UsageError } from "./errors.js";
import {
  checkHandler,
  checkLists,
  checkName,
  checkOptions,
  closestName,
  isLogger,
  isObject,
  typeName,
} from "./option_checks.js";
import { optionNames } from "./option_names.js";
import { isSchemaOrShape } from "./schemas.js";
import type {
  ArgumentTransform,
  MethodOptions,
  DescriptionChanges,
  FeatureSelection,
  MountOptions,
  PromptArgumentOptions,
  PromptOptions,
  ResourceChanges,
  ResourceOptions,
  ResourceTemplateOptions,
  ToolChanges,
  ToolOptions,
  ToolTransform,
} from "./feature_options.js";
import type { MiddlewareScope } from "./middleware.js";
import type { RouteOptions } from "./routes.js";
import type { ServerOptions } from "./server_options.js";

const DESCRIBED = { title: true, description: true, icons: true, meta: true, scopes: true, tags: true };
const SERVER = optionNames<ServerOptions>({
  name: true,
  version: true,
  title: true,
  description: true,
  websiteUrl: true,
  icons: true,
  instructions: true,
  extensions: true,
  settings: true,
  onError: true,
  onRequestEnd: true,
  logger: true,
  tracing: true,
  createContext: true,
  state: true,
});
const TOOL = optionNames<ToolOptions>({
  ...DESCRIBED,
  input: true,
  output: true,
  annotations: true,
  runOnce: true,
  timeout: true,
  rate: true,
});
const RESOURCE = optionNames<ResourceOptions>({
  ...DESCRIBED,
  name: true,
  mimeType: true,
  size: true,
  annotations: true,
  cache: true,
});
const TEMPLATE = optionNames<ResourceTemplateOptions>({
  ...DESCRIBED,
  name: true,
  mimeType: true,
  annotations: true,
  cache: true,
  complete: true,
  list: true,
  uncheckedVariables: true,
});
const PROMPT = optionNames<PromptOptions>({ ...DESCRIBED, arguments: true, complete: true });
const ARGUMENT = optionNames<PromptArgumentOptions>({
  title: true,
  description: true,
  required: true,
  complete: true,
});
const METHOD = optionNames<MethodOptions>({ params: true, scopes: true, extension: true, runOnce: true });

const ROUTE = optionNames<RouteOptions>({ methods: true, scopes: true, public: true });

const CHANGED = { name: true, title: true, description: true, icons: true, meta: true };
/** What can be changed, by kind of feature. */
const CHANGES = {
  tool: optionNames<ToolChanges>({ ...CHANGED, annotations: true }),
  resource: optionNames<ResourceChanges>({ ...CHANGED, mimeType: true, size: true, annotations: true }),
  prompt: optionNames<DescriptionChanges>(CHANGED),
};
const SELECTION = optionNames<FeatureSelection>({ kinds: true, names: true, tags: true });
const SCOPE = optionNames<MiddlewareScope>({ methods: true, kinds: true, names: true, tags: true });
const MOUNT = optionNames<MountOptions>({ prefix: true, snapshot: true, tools: true });
const TRANSFORM = optionNames<ToolTransform>({
  name: true,
  title: true,
  description: true,
  tags: true,
  arguments: true,
});
const TRANSFORMED_ARGUMENT = optionNames<ArgumentTransform>({
  name: true,
  description: true,
  default: true,
  fixed: true,
  hidden: true,
});

/** Checks the changes of a definition. */
export function checkChanges(kind: keyof typeof CHANGES, name: unknown, changes: unknown): void {
  checkName(`the name of a ${kind}`, name);
  const where = `${kind} \`${name as string}\``;
  checkOptions(where, changes, CHANGES[kind]);
  checkDefinition(where, changes as object, kind === "tool" ? "tool" : "resource", true);
}

/** Checks a selection of features. */
export function checkSelection(selection: unknown): void {
  checkOptions("the selection", selection, SELECTION);
  checkLists("the selection", selection as object);
}

function isMiddleware(value: unknown): boolean {
  return typeof value === "function" || value instanceof BuiltInMiddleware;
}

/** Checks the arguments of `use`, and returns the scope and the middleware. */
export function checkMiddleware(given: readonly unknown[]): [scope: object, middleware: unknown] {
  const [scope, middleware] = given.length > 1 ? given : [{}, given[0]];
  const isSeveral = given.length > 2 || isMiddleware(scope);
  if (isSeveral) {
    throw new UsageError("`use` takes one middleware, after its scope if it has one: call it for each middleware");
  }
  if (!isMiddleware(middleware)) {
    const hint = given.length === 1 && isObject(middleware) ? ": pass it after the scope" : "";
    throw new UsageError(`\`use\`: the middleware must be a function, not ${typeName(middleware)}${hint}`);
  }
  if (typeof scope === "string") {
    throw new UsageError(`\`use\`: the scope must be an object, such as { methods: ["tools/call"] }, not string`);
  }
  checkOptions("the scope of a middleware", scope, SCOPE);
  checkLists("the scope of a middleware", scope as object);
  return [scope as object, middleware];
}

function checkObject(what: string, value: unknown): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`${what} must be an object, not ${typeName(value)}`);
  }
}

/** Checks the names in the changes of a tool. The core checks the rest. */
export function checkTransform(tool: unknown, transform: unknown): void {
  checkName("the name of a tool", tool);
  const what = `the change of tool \`${tool as string}\``;
  checkOptions(what, transform, TRANSFORM);
  const { arguments: changed = {} } = transform as ToolTransform;
  checkObject(`\`arguments\` of ${what}`, changed);
  for (const [name, change] of Object.entries(changed)) {
    checkOptions(`argument \`${name}\` of ${what}`, change, TRANSFORMED_ARGUMENT);
  }
}

/** Checks the options of a mount. */
export function checkMount(options: unknown): void {
  checkOptions("`mount`", options, MOUNT);
  const { prefix, snapshot, tools = {} } = options as Record<string, unknown>;
  if (prefix !== undefined) {
    checkName("`prefix` of `mount`", prefix);
  }
  if (snapshot !== undefined && typeof snapshot !== "boolean") {
    throw new UsageError(`\`snapshot\` of \`mount\` must be a boolean, not ${typeName(snapshot)}`);
  }
  checkObject("`tools` of `mount`", tools);
  for (const [name, transform] of Object.entries(tools as object)) {
    checkTransform(name, transform);
  }
}

/**
 * Checks the options of a server.
 *
 * @param others Further arguments of the constructor. Classes of other libraries take options as the second one.
 */
export function checkServer(options: unknown, others: readonly unknown[]): void {
  if (others.some((other) => other !== undefined)) {
    throw new UsageError(
      "the server: all options are in one object: `new Server({ name, version, instructions })`; capabilities follow from " +
        "what is registered",
    );
  }
  checkOptions("the server", options, SERVER);
  const { name, version, onError, onRequestEnd, logger, createContext } = options as Partial<ServerOptions>;
  const { tracing } = options as { tracing?: unknown };
  checkName("`name` of the server", name);
  checkName("`version` of the server", version);
  if (onError !== undefined && typeof onError !== "function") {
    throw new UsageError(`\`onError\` of the server must be a function, not ${typeName(onError)}`);
  }
  if (onRequestEnd !== undefined && typeof onRequestEnd !== "function") {
    throw new UsageError(`\`onRequestEnd\` of the server must be a function, not ${typeName(onRequestEnd)}`);
  }
  if (logger !== undefined && !isLogger(logger)) {
    throw new UsageError(`\`logger\` of the server must be an object with a method \`info\`, not ${typeName(logger)}`);
  }
  if (tracing !== undefined && typeof tracing !== "boolean") {
    throw new UsageError(`\`tracing\` of the server must be a boolean, not ${typeName(tracing)}`);
  }
  if (createContext !== undefined && typeof createContext !== "function") {
    throw new UsageError(`\`createContext\` of the server must be a function, not ${typeName(createContext)}`);
  }
}

/** Checks the registration of a tool. */
export function checkTool(name: unknown, options: unknown, handler: unknown): void {
  checkName("the name of a tool", name);
  const where = `tool \`${name as string}\``;
  if (isStandardSchema(options) || (isObject(options) && isShape(options))) {
    throw new UsageError(`${where}: pass the schema of the arguments as the option \`input\``);
  }
  checkOptions(where, options, TOOL);
  checkDefinition(where, options as object, "tool");
  checkHandler(where, handler);
}

/** Checks the registration of a resource. */
export function checkResource(uri: unknown, options: unknown, handler: unknown): void {
  checkName("the URI of a resource", uri);
  const where = `resource \`${uri as string}\``;
  checkOptions(where, options, RESOURCE);
  checkDefinition(where, options as object, "resource");
  checkName(`${where}: \`name\``, (options as Partial<ResourceOptions>).name);
  checkHandler(where, handler);
}

/** Checks the registration of a resource template. */
export function checkTemplate(uriTemplate: unknown, options: unknown, handler: unknown): void {
  checkName("the URI template", uriTemplate);
  const where = `resource template \`${uriTemplate as string}\``;
  checkOptions(where, options, TEMPLATE);
  checkDefinition(where, options as object, "resource");
  const { name, complete, list, uncheckedVariables } = options as Partial<ResourceTemplateOptions>;
  checkName(`${where}: \`name\``, name);
  if (list !== undefined) {
    checkHandler(`${where}: \`list\``, list);
  }
  const variables = variablesOf(uriTemplate as string);
  if (uncheckedVariables !== undefined) {
    checkUnchecked(`${where}: \`uncheckedVariables\``, uncheckedVariables, variables);
  }
  if (complete !== undefined) {
    checkCompleters(where, complete);
    for (const variable of Object.keys(complete)) {
      if (!variables.includes(variable)) {
        const list = variables.join(", ");
        throw new UsageError(
          `${where}: \`complete\` names no variable of the template: \`${variable}\`; it has ${list}`,
        );
      }
    }
  }
  checkHandler(where, handler);
}

/** Checks the registration of a prompt. */
export function checkPrompt(name: unknown, options: unknown, handler: unknown): void {
  checkName("the name of a prompt", name);
  const where = `prompt \`${name as string}\``;
  checkOptions(where, options, PROMPT);
  checkDefinition(where, options as object, "resource");
  const { arguments: given = {}, complete = {} } = options as PromptOptions;
  checkCompleters(where, complete);
  if (isSchemaOrShape(given)) {
    checkHandler(where, handler);
    return;
  }
  if (!isObject(given)) {
    throw new UsageError(
      `${where}: \`arguments\` must be an object of options by argument, such as { city: {} }, or a schema of a library`,
    );
  }
  for (const [argument, described] of Object.entries(given as Record<string, unknown>)) {
    const place = `${where}: argument \`${argument}\``;
    if (isStandardSchema(described)) {
      throw new UsageError(`${place} is a schema, but other arguments are not: pass a schema for each, or for none`);
    }
    checkOptions(place, described, ARGUMENT);
    checkCompleter(`${place}: \`complete\``, (described as PromptArgumentOptions).complete);
  }
  checkHandler(where, handler);
}

/** Checks the registration of a custom method. */
export function checkMethod(method: unknown, options: unknown, handler: unknown): void {
  checkName("the method", method);
  const where = `method \`${method as string}\``;
  checkOptions(where, options, METHOD);
  checkDefinition(where, options as object, "resource");
  checkHandler(where, handler);
}

/** Checks the registration of a route. */
export function checkRoute(path: unknown, options: unknown, handler: unknown): void {
  checkName("the path of a route", path);
  const where = `route \`${path as string}\``;
  checkOptions(where, options, ROUTE);
  checkDefinition(where, options as object, "resource");
  const { methods, public: isPublic } = options as RouteOptions;
  if (methods !== undefined && !(Array.isArray(methods) && methods.every((method) => typeof method === "string"))) {
    throw new UsageError(`${where}: \`methods\` must be an array of strings, such as ["POST"]`);
  }
  if (isPublic !== undefined && typeof isPublic !== "boolean") {
    throw new UsageError(`${where}: \`public\` must be a boolean, not ${typeName(isPublic)}`);
  }
  checkHandler(where, handler);
}

/** Whether an object is a shape of schemas, and names no option of a tool. */
function isShape(options: object): boolean {
  const members = Object.entries(options);
  return (
    members.length > 0 &&
    members.every(([name, member]) => isStandardSchema(member) && closestName(name, TOOL) === undefined)
  );
}

/** Whether a value is the schema of a library. */
function isStandardSchema(value: unknown): boolean {
  return Object(value) === value && "~standard" in (value as object);
}

function checkCompleters(where: string, complete: unknown): void {
  if (!isObject(complete)) {
    throw new UsageError(`${where}: \`complete\` must be an object of completions by name, not ${typeName(complete)}`);
  }
  for (const [name, completer] of Object.entries(complete as Record<string, unknown>)) {
    checkCompleter(`${where}: \`complete.${name}\``, completer);
  }
}

function checkCompleter(where: string, completer: unknown): void {
  const isList = Array.isArray(completer) && completer.every((candidate) => typeof candidate === "string");
  if (completer !== undefined && typeof completer !== "function" && !isList) {
    const given = Array.isArray(completer) ? "an array of other values" : typeName(completer);
    throw new UsageError(`${where} must be an array of strings or a function, not ${given}`);
  }
}

function checkUnchecked(where: string, given: unknown, variables: readonly string[]): void {
  if (!Array.isArray(given)) {
    throw new UsageError(`${where} must be an array of names of variables, not ${typeName(given)}`);
  }
  for (const variable of given as unknown[]) {
    if (typeof variable !== "string") {
      throw new UsageError(`${where} must be an array of names of variables; one is ${typeName(variable)}`);
    }
    if (!variables.includes(variable)) {
      const list = variables.join(", ");
      throw new UsageError(`${where} names no variable of the template: \`${variable}\`; it has ${list}`);
    }
  }
}

/** Returns the names of the variables of a URI template (RFC 6570, section 2.3). */
function variablesOf(template: string): string[] {
  const expressions = template.match(/\{[^{}]*\}/g) ?? [];
  return expressions.flatMap((expression) =>
    expression
      .slice(1, -1)
      .replace(/^[+#./;?&=,!@|]/, "")
      .split(",")
      .map((variable) => variable.replace(/(?:\*|:\d+)$/, "")),
  );
}
