/** The handlers of a server: running them for calls, and ending the calls with their outcomes. */

import type { AsyncContext } from "./async_context.js";
import { Context } from "./context.js";
import { type FailedHandler, isUnexpected, type OnError, report } from "./handler_errors.js";
import { finish as finishCall, hub, ResultKind } from "./hub.js";
import { isPromise } from "./is_promise.js";
import { type RequestSpan, spanOfCall } from "./request_spans.js";
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

  /** Runs a handler for a call, in the asynchronous context. `span` is the number of the request if it is traced, or 0. */
  run(context: AsyncContext, number: number, call: number, input: string, span: number): void {
    context.runInAsyncScope(this.#run, this, number, call, input, span);
  }

  #run(number: number, call: number, input: string, spanNumber: number): void {
    const handler = this.#handlers.get(number);
    if (handler === undefined) {
      finishCall(call, ResultKind.InternalFailure, "the handler was removed");
      return;
    }
    const ctx = new Context(call, this.server);
    const span = spanNumber === 0 ? undefined : spanOfCall(spanNumber, call);
    if (span === undefined) {
      this.#start(handler, ctx, input, undefined);
    } else {
      span.run(() => {
        this.#start(handler, ctx, input, span);
      });
    }
  }

  #start(handler: RegisteredHandler, ctx: Context, input: string, span: RequestSpan | undefined): void {
    try {
      this.#end(handler, ctx, handler.run(ctx, input), span);
    } catch (error) {
      this.#fail(handler, ctx, error, span);
    }
  }

  /** Ends a call with the return value of its handler, or with the value of the promise. */
  #end(handler: RegisteredHandler, ctx: Context, result: unknown, span: RequestSpan | undefined): void {
    const fail = (error: unknown) => {
      this.#fail(handler, ctx, error, span);
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

  #fail({ kind, name }: RegisteredHandler, ctx: Context, error: unknown, span: RequestSpan | undefined): void {
    let response = error;
    const isObserved = this.onError !== undefined || span !== undefined;
    if (isObserved && isUnexpected(error) && !hub.callCancelled(ctx.call)) {
      span?.recordException(error);
      if (this.onError !== undefined) {
        response = report(this.onError, error, { kind, name, ctx });
      }
    }
    finishFailed(ctx.call, response);
  }
}
