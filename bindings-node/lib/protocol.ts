/**
 * Types of the protocol, as on the wire: the union of all revisions.
 *
 * Members that a client's or server's revision lacks are omitted or converted for this peer. Names and meanings are
 * those of the specification's schema (2026-07-28).
 */

/** Any JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** A JSON Schema; draft 2020-12 unless `$schema` names another. */
export type JsonSchema = Readonly<Record<string, unknown>> | TypedJsonSchema;

/**
 * A JSON Schema with a declared type, such as `JSONSchema7` or a schema of TypeBox. It is a `Record<string, unknown>` too, because
 * it is a type and not an interface.
 */
export type TypedJsonSchema = Readonly<Partial<Record<SchemaKeyword, unknown>>>;

type SchemaKeyword =
  | `$${"schema" | "id" | "ref" | "anchor" | "dynamicRef" | "dynamicAnchor" | "vocabulary" | "comment" | "defs"}`
  | "definitions"
  | "type"
  | "const"
  | "enum"
  | "title"
  | "description"
  | "default"
  | "examples"
  | "deprecated"
  | "readOnly"
  | "writeOnly"
  | "allOf"
  | "anyOf"
  | "oneOf"
  | "not"
  | "if"
  | "then"
  | "else"
  | "properties"
  | "patternProperties"
  | "additionalProperties"
  | "unevaluatedProperties"
  | "propertyNames"
  | "required"
  | "dependentRequired"
  | "dependentSchemas"
  | "dependencies"
  | "minProperties"
  | "maxProperties"
  | "items"
  | "prefixItems"
  | "additionalItems"
  | "unevaluatedItems"
  | "contains"
  | "minContains"
  | "maxContains"
  | "minItems"
  | "maxItems"
  | "uniqueItems"
  | "minimum"
  | "maximum"
  | "exclusiveMinimum"
  | "exclusiveMaximum"
  | "multipleOf"
  | "minLength"
  | "maxLength"
  | "pattern"
  | "format"
  | "contentEncoding"
  | "contentMediaType"
  | "contentSchema";

/** A revision of the protocol. */
export type Revision = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28";

/** A kind of transport. */
export type TransportKind = "stdio" | "unix" | "lines" | "memory" | "http" | "http+sse";

/** Severity of a log message (RFC 5424). */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** `_meta`: additional members. Prefix your own names with a domain. */
export type Meta = Record<string, unknown>;

/** Author of a message. */
export type Role = "user" | "assistant";

/** An icon. */
export interface Icon {
  /** URL of the image: `https:` or `data:`. */
  src: string;
  /** Media type of the image. */
  mimeType?: string;
  /** Sizes for which it is suitable, such as `48x48` or `any`. */
  sizes?: string[];
  /** Theme for which it is designed. */
  theme?: "light" | "dark";
}

/** Annotations of content or of a resource. */
export interface Annotations {
  /** Intended audience. */
  audience?: Role[];
  /** Importance, from 0 (optional) to 1 (required). */
  priority?: number;
  /** Time of the last change, in ISO 8601. */
  lastModified?: string;
}

/** Text content. */
export interface TextContent {
  type: "text";
  text: string;
  annotations?: Annotations;
  _meta?: Meta;
}

/** Image content. */
export interface ImageContent {
  type: "image";
  /** The image in base64. */
  data: string;
  mimeType: string;
  annotations?: Annotations;
  _meta?: Meta;
}

/** Audio content. */
export interface AudioContent {
  type: "audio";
  /** The audio in base64. */
  data: string;
  mimeType: string;
  annotations?: Annotations;
  _meta?: Meta;
}

/** A link to a resource. */
export interface ResourceLink {
  type: "resource_link";
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** Size of the contents in bytes. */
  size?: number;
  icons?: Icon[];
  annotations?: Annotations;
  _meta?: Meta;
}

/** Contents of a resource, as text. */
export interface TextResourceContents {
  uri: string;
  mimeType?: string;
  text: string;
  _meta?: Meta;
}

/** Contents of a resource, as bytes. */
export interface BlobResourceContents {
  uri: string;
  mimeType?: string;
  /** The bytes in base64. */
  blob: string;
  _meta?: Meta;
}

/** Contents of a resource. */
export type ResourceContents = TextResourceContents | BlobResourceContents;

/** The contents of a resource, embedded in a result. */
export interface EmbeddedResource {
  type: "resource";
  resource: ResourceContents;
  annotations?: Annotations;
  _meta?: Meta;
}

/** A content block. */
export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

