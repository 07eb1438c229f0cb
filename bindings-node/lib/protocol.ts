/**
 * The protocol's own types, as they are on the wire: the union of all revisions.
 *
 * Members that a revision doesn't know are left out, or put in other words, toward clients of that revision. Names and
 * meanings are those of the specification's schema (2026-07-28).
 */

/** Any JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** A JSON Schema, of draft 2020-12 unless it says otherwise. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The revisions of the protocol. */
export type Revision = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28";

/** How severe a log message is (RFC 5424). */
export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** `_meta`: whatever else is to be told; names of one's own have a prefix with a domain. */
export type Meta = Record<string, unknown>;

/** Who says something. */
export type Role = "user" | "assistant";

/** An icon. */
export interface Icon {
  src: string;
  mimeType?: string;
  sizes?: string[];
  theme?: "light" | "dark";
}

/** Whom content is for, how much it matters, and when it changed. */
export interface Annotations {
  audience?: Role[];
  /** From 0 (optional) to 1 (required). */
  priority?: number;
  /** An ISO 8601 date and time. */
  lastModified?: string;
}

/** Text. */
export interface TextContent {
  type: "text";
  text: string;
  annotations?: Annotations;
  _meta?: Meta;
}

/** A picture; `data` is base64. */
export interface ImageContent {
  type: "image";
  data: string;
  mimeType: string;
  annotations?: Annotations;
  _meta?: Meta;
}

/** Sound; `data` is base64. */
export interface AudioContent {
  type: "audio";
  data: string;
  mimeType: string;
  annotations?: Annotations;
  _meta?: Meta;
}

/** A resource that is referred to. */
export interface ResourceLink {
  type: "resource_link";
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
  icons?: Icon[];
  annotations?: Annotations;
  _meta?: Meta;
}

/** Contents of a resource that are text. */
export interface TextResourceContents {
  uri: string;
  mimeType?: string;
  text: string;
  _meta?: Meta;
}

/** Contents of a resource that are bytes; `blob` is base64. */
export interface BlobResourceContents {
  uri: string;
  mimeType?: string;
  blob: string;
  _meta?: Meta;
}

/** Contents of a resource. */
export type ResourceContents = TextResourceContents | BlobResourceContents;

/** A resource within content. */
export interface EmbeddedResource {
  type: "resource";
  resource: ResourceContents;
  annotations?: Annotations;
  _meta?: Meta;
}

/** One piece of content. */
export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

/** Hints on what a tool does; never to be trusted of a server that isn't. */
export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** A tool, as a client sees it. */
export interface Tool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: ToolAnnotations;
  icons?: Icon[];
  _meta?: Meta;
}

/** A resource, as a client sees it. */
export interface Resource {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** In bytes. */
  size?: number;
  annotations?: Annotations;
  icons?: Icon[];
  _meta?: Meta;
}

/** A resource template (RFC 6570), as a client sees it. */
export interface ResourceTemplate {
  uriTemplate: string;
  name: string;
  title?: string;
  description?: string;
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
  required?: boolean;
}

