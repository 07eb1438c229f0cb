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
    throw unfit(method, member, "array");
  }
  if (typeof nextCursor !== "string" && nextCursor !== undefined && nextCursor !== null) {
    throw unfit(method, "nextCursor", "string");
  }
  return { items: items as unknown[], next: nextCursor ?? undefined };
}

/** Reads the result of a tool call. Missing content becomes an empty array. */
export function callResult(result: unknown): CallToolResult {
  const read = result as Result;
  if (!Array.isArray(read["content"]) && !asks(read)) {
    if (read["content"] !== undefined) {
      throw unfit("tools/call", "content", "array");
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
    throw unfit("completion/complete", "completion", "object");
  }
  withArray(completion, "completion/complete", "values");
  return result as CompleteResult;
}

function withArray(result: unknown, method: string, member: string): unknown {
  const read = result as Result;
  if (!Array.isArray(read[member]) && !asks(read)) {
    throw unfit(method, member, "array");
  }
  return result;
}

/** Whether a result only requests input (2026-07-28). */
function asks(result: Result): boolean {
  return result["resultType"] === "input_required";
}

function unfit(method: string, member: string, kind: string): InvalidResponseError {
  return new InvalidResponseError(`invalid response from server: ${method}: ${member} must be of type ${kind}`);
}