/** Hints about a tool's behaviour. Do not rely on them unless you trust the server. */
export interface ToolAnnotations {
  /** Display name. */
  title?: string;
  /** The tool does not modify its environment. */
  readOnlyHint?: boolean;
  /** The tool may perform destructive updates. */
  destructiveHint?: boolean;
  /** Repeated calls with the same arguments have no additional effect. */
  idempotentHint?: boolean;
  /** The tool interacts with external entities. */
  openWorldHint?: boolean;
}

/** A tool of a server (`server/tools`). */
export interface Tool {
  /** Name for calls. */
  name: string;
  /** Display name. */
  title?: string;
  /** Description for the model. */
  description?: string;
  /** JSON Schema of the arguments. */
  inputSchema: JsonSchema;
  /** JSON Schema of the structured content. */
  outputSchema?: JsonSchema;
  /** Hints about the tool's behaviour. */
  annotations?: ToolAnnotations;
  icons?: Icon[];
  _meta?: Meta;
}

/** A resource of a server (`server/resources`). */
export interface Resource {
  /** URI of the resource. */
  uri: string;
  /** Name for programs. */
  name: string;
  /** Display name. */
  title?: string;
  description?: string;
  /** Media type of the contents. */
  mimeType?: string;
  /** Size of the contents in bytes. */
  size?: number;
  annotations?: Annotations;
  icons?: Icon[];
  _meta?: Meta;
}

/** A resource template of a server (`server/resources`). */
export interface ResourceTemplate {
  /** URI template (RFC 6570). */
  uriTemplate: string;
  /** Name for programs. */
  name: string;
  /** Display name. */
  title?: string;
  description?: string;
  /** Media type of the contents, if all resources have the same. */
  mimeType?: string;
  annotations?: Annotations;
  icons?: Icon[];
  _meta?: Meta;
}

/** An argument of a prompt. */
export interface PromptArgument {
  name: string;
  title?: string;
  description?: string;
  /** Whether the argument must be given. */
  required?: boolean;
}

/** A prompt of a server (`server/prompts`). */
export interface Prompt {
  /** Name for requests. */
  name: string;
  /** Display name. */
  title?: string;
  description?: string;
  arguments?: PromptArgument[];
  icons?: Icon[];
  _meta?: Meta;
}

/** A message of a prompt. */
export interface PromptMessage {
  role: Role;
  content: ContentBlock;
}

/** The result of a tool call. */
export interface CallToolResult {
  content: ContentBlock[];
  /** Structured content: any JSON value, as described by the tool's output schema. */
  structuredContent?: unknown;
  /** Whether the tool failed. The content describes the failure for the model. */
  isError?: boolean;
  _meta?: Meta;
}

/** The contents of a resource. */
export interface ReadResourceResult {
  contents: ResourceContents[];
  /** Cache lifetime in milliseconds (2026-07-28). */
  ttlMs?: number;
  /** Whether shared caches may store the result (2026-07-28). */
  cacheScope?: "public" | "private";
  _meta?: Meta;
}

/** A prompt with its arguments filled in. */
export interface GetPromptResult {
  description?: string;
  messages: PromptMessage[];
  _meta?: Meta;
}

/** Completions of an argument. At most 100 values are sent. */
export interface CompletionValues {
  /** The candidates, best first. */
  values: string[];
  /** Total number of candidates, if known. */
  total?: number;
  /** Whether there are more candidates. */
  hasMore?: boolean;
}

/** The prompt or resource template whose argument is completed. */
export type CompletionReference =
  { type: "ref/prompt"; name: string; title?: string } | { type: "ref/resource"; uri: string };

/**
 * Parameters of `completion/complete`.
 *
 * @typeParam Names Names of the arguments or variables.
 */
export interface CompleteParams<Names extends string = string> {
  ref: CompletionReference;
  /** Name of the argument or variable, and the text typed so far. */
  argument: { name: Names; value: string };
  /** Other arguments given so far. */
  context?: { arguments?: Partial<Record<Names, string>> };
}

/** Name and version of a client or server. */
export interface Implementation {
  /** Name for programs. */
  name: string;
  version: string;
  /** Display name. */
  title?: string;
  /** Purpose of the client or server. */
  description?: string;
  /** Home page. */
  websiteUrl?: string;
  icons?: Icon[];
}

/** Capabilities of a client. */
export interface ClientCapabilities {
  elicitation?: { form?: object; url?: object };
  sampling?: { context?: object; tools?: object };
  roots?: { listChanged?: boolean };
  experimental?: Record<string, object>;
  extensions?: Record<string, object>;
  [name: string]: unknown;
}

