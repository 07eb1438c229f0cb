/**
 * Schemas of arguments and results: JSON Schema, or a library that implements Standard Schema and Standard JSON Schema
 * (zod 4, valibot, arktype).
 *
 * The core validates values against the JSON Schema, with the same result and message in every language; after that the
 * library validates and transforms them.
 */

import { ToolError, UsageError } from "./errors.js";
import type { JsonSchema } from "./protocol.js";

/** A validation issue, as defined by Standard Schema (standardschema.dev, version 1). */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The result of a validation, as defined by Standard Schema. */
export type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

/** A schema of a library that implements Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema: conversion of the schema to JSON Schema. */
    readonly jsonSchema?:
      | {
          readonly input: (options: { readonly target: string }) => Record<string, unknown>;
          readonly output: (options: { readonly target: string }) => Record<string, unknown>;
        }
      | undefined;
  };
}

/** A schema: JSON Schema, or one of a library that implements Standard Schema. */
export type Schema = StandardSchema | JsonSchema;

/** The TypeScript type of the values of a JSON Schema, as far as it can be derived. */
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

/** The type of the validated values of a schema, which handlers receive. */
export type Parsed<S> = S extends StandardSchema<unknown, infer Output> ? Output : FromJsonSchema<S>;

/** The type of the values of an output schema, which handlers return. */
export type Returned<S> = S extends StandardSchema<infer Input> ? Input : FromJsonSchema<S>;

/** The dialect of JSON Schema that is requested from libraries. */
const TARGET = "draft-2020-12";

function isStandard(schema: Schema): schema is StandardSchema {
  // Includes functions, such as arktype's schemas. The core rejects invalid schemas.
  return Object(schema) === schema && "~standard" in schema;
}

/**
 * Converts a schema to JSON Schema that describes values before (`input`) or after (`output`) validation.
 *
 * @throws UsageError if the library cannot convert it.
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

/** Validates and transforms a value. */
export type Validate = (value: unknown) => unknown;

/**
 * Returns the validation of a library's schema; `undefined` for JSON Schema. The validation may return a promise.
 *
 * @param refused Creates the error of an invalid value.
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

/** Formats an issue as the core does: location and rule. */
function worded({ message, path }: StandardIssue): string {
  const steps = (path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  const pointer = steps.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  return `at ${pointer === "" ? "the root" : pointer}: ${message.slice(0, 1).toLowerCase()}${message.slice(1)}`;
}
