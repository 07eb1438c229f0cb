/** Conversion of the return values of middleware to results for the core. */

import { blocksOf, jsonOf } from "./content.js";
import { UsageError } from "./errors.js";
import { ExtendedResult } from "./extension.js";
import { finish, ResultKind } from "./hub.js";
import { InputRequired } from "./input_requests.js";
import type { MiddlewareRequest } from "./middleware.js";
import { typeName } from "./option_checks.js";
import { finishTool } from "./results.js";
import { ToolResult, toolResultOf } from "./tool_result.js";

/** The results that middleware got, with their JSON. */
const receivedJson = new WeakMap<object, string>();

/** Returns a result of the core for a middleware. */
export function receivedResult(json: string): Record<string, unknown> {
  const result = JSON.parse(json) as Record<string, unknown>;
  receivedJson.set(result, json);
  return result;
}

/**
 * Returns what ends the call of a middleware with its return value.
 *
 * @throws UsageError if the value is not a result of the method.
 */
export function endOf(request: MiddlewareRequest, value: unknown): (call: number) => void {
  const { kind, method } = request;
  if (kind === "sent_notification" || kind === "received_notification") {
    return ending(ResultKind.Result, "{}");
  }
  if (value === undefined) {
    throw new UsageError(
      `a middleware returned undefined for ${method}: return the result of \`next\`, as in \`return next(request)\``,
    );
  }
  if (value instanceof InputRequired) {
    throw new UsageError("a middleware cannot return `InputRequired`: only handlers can");
  }
  if (value instanceof ExtendedResult) {
    return ending(ResultKind.Result, jsonOf({ ...value.members, resultType: value.resultType }));
  }
  const received = typeof value === "object" && value !== null ? receivedJson.get(value) : undefined;
  if (received !== undefined) {
    const json = jsonOf(value);
    return isUnchanged(received, json) ? ending(ResultKind.Unchanged, received) : ending(ResultKind.Result, json);
  }
  if (method === "tools/call") {
    return endOfTool(value);
  }
  if (!isPlain(value)) {
    throw new UsageError(`a middleware must return the result of ${method}, an object, not ${nameOf(value)}`);
  }
  return ending(ResultKind.Result, jsonOf(value));
}

/**
 * Whether a result that was received as JSON is still the same. Then it is sent as it was received, because numbers with
 * many digits lose some in JavaScript.
 */
function isUnchanged(received: string, json: string): boolean {
  return json === received || json === JSON.stringify(JSON.parse(received));
}

/** As for the return value of a tool, but an object is a result, with members of its own, and never data. */
function endOfTool(value: unknown): (call: number) => void {
  if (isPlain(value)) {
    const { content, resultType } = value;
    const blocks = blocksOf(content);
    if (content !== undefined && blocks !== undefined) {
      return ending(ResultKind.Result, jsonOf({ ...value, content: blocks }));
    }
    if (content === undefined && typeof resultType === "string") {
      return ending(ResultKind.Result, jsonOf(value));
    }
  }
  const isContent = value !== null && blocksOf(value) !== undefined;
  if (!isContent && toolResultOf(value, false) === undefined) {
    throw new UsageError(
      `a middleware returned ${nameOf(value)} for tools/call: return the result of \`next\`, text, content blocks or \`result({ … })\``,
    );
  }
  return (call) => {
    finishTool(call, value);
  };
}

function ending(kind: ResultKind, json: string): (call: number) => void {
  return (call) => {
    finish(call, kind, json);
  };
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ToolResult);
}

function nameOf(value: unknown): string {
  return isPlain(value) ? "an object that is not a result" : typeName(value);
}
