/** Options of a server's features, and the types of their handlers. */

import type { Context } from "./context.js";
import type { PartialContents } from "./content.js";
import type { ExtendedResult } from "./extension.js";
import type { InputRequired } from "./input_requests.js";
import type {
  Annotations,
  CallToolResult,
  CompleteParams,
  CompletionValues,
  ContentBlock,
  GetPromptResult,
  Icon,
  Meta,
  PromptMessage,
  ReadResourceResult,
  Resource,
  ToolAnnotations,
} from "./protocol.js";
import type { SchemaOutput, SchemaOutputObject, SchemaInput, Schema, SchemaShape, StandardSchema } from "./schemas.js";
import type { CacheHint, Rate } from "./settings.js";
import type { ToolResult } from "./tool_result.js";

/** A type that is not inferred from this place, as with `NoInfer` of TypeScript 5.4. */
type Fixed<T> = [T][T extends unknown ? 0 : never];

/** A value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>;

/**
 * Return value of a tool's handler without an output schema. Values other than content and results are returned as JSON
 * text.
 */
export type ToolReturn =
  | string
  | ContentBlock
  | readonly (string | ContentBlock)[]
  | ToolResult
  | Partial<CallToolResult>
  | InputRequired
  | number
  | boolean
  | object
  | null
  | undefined
  | void;

/**
 * Return value of a resource's handler: text, bytes, contents, an array of contents, or the complete result. Any other
 * value is written as JSON.
 */
export type ResourceReturn =
  | string
  | Uint8Array
  | PartialContents
  | readonly PartialContents[]
  | ReadResourceResult
  | InputRequired
  | ExtendedResult
  | object;

/** Return value of a prompt's handler: text or content of a user message, messages, or the complete result. */
export type PromptReturn =
  | string
  | ContentBlock
  | PromptMessageOptions
  | readonly (string | ContentBlock | PromptMessageOptions)[]
  | GetPromptResult
  | InputRequired
  | ExtendedResult;

/** A message of a prompt, whose content may be a string or an array. */
export interface PromptMessageOptions {
  /** Author of the message. */
  role: PromptMessage["role"];
  /** A string, a content block, or an array of these. */
  content: string | ContentBlock | readonly (string | ContentBlock)[];
}

/** Return value of a completion's handler: the candidates, best first. */
export type CompletionReturn = readonly string[] | CompletionValues | null | undefined;

/**
 * Candidates for an argument: an array, which is ranked by the text typed so far, or a function that returns them.
 *
 * @typeParam Names Names of the arguments or variables that the request may contain.
 */
export type Completer<Names extends string = string, Ctx = Context> =
  readonly string[] | ((value: string, ctx: Ctx, params: CompleteParams<Names>) => Awaitable<CompletionReturn>);

/** Completions of arguments or variables, by name. */
export type Completers<Names extends string = string, Ctx = Context> = Readonly<
  Partial<Record<Names, Completer<Names, Ctx>>>
>;

/** Return value of the function that lists resources of a template: resources or URIs, or the complete result. */
export type ResourceListReturn =
  readonly (string | Resource)[] | { resources: readonly (string | Resource)[] } | null | undefined;

/** Options of every feature. */
export interface FeatureDescription {
  /** Display name. */
  title?: string;
  /** Description for the model. */
  description?: string;
  /** Icons to display. */
  icons?: Icon[];
  /** `_meta` of the definition. */
  meta?: Meta;
  /**
   * Scopes that a caller over HTTP needs, all of them, if {@link HttpSettings.auth} is set. The feature is hidden from
   * other callers, and their calls are refused with the missing scopes (2025-11-25, `basic/authorization`, step-up).
   */
  scopes?: readonly string[];
  /** Words by which {@link Server.enable} and {@link Server.disable} select the feature. They are not sent to clients. */
  tags?: readonly string[];
}

/** What {@link Server.updateTool} changes. `null` removes a value; what is absent stays. */
export interface ToolChanges extends DescriptionChanges {
  /** Hints about the tool's behaviour. They replace all earlier ones. */
  annotations?: ToolAnnotations | null;
}

