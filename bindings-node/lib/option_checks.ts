/** Checks of what programs pass: names and values of options, functions and strings. JavaScript programs are not type-checked. */

import { UsageError } from "./errors.js";

/** Names of options that other libraries use, and those of this library. */
const FOREIGN_NAMES: Readonly<Record<string, string>> = {
  inputSchema: "input",
  params: "input",
  parameters: "input",
  schema: "input",
  paramsSchema: "params",
  outputSchema: "output",
  input: "params",
  tools: "names",
  argsSchema: "arguments",
  args: "arguments",
  _meta: "meta",
  completer: "complete",
  authInfo: "auth",
};

/** Number of edits (insertions, deletions, replacements, swaps of neighbours) that turn one name into another. */
function editDistance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      let distance = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (isSame ? 0 : 1),
      );
      if (row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]) {
        distance = Math.min(distance, (beforeLast[column - 2] as number) + 1);
      }
      current.push(distance);
    }
    beforeLast = last;
    last = current;
  }
  return last[other.length] as number;
}

/** Returns the name that was probably meant: one of another library, or one that is a few edits away. */
export function closestName(name: string, known: readonly string[]): string | undefined {
  const foreign = Object.hasOwn(FOREIGN_NAMES, name) ? FOREIGN_NAMES[name] : undefined;
  if (foreign !== undefined && known.includes(foreign)) {
    return foreign;
  }
  // Names in snake case are those of Python.
  const written = name.replaceAll("_", "").toLowerCase();
  let best: string | undefined;
  let least = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(written, candidate.toLowerCase());
    if (distance < least) {
      [best, least] = [candidate, distance];
    }
  }
  return best;
}

/**
 * Checks that an argument is an object with these options only.
 *
 * @param where What the options belong to, for the message: ``tool `forecast` ``.
 */
export function checkOptions(where: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) {
    const hint = typeof options === "function" ? ": pass `{}` before the handler" : "";
    throw new UsageError(`${where}: options must be an object, not ${typeName(options)}${hint}`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name) && (options as Record<string, unknown>)[name] !== undefined) {
      const closest = closestName(name, known);
      const rest = closest === undefined ? `the options are ${known.join(", ")}` : `did you mean \`${closest}\`?`;
      throw new UsageError(`${where}: unknown option \`${name}\`; ${rest}`);
    }
  }
}

/** What a value must be, for messages, and whether a value is that. */
export type Expected = readonly [what: string, isMet: (value: unknown) => boolean];

export const STRING: Expected = ["a string", (value) => typeof value === "string"];
export const NUMBER: Expected = ["a number", (value) => typeof value === "number"];
export const BOOLEAN: Expected = ["a boolean", (value) => typeof value === "boolean"];
export const FUNCTION: Expected = ["a function", (value) => typeof value === "function"];
export const OBJECT: Expected = ["an object", isObject];
export const STRINGS: Expected = [
  "an array of strings",
  (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
];

/**
 * Checks the values of options. Those without a rule are not checked.
 *
 * @param where What the options belong to, for the message: ``tool `forecast` ``.
 * @param isNullable Whether `null` removes a value.
 */
export function checkValues(
  where: string,
  options: object,
  expected: Readonly<Record<string, Expected>>,
  isNullable = false,
): void {
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    const rule = Object.hasOwn(expected, name) ? expected[name] : undefined;
    if (rule === undefined || value === undefined || (isNullable && value === null)) {
      continue;
    }
    const [what, isMet] = rule;
    if (!isMet(value)) {
      const given = Array.isArray(value) && what.startsWith("an array") ? "an array of other values" : typeName(value);
      throw new UsageError(`${where}: \`${name}\` must be ${what}, not ${given}`);
    }
  }
}

/** Whether a value is an object and not an array. */
export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value can be the option `logger`. */
export function isLogger(value: unknown): boolean {
  return isObject(value) && "info" in value && typeof value.info === "function";
}

/** Checks that a handler is a function. */
export function checkHandler(where: string, handler: unknown): void {
  if (typeof handler !== "function") {
    throw new UsageError(`${where}: the handler must be a function, not ${typeName(handler)}`);
  }
}

/** Checks that a name, URI or method is a string. */
export function checkName(what: string, name: unknown): void {
  if (typeof name !== "string") {
    throw new UsageError(`${what} must be a string, not ${typeName(name)}`);
  }
}

/** Checks that the members of an object are arrays of strings. */
export function checkLists(where: string, lists: object): void {
  for (const [name, values] of Object.entries(lists)) {
    if (values !== undefined && !(Array.isArray(values) && values.every((value) => typeof value === "string"))) {
      throw new UsageError(`\`${name}\` of ${where} must be an array of strings`);
    }
  }
}

/** Returns the kind of a value, for messages. */
export function typeName(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}
