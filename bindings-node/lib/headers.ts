/** HTTP headers, as programs pass them. */

import { UsageError } from "./errors.js";
import { isObject, typeName } from "./option_checks.js";

/**
 * Converts the option `headers` to pairs.
 *
 * @param where What the option belongs to, for messages.
 * @throws UsageError if it has another form, or a name or value is not a string.
 */
export function headerPairs(where: string, headers: unknown): (readonly [string, string])[] {
  const isPairs = typeof headers === "object" && headers !== null && Symbol.iterator in headers;
  if (!isPairs && !isObject(headers)) {
    throw new UsageError(`${where}: \`headers\` must be an object or pairs of strings, not ${typeName(headers)}`);
  }
  const pairs: unknown[] = isPairs ? [...(headers as Iterable<unknown>)] : Object.entries(headers);
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2 || typeof pair[0] !== "string") {
      throw new UsageError(`${where}: \`headers\` must have pairs of strings, such as ["x-tenant", "7"]`);
    }
    if (typeof pair[1] !== "string") {
      throw new UsageError(`${where}: header \`${pair[0]}\` must be a string, not ${typeName(pair[1])}`);
    }
  }
  return pairs as [string, string][];
}
