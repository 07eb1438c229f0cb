/**
 * Schemas of arguments and results: JSON Schema, or a library that implements Standard Schema and Standard JSON Schema
 * (zod 4, valibot, arktype).
 *
 * Values are validated once. The schema of a library validates and transforms them itself, because only it knows what it
 * accepts, such as the string of a number. The core validates against plain JSON Schema, with the same result and
 * message in every language.
 */

import { UsageError } from "./errors.js";
import { isPromise } from "./is_promise.js";
import { schemaOfShape } from "./shape_schema.js";
import type { JsonSchema } from "./protocol.js";
import { isObject, typeName } from "./option_checks.js";
import { isRequired, standardValidate } from "./standard_validation.js";

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

/** The properties of an object, each with a schema of a library: `{ city: z.string() }`. */
export type SchemaShape = Readonly<Record<string, StandardSchema>>;

/** A schema: JSON Schema, one of a library that implements Standard Schema, or the shape of an object. */
export type Schema = StandardSchema | SchemaShape | JsonSchema;

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
      {
        [Name in keyof Properties as Name extends RequiredNames<S> ? Name : never]: FromJsonSchema<Properties[Name]>;
      } & {
        [Name in keyof Properties as Name extends RequiredNames<S> ? never : Name]?: FromJsonSchema<Properties[Name]>;
      }
    >
  : Record<string, unknown>;

type RequiredNames<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;

type Flat<T> = { [Name in keyof T]: T[Name] };

/** The type of the validated values of a schema, which handlers receive. */
export type SchemaOutput<S> =
  S extends StandardSchema<unknown, infer Output>
    ? Output
    : IsShape<S> extends true
      ? OfShape<{ [Name in keyof S]: SchemaOutput<S[Name]> }>
      : FromJsonSchema<S>;

/** As {@link SchemaOutput}, for values that are objects, also if the compiler does not know the JSON Schema. */
export type SchemaOutputObject<S> = S extends StandardSchema
  ? SchemaOutput<S>
  : unknown extends SchemaOutput<S>
    ? Record<string, unknown>
    : SchemaOutput<S>;

/** The type of the values of an output schema, which handlers return: those before its defaults and transformations. */
export type SchemaInput<S> =
  S extends StandardSchema<infer Input>
    ? Input
    : IsShape<S> extends true
      ? OfShape<{ [Name in keyof S]: SchemaInput<S[Name]> }>
      : AnyObject<FromJsonSchema<S>>;

/** Interfaces have no index signature, so that an object of unknown properties would not accept them. */
type AnyObject<T> = T extends object ? (string extends keyof T ? object : T) : T;

/** Whether a type is a shape. An object without properties, or with ones of any type (`JSONSchema4`), is JSON Schema. */
type IsShape<S> = keyof S extends never
  ? false
  : unknown extends S[keyof S]
    ? false
    : S extends SchemaShape
      ? true
      : false;

/** Makes properties optional that can be `undefined`. */
type OfShape<Values> = Flat<
  { -readonly [Name in keyof Values as undefined extends Values[Name] ? never : Name]: Values[Name] } & {
    -readonly [Name in keyof Values as undefined extends Values[Name] ? Name : never]?: Values[Name];
  }
>;

/** The dialect of JSON Schema that is requested from libraries. */
const TARGET = "draft-2020-12";

/** Validates and transforms a value. Returns a promise if the schema does. Throws the error of an invalid value. */
export type Validate = (value: unknown) => unknown;

/** A schema that can be listed and applied. */
export interface UsableSchema {
  /** The JSON Schema to list. */
  readonly json: JsonSchema;
  /** The validation of a library's schema; `undefined` if the core validates against the JSON Schema. */
  readonly validate: Validate | undefined;
}

/**
 * Prepares a schema.
 *
 * @param side Whether the JSON Schema describes values before or after validation.
 * @param where What the schema belongs to, for messages: ``tool `forecast`: `input` ``.
 * @param refused Creates the error of an invalid value from its issues.
 * @throws UsageError if the schema cannot be used.
 */
export function usableSchema(
  schema: Schema,
  side: "input" | "output",
  where: string,
  refused: (issues: string) => Error,
): UsableSchema {
  const standard = standardOf(schema, where);
  if (standard === undefined) {
    return { json: schema as JsonSchema, validate: undefined };
  }
  return { json: converted(standard, side, where), validate: validation(standard, refused) };
}

/** Returns the validation of a library's schema, or of a shape; `undefined` for JSON Schema. */
export function validationOf(schema: Schema, where: string, refused: (issues: string) => Error): Validate | undefined {
  const standard = standardOf(schema, where);
  return standard === undefined ? undefined : validation(standard, refused);
}

/** A form of an elicitation. */
export interface Form {
  /** The JSON Schema of the form. */
  readonly schema: JsonSchema;
  /** Whether the form has one field, {@link SINGLE_FIELD}, whose value the schema describes. */
  readonly isSingle: boolean;
}

/** The field of a form that asks for a single value, such as `z.boolean()`. */
export const SINGLE_FIELD = "value";