/** What {@link Server.updateResource} changes. `null` removes a value; what is absent stays. */
export interface ResourceChanges extends DescriptionChanges {
  /** Media type that lists show. The contents keep theirs. */
  mimeType?: string | null;
  /** Size of the contents in bytes. Resources only. */
  size?: number | null;
  /** Audience, priority and time of the last change. They replace all earlier ones. */
  annotations?: Annotations | null;
}

/** What {@link Server.updatePrompt} changes. `null` removes a value; what is absent stays. */
export interface DescriptionChanges {
  /** Another name. */
  name?: string;
  /** Display name. */
  title?: string | null;
  /** Description for the model. */
  description?: string | null;
  /** Icons to display. They replace all earlier ones. */
  icons?: Icon[] | null;
  /** `_meta` of the definition. */
  meta?: Meta | null;
}

/**
 * Tools, resources, resource templates and prompts. A feature is selected if it matches each of the criteria that are
 * given; without criteria, every feature is, and with an empty array none.
 */
export interface FeatureSelection {
  /** Kinds of features; resources include templates. */
  kinds?: readonly ("tool" | "resource" | "prompt")[];
  /** Names of tools and prompts, URIs of resources and templates. */
  names?: readonly string[];
  /** Tags of which a feature has at least one. */
  tags?: readonly string[];
}

/** Options of {@link Server.mount}. */
export interface MountOptions {
  /**
   * With `work`, the tool or prompt `search` becomes `work_search`, and the resource `note://{id}` becomes
   * `note://work/{id}`. 1 to 64 of A-Z, a-z, 0-9, `_`, `-` and `.`. Default: names stay the same.
   */
  prefix?: string;
  /** Add only what the mounted server has now. Default: `false`. */
  snapshot?: boolean;
  /** Changes of tools, by the names that these have at the mounted server; see {@link Server.transformTool}. */
  tools?: Readonly<Record<string, ToolTransform>>;
}

/** What {@link Server.transformTool} and {@link MountOptions.tools} change. What is absent stays. */
export interface ToolTransform {
  /** Another name. The prefix of a mount is put before it. */
  name?: string;
  /** Another display name. */
  title?: string;
  /** Another description for the model. */
  description?: string;
  /** Other tags. */
  tags?: readonly string[];
  /** Changes of arguments, by the names that these have now. */
  arguments?: Readonly<Record<string, ArgumentTransform>>;
}

/** What {@link ToolTransform} changes of one argument. */
export interface ArgumentTransform {
  /** Another name. */
  name?: string;
  /** Another description for the model. */
  description?: string;
  /** The JSON value for calls without the argument, which becomes optional. */
  default?: unknown;
  /** The JSON value for all calls. Clients do not see the argument and cannot send it. */
  fixed?: unknown;
  /** Clients do not see the argument and cannot send it. The handler is called without it, so the argument must be optional. */
  hidden?: boolean;
}

/** Options of a tool. */
export interface ToolOptions<
  I extends Schema | undefined = Schema,
  O extends Schema | undefined = Schema,
> extends FeatureDescription {
  /** Schema of the arguments, an object. Default: no arguments. */
  input?: I;
  /**
   * Schema of the structured content. Default: none. The schema of a library is applied to what the handler returns: the
   * client gets the value with its defaults and transformations, and the tool's `outputSchema` describes that.
   */
  output?: O;
  /** Hints about the tool's behaviour. */
  annotations?: ToolAnnotations;
  /**
   * Never run the handler twice for one request. A retry that reaches another process is refused instead of replayed
   * (2026-07-28). Default: `false`.
   */
  runOnce?: boolean;
  /**
   * How many milliseconds a call may take. When they are over, the client gets a tool error that says so, and `ctx.signal` is
   * aborted as if the client had cancelled the request; what the handler returns or throws later is dropped. The time in which
   * one of the handler's input requests is open (`ctx.elicit`, …) does not count. Default: no limit.
   */
  timeout?: number;
  /** Rate limit for all clients together. Default: the server's `toolRate`. */
  rate?: Rate;
}

/** Options of a resource. */
export interface ResourceOptions extends FeatureDescription {
  /** Name for programs. */
  name: string;
  /** Media type of the contents. Default for strings: `text/plain`. */
  mimeType?: string;
  /** Size of the contents in bytes. */
  size?: number;
  /** Audience, priority and time of the last change. */
  annotations?: Annotations;
  /**
   * How long clients may cache the contents, and whether shared caches may (2026-07-28). With `scopes`, only the client
   * may. Default: `resourceCache` of the server's settings.
   */
  cache?: CacheHint;
}

