/** Conversion of the return values and errors of handlers to results for the core. */

import { blocksOf, contentsOf, isContents, jsonOf, text } from "./content.js";
import {
  isForModel,
  McplineError,
  NotSupportedError,
  RpcError,
  UrlElicitationRequiredError,
  UsageError,
} from "./errors.js";
import { ExtendedResult } from "./extension.js";
import { finish, hub, Kind } from "./hub.js";
import type {
  CallToolResult,
  CompletionValues,
  GetPromptResult,
  PromptMessage,
  ReadResourceResult,
} from "./protocol.js";
import { InputRequired } from "./input_requests.js";

/** Ends a tool call with the handler's return value. `structured`: the tool has an output schema. */
export function finishTool(call: number, value: unknown, structured: boolean): void {
  if (typeof value === "string" && !structured) {
    finish(call, Kind.Text, value);
  } else if (value instanceof InputRequired) {
    finishInputRequired(call, value);
  } else if (value instanceof ExtendedResult) {
    finishExtended(call, value);
  } else if (isToolResult(value)) {
    const { content, ...rest } = value;
    const blocks = content === undefined ? undefined : (blocksOf(content) ?? [text(jsonOf(content))]);
    finish(call, Kind.Complete, jsonOf({ ...rest, content: blocks }));
  } else if (structured) {
    finish(call, Kind.Structured, jsonOf(value));
  } else {
    const blocks = blocksOf(value) ?? [text(jsonOf(value))];
    finish(call, Kind.Content, JSON.stringify(blocks));
  }
}

/** Ends a resource request with the handler's return value. */
export function finishResource(call: number, value: unknown, uri: () => string, mimeType: string | undefined): void {
  if (value instanceof InputRequired) {
    finishInputRequired(call, value);
  } else if (value instanceof ExtendedResult) {
    finishExtended(call, value);
  } else if (isReadResult(value)) {
    finish(call, Kind.Complete, JSON.stringify(value));
  } else {
    const many = Array.isArray(value) && value.length > 0 && value.every(isContents);
    const items = many ? (value as unknown[]) : [value];
    const own = uri();
    const contents = items.map((item) => contentsOf(item, own, mimeType));
    finish(call, Kind.Complete, JSON.stringify({ contents }));
  }
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
  finish(call, Kind.Complete, JSON.stringify({ ...whole, messages: items.flatMap(messagesOf) }));
}

/** Ends a custom request with the handler's return value. The core checks that it is an object. */
export function finishRequest(call: number, value: unknown): void {
  if (value instanceof InputRequired) {
    finishInputRequired(call, value);
  } else if (value instanceof ExtendedResult) {
    finishExtended(call, value);
  } else {
    finish(call, Kind.Result, jsonOf(value ?? {}));
  }
}

/** Ends the handler of an event, whose return value is ignored. */
export function finishEvent(call: number): void {
  finish(call, Kind.Text, "");
}

/** Ends a completion request with the handler's return value. */
export function finishCompletion(call: number, value: unknown): void {
  const values: CompletionValues =
    value === undefined || value === null
      ? { values: [] }
      : Array.isArray(value)
        ? { values: value.map(String) }
        : (value as CompletionValues);
  finish(call, Kind.Complete, jsonOf({ completion: values }));
}

/** Kinds of errors of handlers that end because their call was cancelled. */
const GIVEN_UP: ReadonlySet<string> = new Set(["request_cancelled", "connection_lost", "closed"]);

/** Ends a call whose handler threw. */
export function finishFailed(call: number, error: unknown): void {
  if (error instanceof McplineError && GIVEN_UP.has(error.kind) && hub.callCancelled(call)) {
    // The call was cancelled: its result is ignored, and this is no failure.
    finish(call, Kind.ToolFailure, error.message);
  } else if (isForModel(error)) {
    finish(call, Kind.ToolFailure, error.message);
  } else if (error instanceof UrlElicitationRequiredError) {
    finish(
      call,
      Kind.UrlElicitations,
      JSON.stringify(error.elicitations.map((elicitation) => ({ mode: "url", ...elicitation }))),
    );
  } else if (error instanceof NotSupportedError && error.required !== undefined) {
    finish(call, Kind.Unsupported, JSON.stringify({ message: error.message, required: error.required }));
  } else if (error instanceof RpcError) {
    const { code, rpcMessage, data } = error;
    finish(call, Kind.RpcFailure, JSON.stringify({ code, message: rpcMessage, data: jsonable(data) }));
  } else {
    // The core emits a warning. The client must not learn about internals.
    const trace = error instanceof Error ? (error.stack ?? error.message) : String(error);
    finish(call, Kind.InternalFailure, trace);
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
  finish(call, Kind.InputRequired, JSON.stringify({ requests: entries, state }));
}

/** Ends a call with a result of an extension's result type. */
function finishExtended(call: number, { resultType, members }: ExtendedResult): void {
  finish(call, Kind.Result, jsonOf({ ...members, resultType }));
}

function isToolResult(value: unknown): value is Partial<CallToolResult> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return false;
  }
  return Array.isArray((value as { content?: unknown }).content) || "structuredContent" in value;
}

function isReadResult(value: unknown): value is ReadResourceResult {
  return typeof value === "object" && value !== null && Array.isArray((value as { contents?: unknown }).contents);
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
