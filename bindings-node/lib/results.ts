/** Conversion of the return values and errors of handlers to results for the core. */

import { blocksOf, completed, contentBlocksOf, contentsOf, hasOnly, isContents, isMarked, jsonOf } from "./content.js";
import {
  isForModel,
  McplineError,
  NotSupportedError,
  ResourceNotFoundError,
  RpcError,
  UrlElicitationRequiredError,
  UsageError,
} from "./errors.js";
import { ExtendedResult } from "./extension.js";
import { finish, hub, ResultKind } from "./hub.js";
import { isPromise } from "./is_promise.js";
import type { CompletionValues, GetPromptResult, PromptMessage, ReadResourceResult } from "./protocol.js";
import { InputRequired } from "./input_requests.js";
import type { Validate } from "./schemas.js";
import { type ResultMembers, toolResultOf } from "./tool_result.js";

/**
 * Ends a tool call with the handler's return value. `output`: what the tool's output schema does to a value; `undefined`
 * if it has none. Returns a promise if the schema does.
 */
export function finishTool(call: number, value: unknown, output?: Validate): PromiseLike<void> | undefined {
  if (typeof value === "string" && output === undefined) {
    finish(call, ResultKind.Text, value);
    return undefined;
  }
  if (value instanceof InputRequired) {
    finishInputRequired(call, value);
    return undefined;
  }
  if (value instanceof ExtendedResult) {
    finishExtended(call, value);
    return undefined;
  }
  const result = toolResultOf(value, output !== undefined);
  if (result !== undefined) {
    const { structuredContent, isError } = result;
    // The content of a failure has no schema.
    if (output === undefined || structuredContent === undefined || isError === true) {
      finishWhole(call, result);
      return undefined;
    }
    return validateThen(output, structuredContent, (structuredContent) => {
      finishWhole(call, { ...result, structuredContent });
    });
  }
  if (output !== undefined) {
    return validateThen(output, value, (value) => {
      finish(call, ResultKind.Structured, jsonOf(value));
    });
  }
  finish(call, ResultKind.Content, JSON.stringify(contentBlocksOf(value)));
  return undefined;
}

function validateThen(output: Validate, value: unknown, then: (value: unknown) => void): PromiseLike<void> | undefined {
  const checked = output(value);
  if (isPromise(checked)) {
    return checked.then(then);
  }
  then(checked);
  return undefined;
}

function finishWhole(call: number, { content, ...rest }: ResultMembers): void {
  const blocks = content === undefined ? undefined : contentBlocksOf(content);
  finish(call, ResultKind.Complete, jsonOf({ ...rest, content: blocks }));
}

/** Ends a resource request with the handler's return value. */
export function finishResource(call: number, value: unknown, uri: () => string, mimeType: string | undefined): void {
  if (value instanceof InputRequired) {
    finishInputRequired(call, value);
  } else if (value instanceof ExtendedResult) {
    finishExtended(call, value);
  } else if (isReadResult(value)) {
    finish(call, ResultKind.Complete, JSON.stringify(value));
  } else {
    const own = uri();
    const many = Array.isArray(value) && value.every(isContents) && value.some(isMarked);
    const contents = many ? value.map((item) => completed(item, own, mimeType)) : [contentsOf(value, own, mimeType)];
    finish(call, ResultKind.Complete, JSON.stringify({ contents }));
  }
}

/** Ends a list of a template's resources with the handler's return value. The core checks its form. */
export function finishResourceList(call: number, value: unknown): void {
  const isWhole = typeof value === "object" && value !== null && "resources" in value;
  const resources = isWhole ? value.resources : (value ?? []);
  finish(call, ResultKind.Complete, JSON.stringify({ resources }));
}

/** Ends a prompt request with the handler's return value. */
export function finishPrompt(call: number, value: unknown): void {
  if (value instanceof InputRequired) {
    finishInputRequired(call, value);
    return;
  }
  if (value instanceof ExtendedResult) {
    finishExtended(call, value);
    return;
  }
  const whole = isPromptResult(value) ? value : { messages: value };
  const items = Array.isArray(whole.messages) ? (whole.messages as unknown[]) : [whole.messages];
  finish(call, ResultKind.Complete, JSON.stringify({ ...whole, messages: items.flatMap(messagesOf) }));
}

/** Ends a custom request with the handler's return value. The core checks that it is an object. */
export function finishRequest(call: number, value: unknown): void {
  if (value instanceof InputRequired) {
    finishInputRequired(call, value);
  } else if (value instanceof ExtendedResult) {
    finishExtended(call, value);
  } else {
    finish(call, ResultKind.Result, jsonOf(value ?? {}));
  }
}

