/** The data of a tool's result: its structured content, validated and typed by a schema of the caller. */

import { InvalidResponseError, UsageError } from "../errors.js";
import { isPromise } from "../is_promise.js";
import type { CallToolResult, Revision } from "../protocol.js";
import { isSchemaOrShape, type Schema, validationOf, type Validate } from "../schemas.js";

/**
 * The result of a tool call, and its data.
 *
 * `data` is the structured content; with the option `schema`, what the schema makes of it. It is `undefined` if the tool
 * failed. The property is not enumerable: the server did not send it.
 *
 * @typeParam T Type of the data.
 */
export type ToolCallResult<T = unknown> =
  | (CallToolResult & { isError?: false; readonly data: T })
  | (CallToolResult & { isError: true; readonly data: undefined });

/** The first revision whose structured content may be any JSON value, and not only an object. */
const ANY_STRUCTURED: Revision = "2026-07-28";

/** Prepares the schema of a caller. Throws UsageError if it is none of a library. */
export function dataSchema(tool: string, schema: unknown): Validate {
  if (!isSchemaOrShape(schema)) {
    throw new UsageError(
      "`schema` must be a schema of a library that implements Standard Schema, such as `z.object({ … })`, or its shape",
    );
  }
  const refused = (issues: string) =>
    new InvalidResponseError(`invalid response from server: data of tool ${tool} does not match \`schema\`: ${issues}`);
  return validationOf(schema as Schema, "`schema`", refused) as Validate;
}

/** Adds the data to a result. */
export function withData(
  result: CallToolResult,
  tool: string,
  revision: Revision,
  validate: Validate | undefined,
): ToolCallResult | PromiseLike<ToolCallResult> {
  if (result.isError === true || isInputRequired(result)) {
    return withDataProperty(result, undefined);
  }
  if (validate === undefined) {
    return withDataProperty(
      result,
      isMarkedAsWrapped(result) ? unwrapped(result.structuredContent) : result.structuredContent,
    );
  }
  const given = structured(result, tool);
  const wrapped = revision < ANY_STRUCTURED || isMarkedAsWrapped(result) ? unwrapped(given) : undefined;
  const take = (data: unknown) => withDataProperty(result, data);
  if (wrapped === undefined) {
    const data = validate(given);
    return isPromise(data) ? data.then(take) : take(data);
  }
  return either(validate, given, wrapped).then(take);
}

/** Validates a value, or if that fails the value that it wraps; throws the error of the first. */
async function either(validate: Validate, given: unknown, wrapped: unknown): Promise<unknown> {
  try {
    return await validate(given);
  } catch (error) {
    try {
      return await validate(wrapped);
    } catch {
      throw error;
    }
  }
}

/** The structured content, or the JSON of the only text block: servers of early revisions send no other. */
function structured({ structuredContent, content }: CallToolResult, tool: string): unknown {
  if (structuredContent !== undefined) {
    return structuredContent;
  }
  const [block, ...others] = content;
  if (block?.type === "text" && others.length === 0) {
    try {
      return JSON.parse(block.text) as unknown;
    } catch {
      // Text for the model.
    }
  }
  throw new InvalidResponseError(
    `invalid response from server: result of tool ${tool} has no structured content, which the option \`schema\` needs`,
  );
}

/**
 * The only member `result` of an object, in which servers of revisions up to 2025-11-25 wrap other values; `undefined`
 * if there is none.
 */
function unwrapped(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Object.keys(value).length !== 1) {
    return undefined;
  }
  return (value as { result?: unknown }).result;
}

/** Whether the server has marked that the structured content is wrapped, as those of FastMCP do. */
function isMarkedAsWrapped({ _meta }: CallToolResult): boolean {
  const marks = _meta?.["fastmcp"] as { wrap_result?: unknown } | null | undefined;
  return marks?.wrap_result === true;
}

function isInputRequired(result: CallToolResult): boolean {
  return (result as { resultType?: unknown }).resultType === "input_required";
}

function withDataProperty(result: CallToolResult, data: unknown): ToolCallResult {
  return Object.defineProperty(result, "data", { value: data }) as ToolCallResult;
}
