/** Checks of the arguments of requests. Other libraries take one object, and the protocol's references. */

import { UsageError } from "../errors.js";
import { isObject, typeName } from "../option_checks.js";

/**
 * Checks the name that a method takes as its first argument.
 *
 * @param method Name of the method.
 * @param what What the argument is, for the message.
 */
export function checkNamed(method: string, what: string, name: unknown): void {
  if (typeof name === "string") {
    return;
  }
  const given = isObject(name) ? (name as { name?: unknown }).name : undefined;
  const hint = typeof given === "string" ? `: call \`${method}(${JSON.stringify(given)}, { … })\`` : "";
  throw new UsageError(`\`${method}\`: ${what} must be a string, not ${typeName(name)}${hint}`);
}

/** Checks the URI that a method takes as its first argument. */
export function checkUri(method: string, uri: unknown): void {
  if (typeof uri === "string" || uri instanceof URL) {
    return;
  }
  const given = isObject(uri) ? (uri as { uri?: unknown }).uri : undefined;
  const hint = typeof given === "string" ? `: call \`${method}(${JSON.stringify(given)})\`` : "";
  throw new UsageError(`\`${method}\`: the URI must be a string or a URL, not ${typeName(uri)}${hint}`);
}

/** Checks what to complete an argument of, and returns the protocol's reference to it. */
export function referenceOf(of: unknown): object {
  const { prompt, template } = Object(of) as { prompt?: unknown; template?: unknown };
  if (typeof prompt === "string") {
    return { type: "ref/prompt", name: prompt };
  }
  if (typeof template === "string") {
    return { type: "ref/resource", uri: template };
  }
  const { name, uri } = Object(of) as { name?: unknown; uri?: unknown };
  const given =
    typeof name === "string"
      ? `{ prompt: ${JSON.stringify(name)} }`
      : `{ template: ${typeof uri === "string" ? JSON.stringify(uri) : "…"} }`;
  const either = typeof name === "string" || typeof uri === "string" ? given : `{ prompt: … } or ${given}`;
  throw new UsageError(`\`complete\`: the first argument must be ${either}`);
}
