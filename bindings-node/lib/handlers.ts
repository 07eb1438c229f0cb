/** The handlers of a server: running them for calls, and ending the calls with their outcomes. */

import type { AsyncContext } from "./async_context.js";
import { Context } from "./context.js";
import { type FailedHandler, isUnexpected, type OnError, report } from "./handler_errors.js";
import { finish as finishCall, hub, Kind } from "./hub.js";
import { isPromise } from "./is_promise.js";
import { finishFailed } from "./results.js";
import type { Server } from "./server.js";

/** A handler, and the feature that it belongs to. */
export interface RegisteredHandler extends Omit<FailedHandler, "ctx"> {
  /** Calls the handler with its input, which is JSON. Returns the outcome, or a promise of it. */
  readonly run: (ctx: Context, input: string) => unknown;
  /** Ends the call with the outcome. The call fails if this throws, or if it returns a promise that is rejected. */
  readonly finish: (call: number, value: unknown) => unknown;
}

/** The handlers of a server by number. The core gets the number with the feature, and passes it with each call. */
export class HandlerTable {
  readonly #handlers = new Map<number, RegisteredHandler>();
  #last = 0;

  constructor(
    private readonly server: Server,
    private readonly onError: OnError | undefined,
  ) {}

  /** Adds a handler and returns its number. */
  add(handler: RegisteredHandler): number {
    this.#handlers.set(++this.#last, handler);
    return this.#last;
  }

  delete(number: number): void {
    this.#handlers.delete(number);
  }

  /** Runs a handler for a call, in the asynchronous context. */
  run(context: AsyncContext, number: number, call: number, input: string): void {
    context.runInAsyncScope(this.#run, this, number, call, input);
  }

  #run(number: number, call: number, input: string): void {
    const handler = this.#handlers.get(number);
    if (handler === undefined) {
      finishCall(call, Kind.InternalFailure, "the handler was removed");
      return;
    }
    const ctx = new Context(call, this.server);
    try {
      this.#end(handler, ctx, handler.run(ctx, input));
    } catch (error) {
      this.#fail(handler, ctx, error);
    }
  }

  /** Ends a call with the return value of its handler, or with the value of the promise. */
  #end(handler: RegisteredHandler, ctx: Context, result: unknown): void {
    const fail = (error: unknown) => {
      this.#fail(handler, ctx, error);
    };
    const finish = (value: unknown) => {
      const finished = handler.finish(ctx.call, value);
      if (isPromise(finished)) {
        finished.then(undefined, fail);
      }
    };
    if (!isPromise(result)) {
      finish(result);
      return;
    }
    result.then((value) => {
      try {
        finish(value);
      } catch (error) {
        fail(error);
      }
    }, fail);
  }

  #fail({ kind, name }: RegisteredHandler, ctx: Context, error: unknown): void {
    let response = error;
    if (this.onError !== undefined && isUnexpected(error) && !hub.callCancelled(ctx.call)) {
      response = report(this.onError, error, { kind, name, ctx });
    }
    finishFailed(ctx.call, response);
  }
}
