/**
 * Validation by schemas of libraries, each check once.
 *
 * The Standard Schema of zod validates synchronously first, and again if it meets an asynchronous check. That check then
 * runs twice, and the promise of its first run is not handled. Schemas of zod are therefore validated asynchronously,
 * unless they consist of types and checks that are known to be synchronous.
 */

import { isPromise } from "./is_promise.js";
import type { StandardIssue, StandardResult, StandardSchema } from "./schemas.js";

/** Validates a value as Standard Schema defines it. */
export type StandardValidate = (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>>;

/** What is used of a schema of zod 4. */
interface ZodSchema {
  readonly safeParseAsync: (
    value: unknown,
  ) => Promise<{ data: unknown; error?: { readonly issues: readonly StandardIssue[] } }>;
}

/** The definition of a schema or check of zod 4, which zod documents for authors of libraries. */
interface ZodInternals {
  readonly _zod: {
    readonly def: Readonly<Record<string, unknown>>;
    /** Set if the value may be missing before validation. */
    readonly optin?: string | undefined;
    /** Set if the value may be missing after validation. */
    readonly optout?: string | undefined;
  };
}

/** Returns the validation of a schema. */
export function standardValidate(schema: StandardSchema): StandardValidate {
  const { vendor, validate } = schema["~standard"];
  if (vendor === "zod" && hasSafeParse(schema) && !isSynchronous(schema, new Set())) {
    return async (value) => {
      const { data, error } = await schema.safeParseAsync(value);
      return error === undefined ? { value: data } : { issues: error.issues };
    };
  }
  return validate;
}

/** Whether a property has to be given (`input`), or is always there after validation (`output`). */
export function isRequired(schema: StandardSchema, side: "input" | "output"): boolean {
  if (schema["~standard"].vendor === "zod" && hasInternals(schema)) {
    return schema._zod[side === "input" ? "optin" : "optout"] === undefined;
  }
  let result;
  try {
    result = schema["~standard"].validate(undefined);
  } catch {
    return true;
  }
  if (isPromise(result)) {
    // An asynchronous check. Whether it refuses a missing value is not known here.
    result.then(undefined, () => undefined);
    return true;
  }
  return result.issues !== undefined || (side === "output" && result.value !== undefined);
}

function hasSafeParse(schema: object): schema is ZodSchema {
  return "safeParseAsync" in schema && typeof schema.safeParseAsync === "function";
}

/** Types of zod that call no function of the program. */
const TYPES = new Set<unknown>([
  "any",
  "array",
  "bigint",
  "boolean",
  "date",
  "default",
  "enum",
  "file",
  "intersection",
  "int",
  "literal",
  "map",
  "nan",
  "never",
  "nonoptional",
  "null",
  "nullable",
  "number",
  "object",
  "optional",
  "prefault",
  "readonly",
  "record",
  "set",
  "string",
  "symbol",
  "template_literal",
  "tuple",
  "undefined",
  "union",
  "unknown",
  "void",
]);

/** Checks of zod that call no function of the program. */
const CHECKS = new Set<unknown>([
  "bigint_format",
  "greater_than",
  "length_equals",
  "less_than",
  "max_length",
  "max_size",
  "mime_type",
  "min_length",
  "min_size",
  "multiple_of",
  "number_format",
  "size_equals",
  "string_format",
]);

/** Whether a schema of zod consists only of synchronous types and checks. */
function isSynchronous(schema: unknown, seen: Set<unknown>): boolean {
  if (seen.has(schema)) {
    return true;
  }
  seen.add(schema);
  if (!hasInternals(schema)) {
    return false;
  }
  const { def } = schema._zod;
  if (!(TYPES.has(def["type"]) || CHECKS.has(def["check"]))) {
    return false;
  }
  try {
    return (
      Object.keys(def)
        // Reading it calls a function of the program.
        .filter((name) => name !== "defaultValue")
        .every((name) => children(def[name]).every((child) => isSynchronous(child, seen)))
    );
  } catch {
    // The schema of a property is computed when it is read, and is not available yet.
    return false;
  }
}

/** Returns the schemas and checks in a member of a definition: itself, or the values of an array or a shape. */
function children(member: unknown): unknown[] {
  if (hasInternals(member)) {
    return [member];
  }
  if (typeof member !== "object" || member === null) {
    return [];
  }
  return Object.values(member).filter(hasInternals);
}

function hasInternals(value: unknown): value is ZodInternals {
  return Object(value) === value && "_zod" in (value as object);
}
