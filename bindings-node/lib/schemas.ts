/**
 * Schemas as users bring them: plain JSON Schema, or any library that follows Standard Schema and gives JSON Schema
 * (zod 4, valibot, arktype). What a client sends is held against the JSON Schema by the core, so that verdict and wording
 * are those of every language; then the library has its say.
 */

import { ToolError, UsageError } from "./errors.js";
import type { JsonSchema } from "./protocol.js";

/** What went wrong, as Standard Schema (standardschema.dev, version 1) tells it. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A validation's end, as Standard Schema tells it. */
export type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

/** A schema of a library that follows Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema: what the schema is as JSON Schema. */
    readonly jsonSchema?:
      | {
          readonly input: (options: { readonly target: string }) => Record<string, unknown>;
          readonly output: (options: { readonly target: string }) => Record<string, unknown>;
        }
      | undefined;
  };
}

/** Whatever describes arguments or results. */
export type Schema = StandardSchema | JsonSchema;

/** The type of a value that a plain JSON Schema describes, as far as types can say it. */
export type FromJsonSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly anyOf: readonly (infer Option)[] }
      ? FromJsonSchema<Option>
      : S extends { readonly oneOf: readonly (infer Option)[] }
        ? FromJsonSchema<Option>
        : S extends { readonly type: infer Type }
          ? OfType<Type, S>
          : S extends { readonly properties: object }
            ? OfType<"object", S>
            : unknown;

type OfType<Type, S> = Type extends readonly (infer One)[]
  ? OfType<One, S>
  : Type extends "string"
    ? string
    : Type extends "number" | "integer"
      ? number
      : Type extends "boolean"
        ? boolean
        : Type extends "null"
          ? null
          : Type extends "array"
            ? S extends { readonly items: infer Items }
              ? FromJsonSchema<Items>[]
              : unknown[]
            : Type extends "object"
              ? OfObject<S>
              : unknown;

type OfObject<S> = S extends { readonly properties: infer Properties }
  ? Flat<
      { [Name in keyof Properties as Name extends Required<S> ? Name : never]: FromJsonSchema<Properties[Name]> } & {
        [Name in keyof Properties as Name extends Required<S> ? never : Name]?: FromJsonSchema<Properties[Name]>;
      }
    >
  : Record<string, unknown>;

type Required<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;

type Flat<T> = { [Name in keyof T]: T[Name] };

/** The type of what a handler is given for a schema. */
export type Parsed<S> = S extends StandardSchema<unknown, infer Output> ? Output : FromJsonSchema<S>;

/** The type of what a handler may return for an output schema. */
export type Returned<S> = S extends StandardSchema<infer Input> ? Input : FromJsonSchema<S>;

/** The dialect that libraries are asked for. */
const TARGET = "draft-2020-12";

function isStandard(schema: Schema): schema is StandardSchema {
  // Functions too: arktype's schemas are. What is no schema at all is the core's to refuse.
  return Object(schema) === schema && "~standard" in schema;
}

/**
 * A schema as JSON Schema: of what is sent (`input`) or of what results (`output`).
 *
 * @throws UsageError if the library can't tell.
 */
export function jsonSchemaOf(schema: Schema, side: "input" | "output", where: string): JsonSchema {
  if (!isStandard(schema)) {
    return schema;
  }
  const { jsonSchema, vendor } = schema["~standard"];
  const convert = jsonSchema?.[side];
  if (convert === undefined) {
    const help =
      vendor === "valibot"
        ? "wrap it in toStandardJsonSchema of @valibot/to-json-schema"
        : `use a version of ${vendor} that follows Standard JSON Schema, or give a JSON Schema`;
    throw new UsageError(`${where} can't be told as JSON Schema: ${help}`);
  }
  try {
    return convert({ target: TARGET });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${where} can't be told as JSON Schema: ${reason}`, { cause: error });
  }
}

/** What makes arguments of what the client has sent, where that is more than the core does. */
export type Validate = (value: unknown) => unknown;

/**
 * The library's own validation; `undefined` for plain JSON Schema. What it returns may be a promise.
 *
 * @param refused Makes the error of what is wrong.
 */
export function validatorOf(
  schema: Schema,
  refused: (issues: string) => Error = (issues) => new ToolError(`Invalid arguments: ${issues}`),
): Validate | undefined {
  if (!isStandard(schema)) {
    return undefined;
  }
  const { validate } = schema["~standard"];
  const take = (result: StandardResult<unknown>) => {
    if (result.issues !== undefined) {
      throw refused(result.issues.map(worded).join("; "));
    }
    return result.value;
  };
  return (value) => {
    const result = validate(value);
    return result instanceof Promise ? result.then(take) : take(result);
  };
}

/** As the core words it: the place, then what is asked for. */
function worded({ message, path }: StandardIssue): string {
  const steps = (path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  const pointer = steps.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  return `at ${pointer === "" ? "the root" : pointer}: ${message.slice(0, 1).toLowerCase()}${message.slice(1)}`;
}
