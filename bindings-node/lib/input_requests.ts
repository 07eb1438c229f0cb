/**
 * Input requests of a server, sent during a call ({@link Context}) or returned by a handler ({@link InputRequired}).
 */

import { type Form, formOf, type Schema } from "./schemas.js";
import type { CreateMessageParams } from "./protocol.js";

/** An input request: method and parameters. */
export interface InputRequest {
  readonly method: string;
  readonly params?: object | undefined;
}

/**
 * Returns an elicitation with a form (`client/elicitation`, form mode).
 *
 * @param message Message to the user.
 * @param schema The form: the schema of an object with properties of primitive types, or that of a single value, which
 *   the user's answer has as `value`. Without a schema the user can only accept or decline.
 */
export function elicitForm(message: string, schema?: Schema): InputRequest {
  return formRequest(message, schema === undefined ? undefined : formOf(schema, "`schema` of the form"));
}

/** Returns the elicitation with a form that {@link formOf} has made. */
export function formRequest(message: string, form: Form | undefined): InputRequest {
  const requestedSchema = form?.schema ?? { type: "object", properties: {} };
  return { method: "elicitation/create", params: { message, requestedSchema } };
}

/**
 * Returns a URL elicitation (`client/elicitation`, URL mode; 2025-11-25 and later).
 *
 * @param message Message to the user.
 * @param url URL to open.
 * @param elicitationId Id for {@link Server.notifyElicitationComplete} (2025-11-25).
 */
export function elicitUrl(message: string, url: string, elicitationId?: string): InputRequest {
  const id = elicitationId === undefined ? {} : { elicitationId };
  return { method: "elicitation/create", params: { mode: "url", message, url, ...id } };
}

/**
 * Returns a sampling request (`client/sampling`).
 *
 * Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
 */
export function sample(params: CreateMessageParams): InputRequest {
  return { method: "sampling/createMessage", params };
}

/**
 * Returns a request for the client's root directories (`client/roots`).
 *
 * Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
 */
export function listRoots(): InputRequest {
  return { method: "roots/list" };
}

/**
 * A request for input, returned by a handler instead of a result (`basic/patterns/mrtr`).
 *
 * The handler is called again with the client's answers; see {@link Context.inputResponses}. Works with clients of
 * every revision.
 */
export class InputRequired {
  /**
   * @param requests The input requests, by a key of your choice.
   * @param state State of the handler, for {@link Context.requestState} in its next run.
   */
  constructor(
    readonly requests: Readonly<Record<string, InputRequest>>,
    readonly state?: string,
  ) {}
}
