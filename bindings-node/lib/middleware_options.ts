/** Options of the middleware that the library provides, for servers and for clients. */

import { fileURLToPath } from "node:url";

import { UsageError } from "./errors.js";
import { checkLists, checkOptions } from "./option_checks.js";
import { optionNames, snakeCase } from "./option_names.js";
import { count, secondsFromMs, shown } from "./settings.js";

/** The form of an option. */
type Form = "count" | "time" | "list" | "text" | "path" | "flag";

/** The form of each option of a middleware. */
export type OptionForms<T> = Readonly<Record<keyof T, Form>>;

/** Returns the forms of all options of a type. The compiler checks that none is missing. */
export function optionForms<T>(forms: Record<keyof T, Form>): OptionForms<T> {
  optionNames<T>(forms);
  return forms;
}

/**
 * Checks the form of a middleware's options, and returns its definition for the core, which checks what they mean.
 *
 * @param kind Name of the function that creates the middleware.
 * @param needed The option that must be given.
 */
export function coreDefinition<T extends object>(
  kind: string,
  options: T,
  forms: OptionForms<T>,
  needed?: keyof T & string,
): object {
  const where = `\`${kind}\``;
  checkOptions(where, options, Object.keys(forms));
  if (needed !== undefined && options[needed] === undefined) {
    throw new UsageError(`${where}: \`${needed}\` is missing`);
  }
  const core: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) {
      core[snakeCase(name)] = converted(where, name, forms[name as keyof T], value);
    }
  }
  return { [snakeCase(kind)]: core };
}

function converted(where: string, name: string, form: Form, value: unknown): unknown {
  switch (form) {
    case "count":
      return count(name, value);
    case "time":
      return secondsFromMs(name, value);
    case "list":
      checkLists(where, { [name]: value });
      // A copy, because the program may change it later.
      return [...(value as string[])];
    case "text":
      return ofType(name, value, "string");
    case "path":
      return value instanceof URL ? fileURLToPath(value) : ofType(name, value, "string");
    case "flag":
      return ofType(name, value, "boolean");
  }
}

function ofType(name: string, value: unknown, type: "string" | "boolean"): unknown {
  if (typeof value !== type) {
    throw new UsageError(`\`${name}\` must be a ${type}, not ${shown(value)}`);
  }
  return value;
}
