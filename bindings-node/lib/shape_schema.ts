/** Shapes: objects whose properties are schemas of a library, as in `{ city: z.string() }`. */

import { isPromise } from "./is_promise.js";
import type { SchemaShape, StandardIssue, StandardResult, StandardSchema } from "./schemas.js";
import { isRequired, standardValidate, type StandardValidate } from "./standard_validation.js";

type Side = "input" | "output";
type Converter = (options: { readonly target: string }) => Record<string, unknown>;

/** Returns the schema of an object with these properties. Other properties of a value are left out. */
export function schemaOfShape(shape: SchemaShape): StandardSchema {
  const entries = Object.entries(shape);
  const validates = entries.map(([name, schema]) => [name, standardValidate(schema)] as const);
  const convert = (side: Side): Converter | undefined => {
    const converters = entries.map(([name, schema]) => [name, schema["~standard"].jsonSchema?.[side]] as const);
    if (converters.some(([, convert]) => convert === undefined)) {
      return undefined;
    }
    return (options) => {
      const properties: Record<string, unknown> = {};
      for (const [name, convert] of converters) {
        const { $schema: _, ...schema } = (convert as Converter)(options);
        properties[name] = relocated(schema, `#/properties/${pointerToken(name)}`);
      }
      const required = entries.filter(([, schema]) => isRequired(schema, side)).map(([name]) => name);
      // Validation leaves out other properties, so that a result has none.
      const closed = side === "output" ? { additionalProperties: false } : {};
      return { type: "object", properties, ...(required.length === 0 ? {} : { required }), ...closed };
    };
  };
  const [input, output] = [convert("input"), convert("output")];
  const vendor = entries[0]?.[1]["~standard"].vendor ?? "mcpline";
  const jsonSchema = input === undefined || output === undefined ? undefined : { input, output };
  return {
    "~standard": { version: 1, vendor, validate: (value) => validate(validates, value), jsonSchema },
  };
}

function validate(
  entries: readonly (readonly [string, StandardValidate])[],
  value: unknown,
): StandardResult<unknown> | Promise<StandardResult<unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { issues: [{ message: "must be an object" }] };
  }
  const given = value as Record<string, unknown>;
  const results = entries.map(([name, validate]) =>
    // Not inherited members, such as `constructor`.
    validate(Object.hasOwn(given, name) ? given[name] : undefined),
  );
  const join = (results: readonly StandardResult<unknown>[]) => joined(entries, given, results);
  if (results.some(isPromise)) {
    return Promise.all(results.map(async (result) => result)).then(join);
  }
  return join(results as readonly StandardResult<unknown>[]);
}

/** Joins the results of the properties: all their issues, or the object of their values. */
function joined(
  entries: readonly (readonly [string, unknown])[],
  given: Record<string, unknown>,
  results: readonly StandardResult<unknown>[],
): StandardResult<unknown> {
  const issues: StandardIssue[] = [];
  const values: [string, unknown][] = [];
  results.forEach((result, index) => {
    const [name] = entries[index] as readonly [string, unknown];
    if (result.issues !== undefined) {
      issues.push(...result.issues.map(({ message, path }) => ({ message, path: [name, ...(path ?? [])] })));
    } else if (result.value !== undefined || Object.hasOwn(given, name)) {
      values.push([name, result.value]);
    }
  });
  // As own members, whatever their names are.
  return issues.length > 0 ? { issues } : { value: Object.fromEntries(values) };
}

/** Makes references within a schema point to its place in another. */
function relocated(schema: unknown, root: string): unknown {
  if (Array.isArray(schema)) {
    return schema.map((item) => relocated(item, root));
  }
  if (typeof schema !== "object" || schema === null) {
    return schema;
  }
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      name === "$ref" && typeof value === "string" && value.startsWith("#")
        ? `${root}${value.slice(1)}`
        : relocated(value, root),
    ]),
  );
}

function pointerToken(name: string): string {
  return encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));
}