/** Ends the handler of an event, whose return value is ignored. */
export function finishEvent(call: number): void {
  finish(call, ResultKind.Text, "");
}

/** Ends a completion request with the handler's return value. */
export function finishCompletion(call: number, value: unknown): void {
  const values: CompletionValues =
    value === undefined || value === null
      ? { values: [] }
      : Array.isArray(value)
        ? { values: value.map(String) }
        : (value as CompletionValues);
  finish(call, ResultKind.Complete, jsonOf({ completion: values }));
}

/** Kinds of errors of handlers that end because their call was cancelled. */
const GIVEN_UP: ReadonlySet<string> = new Set(["request_cancelled", "connection_lost", "closed"]);

/** Ends a call whose handler threw. */
export function finishFailed(call: number, error: unknown): void {
  try {
    finishByKind(call, error);
  } catch {
    // Handlers may throw anything, such as a proxy that throws, and their calls must end in any case.
    finish(call, ResultKind.Exception, JSON.stringify({ summary: UNREADABLE, trace: UNREADABLE }));
  }
}

const UNREADABLE = "an error that cannot be read";

function finishByKind(call: number, error: unknown): void {
  if (error instanceof McplineError && GIVEN_UP.has(error.kind) && hub.callCancelled(call)) {
    // The call was cancelled: its result is ignored, and this is no failure.
    finish(call, ResultKind.ToolFailure, textOf(error.message));
  } else if (isForModel(error)) {
    finish(call, ResultKind.ToolFailure, textOf(error.message));
  } else if (error instanceof ResourceNotFoundError) {
    finish(call, ResultKind.ResourceNotFound, textOf(error.uri ?? ""));
  } else if (error instanceof UrlElicitationRequiredError) {
    finish(
      call,
      ResultKind.UrlElicitations,
      JSON.stringify(error.elicitations.map((elicitation) => ({ mode: "url", ...elicitation }))),
    );
  } else if (error instanceof NotSupportedError && error.required !== undefined) {
    finish(call, ResultKind.Unsupported, JSON.stringify({ message: error.message, required: error.required }));
  } else if (error instanceof RpcError) {
    const { code, rpcMessage, data } = error;
    finish(call, ResultKind.RpcFailure, JSON.stringify({ code, message: rpcMessage, data: jsonable(data) }));
  } else {
    // The core emits a warning. The client learns about internals in debug mode only.
    const summary = summaryOf(error);
    // `Error.prepareStackTrace` may return anything.
    const stack: unknown = error instanceof Error ? error.stack : undefined;
    const trace = typeof stack === "string" ? stack : summary;
    finish(call, ResultKind.Exception, JSON.stringify({ summary, trace }));
  }
}

/** The text of an error's property, which may be another value than its type says. */
function textOf(property: unknown): string {
  return String(property);
}

/** Name and message of an error, or the text of another value. */
function summaryOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    return "an error without a text";
  }
}

function jsonable(value: unknown): unknown {
  try {
    return JSON.parse(jsonOf(value ?? null)) as unknown;
  } catch {
    return String(value);
  }
}

function finishInputRequired(call: number, { requests, state }: InputRequired): void {
  const entries = Object.entries(requests).map(([key, { method, params }]) => [key, method, params]);
  finish(call, ResultKind.InputRequired, JSON.stringify({ requests: entries, state }));
}

/** Ends a call with a result of an extension's result type. */
function finishExtended(call: number, { resultType, members }: ExtendedResult): void {
  finish(call, ResultKind.Result, jsonOf({ ...members, resultType }));
}

const READ_MEMBERS = ["contents", "ttlMs", "cacheScope", "_meta"];

/** Whether a value is the complete result of a resource, and not data that has `contents`. */
function isReadResult(value: unknown): value is ReadResourceResult {
  if (typeof value !== "object" || value === null || !hasOnly(value, READ_MEMBERS)) {
    return false;
  }
  const { contents, ttlMs } = value as { contents?: unknown; ttlMs?: unknown };
  return (
    Array.isArray(contents) &&
    contents.every((item) => isContents(item) && typeof item.uri === "string") &&
    (contents.length > 0 || ttlMs !== undefined)
  );
}

function isPromptResult(value: unknown): value is GetPromptResult {
  return typeof value === "object" && value !== null && Array.isArray((value as { messages?: unknown }).messages);
}

function messagesOf(item: unknown): PromptMessage[] {
  const given =
    typeof item === "object" && item !== null && "role" in item
      ? (item as { role: PromptMessage["role"]; content: unknown })
      : { role: "user" as const, content: item };
  const blocks = blocksOf(given.content);
  if (blocks === undefined) {
    throw new UsageError("a message's content is a string, a content block or an array of these");
  }
  return blocks.map((content) => ({ role: given.role, content }));
}