/** Returns the form of a schema. The core checks that clients can display it. Throws as {@link usableSchema} does. */
export function formOf(schema: Schema, where: string): Form {
  const standard = standardOf(schema, where);
  const { $schema: _, ...json } = (standard === undefined ? schema : converted(standard, "input", where)) as Record<
    string,
    unknown
  >;
  if (isSingleValue(json)) {
    const isOptional = standard !== undefined && !isRequired(standard, "input");
    const required = isOptional ? {} : { required: [SINGLE_FIELD] };
    return { schema: { type: "object", properties: { [SINGLE_FIELD]: json }, ...required }, isSingle: true };
  }
  if (standard === undefined || json["properties"] === undefined) {
    return { schema: json, isSingle: false };
  }
  // Reduced to the members that the protocol allows.
  const { properties, required } = json;
  return {
    schema: { type: "object", properties, ...(required === undefined ? {} : { required }) },
    isSingle: false,
  };
}

/** Whether a JSON Schema describes another value than an object. */
function isSingleValue({ type, ...others }: Record<string, unknown>): boolean {
  return type === undefined
    ? ["const", "enum", "oneOf", "anyOf"].some((keyword) => keyword in others) && !("properties" in others)
    : type !== "object";
}

/** Whether a value is a schema of a library, or a shape of such schemas. An empty object is neither. */
export function isSchemaOrShape(value: unknown): boolean {
  if (isStandardSchema(value)) {
    return true;
  }
  const members = Object.values(Object(value) as object);
  return members.length > 0 && members.every(isStandardSchema);
}

function isStandardSchema(schema: unknown): schema is StandardSchema {
  // Includes functions, such as arktype's schemas.
  return Object(schema) === schema && "~standard" in (schema as object);
}

/** Returns the schema of a library, or that of a shape; `undefined` for JSON Schema, which the core checks. */
function standardOf(schema: Schema, where: string): StandardSchema | undefined {
  if (isStandardSchema(schema)) {
    return schema;
  }
  // JavaScript programs are not type-checked. The core rejects objects that are not JSON Schema.
  const given: unknown = schema;
  if (!isObject(given)) {
    throw new UsageError(
      `${where} must be a schema, such as { city: z.string() } or { type: "object", properties: { city: {} } }, not ${typeName(given)}`,
    );
  }
  const members = Object.entries(given);
  const foreign = members.find(([, member]) => !isStandardSchema(member));
  if (foreign === undefined) {
    return members.length === 0 ? undefined : schemaOfShape(schema as SchemaShape);
  }
  const { properties } = given as { properties?: unknown };
  const nested = Object.entries(Object(properties) as object).find(([, member]) => isStandardSchema(member));
  if (nested !== undefined) {
    throw new UsageError(
      `${where}: property \`${nested[0]}\` of a JSON Schema is a schema of a library; pass \`{ ${nested[0]}: … }\` alone, or only JSON Schema`,
    );
  }
  if (members.some(([, member]) => isStandardSchema(member))) {
    throw new UsageError(`${where}: \`${foreign[0]}\` is not a schema, but other properties are`);
  }
  if (isOldZod(given) || members.some(([, member]) => isOldZod(member))) {
    throw new UsageError(`${where} cannot be converted to JSON Schema: ${ZOD}`);
  }
  const method = members.find(([, member]) => typeof member === "function");
  if (method !== undefined) {
    throw new UsageError(`${where} is not a schema: its member \`${method[0]}\` is a function`);
  }
  return undefined;
}

/** Whether a value is a schema of a version of zod before Standard Schema. */
function isOldZod(value: unknown): boolean {
  return isObject(value) && "_def" in value && "safeParse" in value;
}

const ZOD = "use schemas of zod 4.2 or later, not those of `zod/v3` or `zod/mini`, or pass a JSON Schema";

function converted(schema: StandardSchema, side: "input" | "output", where: string): JsonSchema {
  const { jsonSchema, vendor } = schema["~standard"];
  const convert = jsonSchema?.[side];
  if (convert === undefined) {
    const help =
      vendor === "valibot"
        ? "wrap it in `toStandardJsonSchema` of @valibot/to-json-schema"
        : vendor === "zod"
          ? ZOD
          : `use a version of ${vendor} that implements Standard JSON Schema, or pass a JSON Schema`;
    throw new UsageError(`${where} cannot be converted to JSON Schema: ${help}`);
  }
  try {
    return convert({ target: TARGET });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${where} cannot be converted to JSON Schema: ${reason}`, { cause: error });
  }
}

function validation(schema: StandardSchema, refused: (issues: string) => Error): Validate {
  const validate = standardValidate(schema);
  const take = (result: StandardResult<unknown>) => {
    if (result.issues !== undefined) {
      throw refused(result.issues.map(formatIssue).join("; "));
    }
    return result.value;
  };
  return (value) => {
    const result = validate(value);
    return isPromise(result) ? result.then(take) : take(result);
  };
}

/** Formats an issue as the core does: location and rule. */
function formatIssue({ message, path }: StandardIssue): string {
  const steps = (path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  const pointer = steps.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  return `at ${pointer === "" ? "the root" : pointer}: ${message.slice(0, 1).toLowerCase()}${message.slice(1)}`;
}
