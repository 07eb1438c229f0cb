/** Checks that results of a server have the members that their types declare. */

import { InvalidResponseError } from "../errors.js";
import type { CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult } from "../protocol.js";

type Result = Record<string, unknown>;

/** One page of a list. */
export interface Page {
  items: unknown[];
  next: string | undefined;
}

/** Reads a page of a list. */
export function pageOf(result: unknown, method: string, member: string): Page {
  const { [member]: items, nextCursor } = result as Result;
  if (!Array.isArray(items)) {
    throw memberTypeError(method, member, "array");
  }
  if (typeof nextCursor !== "string" && nextCursor !== undefined && nextCursor !== null) {
    throw memberTypeError(method, "nextCursor", "string");
  }
  return { items: items as unknown[], next: nextCursor ?? undefined };
}

/** Reads the result of a tool call. Missing content becomes an empty array. */
export function callResult(result: unknown): CallToolResult {
  const read = result as Result;
  if (!Array.isArray(read["content"]) && !isInputRequired(read)) {
    if (read["content"] !== undefined) {
      throw memberTypeError("tools/call", "content", "array");
    }
    read["content"] = [];
  }
  return result as CallToolResult;
}

/** Reads the contents of a resource. */
export function readResult(result: unknown): ReadResourceResult {
  return withArray(result, "resources/read", "contents") as ReadResourceResult;
}

/** Reads a prompt. */
export function promptResult(result: unknown): GetPromptResult {
  return withArray(result, "prompts/get", "messages") as GetPromptResult;
}

/** Reads completions. */
export function completeResult(result: unknown): CompleteResult {
  const { completion } = result as Result;
  if (typeof completion !== "object" || completion === null) {
    throw memberTypeError("completion/complete", "completion", "object");
  }
  withArray(completion, "completion/complete", "values");
  return result as CompleteResult;
}

function withArray(result: unknown, method: string, member: string): unknown {
  const read = result as Result;
  if (!Array.isArray(read[member]) && !isInputRequired(read)) {
    throw memberTypeError(method, member, "array");
  }
  return result;
}

/** Whether a result only requests input (2026-07-28). */
function isInputRequired(result: Result): boolean {
  return result["resultType"] === "input_required";
}

function memberTypeError(method: string, member: string, kind: string): InvalidResponseError {
  return new InvalidResponseError(`invalid response from server: ${method}: ${member} must be of type ${kind}`);
}