/**
 * Options of a resource template.
 *
 * @typeParam Names Names of the template's variables.
 */
export interface ResourceTemplateOptions<Names extends string = string, Ctx = Context> extends FeatureDescription {
  /** Name for programs. */
  name: string;
  /** Media type of the contents. Default for strings: `text/plain`. */
  mimeType?: string;
  /** Audience, priority and time of the last change. */
  annotations?: Annotations;
  /**
   * How long clients may cache the contents, and whether shared caches may (2026-07-28). With `scopes`, only the client
   * may. Default: `resourceCache` of the server's settings.
   */
  cache?: CacheHint;
  /** Completions of its variables, by name. */
  complete?: Completers<Names, Ctx>;
  /**
   * Lists resources of the template. They follow the registered resources in `resources/list`, on its last page. Those
   * that do not match the template, or that are registered, are left out. The function is called for each request of a
   * client that may use the template, and its error is that of the request. Call
   * {@link Server.notifyResourceListChanged} when its result changes.
   */
  list?: (ctx: Ctx) => Awaitable<ResourceListReturn>;
  /**
   * Variables that may have any value. A URI in which another variable contains a `..` segment, an absolute path or the
   * character NUL is answered with an error, and the handler is not called: joined to a directory, such a value names a
   * file outside of it. Default: none.
   */
  uncheckedVariables?: readonly Names[];
}

/** Options of the resource or the resource template that a URI names, by its literal type. */
export type OptionsOfUri<Uri extends string, Ctx = Context> = OptionsOf<Fixed<Uri>, Ctx>;

type OptionsOf<Uri extends string, Ctx> = string extends Uri
  ? ResourceOptions | ResourceTemplateOptions<string, Ctx>
  : Uri extends `${string}{${string}}${string}`
    ? ResourceTemplateOptions<VariableNamesOf<Uri>, Ctx>
    : ResourceOptions;

/** Options of a prompt's argument. */
export interface PromptArgumentOptions {
  /** Display name. */
  title?: string;
  /** Description. */
  description?: string;
  /** Whether the argument must be given. Default: `true`. */
  required?: boolean;
  /** Completions of the argument. */
  complete?: Completer;
}

/** The arguments of a prompt: options by name, or the schema of an object. */
export type PromptArguments = Readonly<Record<string, PromptArgumentOptions>> | StandardSchema | SchemaShape;

/** Refuses unknown options of arguments. */
type KnownOptions<A> = {
  readonly [Name in keyof A]: A[Name] extends StandardSchema
    ? unknown
    : Readonly<Partial<Record<Exclude<keyof A[Name], keyof PromptArgumentOptions>, never>>>;
};

/** Options of a prompt. */
export interface PromptOptions<A extends PromptArguments = PromptArguments, Ctx = Context> extends FeatureDescription {
  /**
   * The arguments: their options by name, or a schema of a library, such as `z.object({ city: z.string() })` or its shape
   * `{ city: z.string() }`. The protocol transmits strings: a schema has to accept them (`z.coerce.number()`). Titles,
   * descriptions and whether arguments are required follow from the schema.
   */
  arguments?: A extends StandardSchema
    ? A
    : A & (SchemaShape | Readonly<Record<string, PromptArgumentOptions>>) & KnownOptions<A>;
  /** Completions of the arguments, by name. */
  complete?: Completers<NamesOfArguments<Fixed<A>>, Ctx>;
}

/** Options of a handler of custom requests or notifications. */
export interface MethodOptions<P extends Schema | undefined = Schema> {
  /**
   * Schema of `params`, an object. Default: any object. Requests that do not match are refused with -32602;
   * notifications are dropped with a warning.
   */
  params?: P;
  /**
   * Scopes that a caller over HTTP needs, all of them, if {@link HttpSettings.auth} is set. Requests of other callers
   * are refused with the missing scopes (2025-11-25, `basic/authorization`, step-up); notifications are dropped with a
   * warning.
   */
  scopes?: readonly string[];
  /**
   * Identifier of one of the server's extensions, to which the method belongs. Clients that do not declare it are
   * refused with -32021. See {@link Extension.onRequest}.
   */
  extension?: string;
  /**
   * Never run the handler twice for one request. A retry that reaches another process is refused instead of replayed
   * (2026-07-28). Default: `false`.
   */
  runOnce?: boolean;
}

