/** Questions to the client, in both styles: awaited in mid-call (`Context`), and returned ({@link InputRequired}). */

import { jsonSchemaOf, type Schema } from "./schemas.js";
import type { CreateMessageParams, JsonSchema } from "./protocol.js";

/** A question: a method of the protocol that a server may ask with, and its parameters. */
export interface Question {
  readonly method: string;
  readonly params?: object | undefined;
}

/**
 * Asks the user with a form (`client/elicitation`, form mode).
 *
 * @param schema An object schema with properties of plain types; without one the user may only accept or decline.
 */
export function elicitForm(message: string, schema?: Schema): Question {
  const requestedSchema = schema === undefined ? { type: "object", properties: {} } : formSchema(schema);
  return { method: "elicitation/create", params: { message, requestedSchema } };
}

/** Asks the user to visit a page (`client/elicitation`, URL mode; 2025-11-25 and later). */
export function elicitUrl(message: string, url: string, elicitationId?: string): Question {
  const id = elicitationId === undefined ? {} : { elicitationId };
  return { method: "elicitation/create", params: { mode: "url", message, url, ...id } };
}

/**
 * Asks the client's model (`client/sampling`).
 *
 * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
 */
export function sample(params: CreateMessageParams): Question {
  return { method: "sampling/createMessage", params };
}

/**
 * Asks for the client's root directories (`client/roots`).
 *
 * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
 */
export function listRoots(): Question {
  return { method: "roots/list" };
}

/**
 * Returned by a handler instead of a result: questions that the client is to answer before the handler is called again,
 * from its start, with the answers in {@link Context.inputResponses}. Works toward clients of every revision.
 */
export class InputRequired {
  /**
   * @param requests The questions, each by a key of your choice.
   * @param state What the handler wants to remember: {@link Context.requestState} of its next run.
   */
  constructor(
    readonly requests: Readonly<Record<string, Question>>,
    readonly state?: string,
  ) {}
}

/** A schema of a form: what libraries add that the protocol has no place for is taken away. */
function formSchema(schema: Schema): JsonSchema {
  const { properties, required } = jsonSchemaOf(schema, "input", "the form");
  return { type: "object", properties: properties ?? {}, ...(required === undefined ? {} : { required }) };
}