/** A prompt, as a client sees it. */
export interface Prompt {
  name: string;
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

/** What calling a tool gives. */
export interface CallToolResult {
  content: ContentBlock[];
  /** Any JSON value; what the tool's output schema describes. */
  structuredContent?: unknown;
  /** Whether the tool failed, in a way that the model should read in `content`. */
  isError?: boolean;
  _meta?: Meta;
}

/** What reading a resource gives. */
export interface ReadResourceResult {
  contents: ResourceContents[];
  /** How long it may be kept, in ms (2026-07-28). */
  ttlMs?: number;
  /** Whether others may be given what was kept (2026-07-28). */
  cacheScope?: "public" | "private";
  _meta?: Meta;
}

/** What getting a prompt gives. */
export interface GetPromptResult {
  description?: string;
  messages: PromptMessage[];
  _meta?: Meta;
}

/** Candidates for an argument; at most 100 reach a client. */
export interface CompletionValues {
  values: string[];
  total?: number;
  hasMore?: boolean;
}

/** What is to be completed: a prompt's argument, or a resource template's variable. */
export type CompletionReference =
  { type: "ref/prompt"; name: string; title?: string } | { type: "ref/resource"; uri: string };

/** The parameters of `completion/complete`. */
export interface CompleteParams {
  ref: CompletionReference;
  argument: { name: string; value: string };
  /** What the user has chosen for other arguments. */
  context?: { arguments?: Record<string, string> };
}

/** A program that speaks the protocol. */
export interface Implementation {
  name: string;
  version: string;
  title?: string;
  description?: string;
  websiteUrl?: string;
  icons?: Icon[];
}

/** What a client can do. */
export interface ClientCapabilities {
  elicitation?: { form?: object; url?: object };
  sampling?: { context?: object; tools?: object };
  roots?: { listChanged?: boolean };
  experimental?: Record<string, object>;
  extensions?: Record<string, object>;
  [name: string]: unknown;
}

/** What a server can do. */
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

/** A root directory or file of the client's. */
export interface Root {
  /** A `file:` URI. */
  uri: string;
  name?: string;
  _meta?: Meta;
}

/** A model's wish to call a tool (2025-11-25). */
export interface ToolUseContent {
  type: "tool_use";
  id: string;
  name: string;
  input: Record<string, unknown>;
  _meta?: Meta;
}

/** What a tool gave that a model wished to call (2025-11-25). */
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

/** Which model is wished for. */
export interface ModelPreferences {
  hints?: { name?: string }[];
  /** From 0 to 1. */
  costPriority?: number;
  /** From 0 to 1. */
  speedPriority?: number;
  /** From 0 to 1. */
  intelligencePriority?: number;
}

/** The parameters of `sampling/createMessage`. */
export interface CreateMessageParams {
  messages: SamplingMessage[];
  /** At most so many tokens. */
  maxTokens: number;
  systemPrompt?: string;
  modelPreferences?: ModelPreferences;
  includeContext?: "none" | "thisServer" | "allServers";
  temperature?: number;
  stopSequences?: string[];
  metadata?: object;
  /** Tools that the model may wish to call (2025-11-25). */
  tools?: Tool[];
  toolChoice?: { mode?: "auto" | "required" | "none" };
}

/** What a model said. */
export interface CreateMessageResult {
  role: Role;
  content: SamplingContent | SamplingContent[];
  model: string;
  stopReason?: string;
  _meta?: Meta;
}

/** What became of a question to the user. */
export type ElicitAction = "accept" | "decline" | "cancel";

/** A question to the user (`client/elicitation`): a form, or a page to visit. */
export type ElicitParams = ElicitFormParams | ElicitUrlParams;

/** A form for the user to fill in. */
export interface ElicitFormParams {
  mode: "form";
  message: string;
  /** The schema of the form: an object with properties of plain types. */
  requestedSchema: JsonSchema;
  url?: undefined;
  elicitationId?: undefined;
  _meta?: Meta;
}

/** A page for the user to visit (2025-11-25). */
export interface ElicitUrlParams {
  mode: "url";
  message: string;
  requestedSchema?: undefined;
  url: string;
  elicitationId?: string;
  _meta?: Meta;
}

/** The answer to a question to the user. */
export interface ElicitAnswer {
  action: ElicitAction;
  /** What was filled in. */
  content?: Record<string, unknown>;
  _meta?: Meta;
}

/** What a completion gives. */
export interface CompleteResult {
  completion: CompletionValues;
  _meta?: Meta;
}

/** A log message (`server/utilities/logging`). */
export interface LogMessage {
  level: LogLevel;
  logger?: string;
  data: unknown;
  _meta?: Meta;
}

/** Something that is told. */
export interface Notification {
  method: string;
  params: Record<string, unknown>;
}

/** A result that asks for input (2026-07-28, `basic/patterns/mrtr`); of requests that are sent `byHand` only. */
export interface InputRequiredResult {
  resultType: "input_required";
  inputRequests?: Record<string, { method: string; params?: Record<string, unknown> }>;
  requestState?: string;
  _meta?: Meta;
}