/** Return value of a custom request's handler: an object, which becomes the result. */
export type RequestReturn = object | InputRequired | null | undefined | void;

/** The arguments of a prompt without arguments. */
export type NoArguments = Record<never, PromptArgumentOptions>; // eslint-disable-line @typescript-eslint/no-generated-empty-object-type

/** The argument of a prompt's handler: the values of the prompt's arguments, by name. */
export type PromptArgumentValues<A> = A extends StandardSchema | SchemaShape
  ? [keyof A] extends [never]
    ? StringsOf<A>
    : SchemaOutput<A>
  : StringsOf<A>;

type StringsOf<A> = {
  [Name in keyof A as A[Name] extends { readonly required: false } ? never : Name]: string;
} & {
  [Name in keyof A as A[Name] extends { readonly required: false } ? Name : never]?: string;
};

/** Names of a prompt's arguments. */
export type NamesOfArguments<A> = (A extends StandardSchema<infer Input> ? keyof Input : keyof A) & string;

/** Type of the arguments of a handler, by the schema of its input. */
export type ArgumentsOf<I> = [I] extends [Schema] ? SchemaOutputObject<I> : Record<string, never>;

/** The type of a custom method's `params`. */
export type ParamsOf<P> = [P] extends [Schema] ? SchemaOutputObject<P> : Record<string, unknown>;

/** Return value of a tool's handler, by the schema of its output. */
// The members outside the condition give literals in handlers their types.
export type ReturnOf<O> =
  | CallToolResult
  | InputRequired
  | ExtendedResult
  | ([O] extends [Schema] ? SchemaInput<O> | ToolResult<SchemaInput<O>> : ToolReturn);

declare const literals: unique symbol;

/**
 * Lets literals in a handler's return value keep their types: `{ unit: "C" }` is not widened to `{ unit: string }` while
 * the output schema is inferred. No value has this type.
 */
export interface Literals<Literal> {
  readonly [literals]: never;
  readonly [name: string]: LiteralTree<Literal>;
}
type LiteralTree<Literal> =
  Literal | { readonly [name: string]: LiteralTree<Literal> } | readonly LiteralTree<Literal>[];

/**
 * The variables of a URI template, which handlers of resources receive: strings, and arrays of exploded ones.
 * Those of an expression with one of the operators `#./;?&` may be missing.
 */
export type VariablesOf<Template extends string> = string extends Template
  ? Record<string, string | string[]>
  : ValuesOf<ExpressionsOf<Template>>;

/** The names of a URI template's variables. */
export type VariableNamesOf<Template extends string> = string extends Template
  ? string
  : keyof VariablesOf<Template> & string;

type ValuesOf<Expression extends string> = {
  [Variable in VariableOf<RequiredOf<Expression>> as NameOf<Variable>]: ValueOf<Variable>;
} & {
  [Variable in VariableOf<OptionalOf<Expression>> as NameOf<Variable>]?: ValueOf<Variable>;
};

/** The expressions of a template, without braces. */
type ExpressionsOf<Template extends string> = Template extends `${string}{${infer Expression}}${infer Rest}`
  ? Expression | ExpressionsOf<Rest>
  : never;
type OptionalOf<Expression extends string> = Expression extends `${"#" | "." | "/" | ";" | "?" | "&"}${infer List}`
  ? List
  : never;
type RequiredOf<Expression extends string> = Expression extends `${"#" | "." | "/" | ";" | "?" | "&"}${string}`
  ? never
  : Expression extends `+${infer List}`
    ? List
    : Expression;
/** The variables of an expression, with their modifiers. */
type VariableOf<List extends string> = List extends `${infer One},${infer Rest}` ? One | VariableOf<Rest> : List;
type NameOf<Variable extends string> = Variable extends `${infer Name}*`
  ? Name
  : Variable extends `${infer Name}:${string}`
    ? Name
    : Variable;
type ValueOf<Variable extends string> = Variable extends `${string}*` ? string[] : string;
