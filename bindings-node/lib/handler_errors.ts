/** Unexpected errors of handlers, and the function of the program that receives them. */

import { errorText, warn } from "./client/host.js";
import type { Context } from "./context.js";
import {
  isForModel,
  NotSupportedError,
  ResourceNotFoundError,
  RpcError,
  UrlElicitationRequiredError,
} from "./errors.js";
import { isPromise } from "./is_promise.js";
import type { FeatureKind } from "./native.js";

/**
 * A handler that failed.
 *
 * @typeParam C Type of {@link Context.context}.
 * @typeParam State Type of {@link Context.state}.
 */
export interface FailedHandler<C = unknown, State = unknown> {
  /**
   * What the handler belongs to. `event`: {@link Server.onInitialized} or {@link Server.onRootsChanged}. `http_client` and
   * `credential`: functions of {@link Server.addOpenApi}. `sharing`: methods of {@link ServerSettings.sharing}.
   */
  readonly kind: FeatureKind;
  /**
   * Name of the tool or prompt, URI or URI template of the resource, or method. For completions: name of the prompt or
   * URI template, and empty for {@link Server.completion}. For lists of a template's resources: the URI template. For routes: the path. For middleware: name of the function. For
   * `http_client`: `fetch`. For `credential`: name of the security scheme. For `sharing`: part and method, such as `sessions.save`.
   */
  readonly name: string;
  /** The request context. */
  readonly ctx: Context<C, State>;
}

/**
 * Called with the errors of handlers; see {@link ServerOptions.onError}. A {@link ToolError} or {@link RpcError} that it
 * returns is the error for the model or the client.
 */
export type OnError<C = unknown, State = unknown> = (error: unknown, failed: FailedHandler<C, State>) => unknown;

/** Whether an error is neither for the client nor for the model, and so is a bug or an outage. */
export function isUnexpected(error: unknown): boolean {
  try {
    const isForClient =
      error instanceof RpcError ||
      error instanceof ResourceNotFoundError ||
      error instanceof UrlElicitationRequiredError ||
      (error instanceof NotSupportedError && error.required !== undefined);
    return !isForClient && !isForModel(error);
  } catch {
    // A proxy may throw.
    return true;
  }
}

/** Passes an error to the program. Returns the error to respond with: that of the program if it returns one. */
export function report<C, State>(onError: OnError<C, State>, error: unknown, failed: FailedHandler<C, State>): unknown {
  const failure = (reason: unknown) => {
    warn(`\`onError\` failed for ${errorText(error)}`, reason);
  };
  try {
    const reported = onError(error, failed);
    if (isPromise(reported)) {
      reported.then(undefined, failure);
    } else if (reported instanceof Error && !isUnexpected(reported)) {
      return reported;
    }
  } catch (reason) {
    failure(reason);
  }
  return error;
}