/** Capabilities of a server. */
export interface ServerCapabilities {
  tools?: { listChanged?: boolean };
  resources?: { listChanged?: boolean; subscribe?: boolean };
  prompts?: { listChanged?: boolean };
  completions?: object;
  logging?: object;
  experimental?: Record<string, object>;
  extensions?: Record<string, object>;
  [name: string]: unknown;
}

/** A root directory or file of the client (`client/roots`). */
export interface Root {
  /** A `file://` URI. */
  uri: string;
  /** Display name. */
  name?: string;
  _meta?: Meta;
}

/** A tool call requested by a model (2025-11-25). */
export interface ToolUseContent {
  type: "tool_use";
  id: string;
  name: string;
  input: Record<string, unknown>;
  _meta?: Meta;
}

/** The result of a tool call, for a model (2025-11-25). */
export interface ToolResultContent {
  type: "tool_result";
  toolUseId: string;
  content: ContentBlock[];
  structuredContent?: unknown;
  isError?: boolean;
  _meta?: Meta;
}

/** Content of a message to or from a model. */
export type SamplingContent = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent;

/** A message to or from a model. */
export interface SamplingMessage {
  role: Role;
  content: SamplingContent | SamplingContent[];
  _meta?: Meta;
}

/** A server's preferences for the choice of a model. */
export interface ModelPreferences {
  /** Names of preferred models, best first. */
  hints?: { name?: string }[];
  /** Importance of low cost, from 0 to 1. */
  costPriority?: number;
  /** Importance of speed, from 0 to 1. */
  speedPriority?: number;
  /** Importance of capability, from 0 to 1. */
  intelligencePriority?: number;
}

/** Parameters of a sampling request, `sampling/createMessage`. */
export interface CreateMessageParams {
  /** The conversation. */
  messages: SamplingMessage[];
  /** Maximum number of tokens to generate. */
  maxTokens: number;
  /** System prompt. */
  systemPrompt?: string;
  /** Preferences for the choice of a model. */
  modelPreferences?: ModelPreferences;
  /** Context of MCP servers to include. */
  includeContext?: "none" | "thisServer" | "allServers";
  /** Sampling temperature. */
  temperature?: number;
  /** Sequences that stop the generation. */
  stopSequences?: string[];
  /** Metadata for the model provider. */
  metadata?: object;
  /** Tools that the model may call (2025-11-25). */
  tools?: Tool[];
  /** Whether the model has to call tools (2025-11-25). */
  toolChoice?: { mode?: "auto" | "required" | "none" };
}

/** The result of a sampling request. */
export interface CreateMessageResult {
  role: Role;
  content: SamplingContent | SamplingContent[];
  /** Name of the model. */
  model: string;
  /** Why the model stopped, such as `endTurn`. */
  stopReason?: string;
  _meta?: Meta;
}

/** The user's response to an elicitation. */
export type ElicitAction = "accept" | "decline" | "cancel";

/** Parameters of an elicitation (`client/elicitation`): a form, or a URL to open. */
export type ElicitParams = ElicitFormParams | ElicitUrlParams;

/** Parameters of an elicitation with a form. */
export interface ElicitFormParams {
  mode: "form";
  /** Message to the user. */
  message: string;
  /** JSON Schema of the form: an object with fields of primitive types. */
  requestedSchema: JsonSchema;
  url?: undefined;
  elicitationId?: undefined;
  _meta?: Meta;
}

/** Parameters of a URL elicitation (2025-11-25). */
export interface ElicitUrlParams {
  mode: "url";
  /** Message to the user. */
  message: string;
  requestedSchema?: undefined;
  /** The URL to open. */
  url: string;
  /** Id under which the server reports the completion. */
  elicitationId?: string;
  _meta?: Meta;
}

/** The result of an elicitation. */
export interface ElicitAnswer {
  action: ElicitAction;
  /** The content of the form. */
  content?: Record<string, unknown>;
  _meta?: Meta;
}

/** The result of `completion/complete`. */
export interface CompleteResult {
  completion: CompletionValues;
  _meta?: Meta;
}

/** A log message of a server (`server/utilities/logging`). */
export interface LogMessage {
  level: LogLevel;
  /** Name of the logger. */
  logger?: string;
  /** The message: any JSON value. */
  data: unknown;
  _meta?: Meta;
}

/** A notification of a server. */
export interface Notification {
  method: string;
  params: Record<string, unknown>;
}

/**
 * A result that requests input, returned only with {@link RequestOptions.manualResults} (2026-07-28, `basic/patterns/mrtr`).
 */
export interface InputRequiredResult {
  resultType: "input_required";
  /** The input requests of the server, by key. */
  inputRequests?: Record<string, { method: string; params?: Record<string, unknown> }>;
  /** State to return with the responses. */
  requestState?: string;
  _meta?: Meta;
}
