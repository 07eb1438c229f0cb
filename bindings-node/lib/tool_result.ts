/** Complete results of tools, as handlers return them. */

import { hasOnly, isBlock } from "./content.js";
import type { CallToolResult, ContentBlock, Meta } from "./protocol.js";

/** Members of a tool's result ({@link CallToolResult}); `content` may also be text, one block, or contain strings. */
export interface ResultMembers<Structured = unknown> {
  /** Content for the model. Default: the structured content as JSON text. */
  content?: string | ContentBlock | readonly (string | ContentBlock)[];
  /** Structured content, which the tool's output schema describes. */
  structuredContent?: Structured;
  /** Whether the tool failed. The content describes the failure for the model. */
  isError?: boolean;
  /** `_meta` of the result. */
  _meta?: Meta;
}

/** A complete result of a tool, created by {@link result}. */
export class ToolResult<Structured = unknown> {
  /** @internal */
  constructor(readonly members: ResultMembers<Structured>) {}
}

/**
 * Returns a complete result of a tool, with its content, its structured content or `_meta`.
 *
 * ```ts
 * server.tool("report", {}, () => result({ content: ["done", image(chart, "image/png")], _meta: { "example.com/id": 7 } }));
 * ```
 *
 * An object with the members of a {@link CallToolResult} is taken for one only if it cannot be data: it has no other
 * members, and `structuredContent` or content blocks. With this function it is certain.
 */
export function result<Structured = never>(members: ResultMembers<Structured>): ToolResult<Structured> {
  return new ToolResult(members);
}

const MEMBERS = ["content", "structuredContent", "isError", "_meta"];

/**
 * Returns the result that a handler's return value is; `undefined` if it is data.
 *
 * @param hasOutput Whether the tool has an output schema, which data with content blocks may match.
 */
export function toolResultOf(value: unknown, hasOutput: boolean): ResultMembers | undefined {
  if (value instanceof ToolResult) {
    return value.members;
  }
  if (typeof value !== "object" || value === null || !hasOnly(value, MEMBERS)) {
    return undefined;
  }
  const { content, structuredContent, isError, _meta } = value as Partial<CallToolResult>;
  if (content !== undefined && !(Array.isArray(content) && content.every(isBlock))) {
    return undefined;
  }
  const isMarked = structuredContent !== undefined || (isError === true && content !== undefined);
  const hasBlocks = content !== undefined && content.length > 0;
  const isResult = isMarked || (!hasOutput && (hasBlocks || (content !== undefined && _meta !== undefined)));
  return isResult ? value : undefined;
}
