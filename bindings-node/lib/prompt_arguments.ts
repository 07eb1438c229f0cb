/** Arguments of prompts: from options by name, or from the schema of a library. */

import { RpcError, UsageError } from "./errors.js";
import type { Completer, Completers, PromptArgumentOptions, PromptOptions } from "./feature_options.js";
import type { PromptArgument } from "./protocol.js";
import { isSchemaOrShape, type Schema, usableSchema, type Validate } from "./schemas.js";

/** The arguments of a prompt as they are listed, validated and completed. */
interface UsableArguments {
  readonly list: PromptArgument[];
  /** Validates and converts the arguments; `undefined` if they stay strings. */
  readonly validate: Validate | undefined;
  readonly complete: Completers;
}

/**
 * Prepares the arguments of a prompt.
 *
 * @throws UsageError if the schema cannot be converted or is not that of an object, or a completion names no argument.
 */
export function usableArguments(prompt: string, { arguments: given = {}, complete }: PromptOptions): UsableArguments {
  const where = `prompt \`${prompt}\``;
  const isSchema = isSchemaOrShape(given);
  const fromSchema = isSchema ? argumentsOfSchema(where, given) : undefined;
  const options = isSchema ? {} : (given as Record<string, PromptArgumentOptions>);
  const list = fromSchema?.list ?? Object.entries(options).map(([name, options]) => argumentOf(name, options));
  const completers = new Map<string, Completer>();
  for (const [name, options_] of Object.entries(options)) {
    if (options_.complete !== undefined) {
      completers.set(name, options_.complete);
    }
  }
  for (const [name, completer] of Object.entries(complete ?? {})) {
    if (!list.some((argument) => argument.name === name)) {
      const names = list.map(({ name }) => name).join(", ");
      throw new UsageError(`${where}: \`complete\` names no argument: \`${name}\`; it has ${names || "none"}`);
    }
    if (completer !== undefined) {
      completers.set(name, completer);
    }
  }
  return { list, validate: fromSchema?.validate, complete: Object.fromEntries(completers) };
}

function argumentOf(name: string, { complete: _, required, ...rest }: PromptArgumentOptions): PromptArgument {
  return { name, ...rest, required: required ?? true };
}

function argumentsOfSchema(where: string, schema: Schema): { list: PromptArgument[]; validate: Validate | undefined } {
  const { json, validate } = usableSchema(schema, "input", `${where}: \`arguments\``, invalidArguments);
  const { properties, required } = json as { properties?: Record<string, unknown>; required?: string[] };
  if (typeof properties !== "object") {
    throw new UsageError(`${where}: \`arguments\` must be the schema of an object with properties`);
  }
  const list = Object.entries(properties).map(([name, property]): PromptArgument => {
    const { title, description } = Object(property) as { title?: string; description?: string };
    return {
      name,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      required: required?.includes(name) === true,
    };
  });
  return { list, validate };
}

/** The response to a request whose arguments do not match the schema. */
function invalidArguments(issues: string): RpcError {
  return new RpcError(-32602, `arguments: ${issues}`);
}
