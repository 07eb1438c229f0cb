/**
 * Asynchronous contexts (`AsyncLocalStorage`) of requests.
 *
 * Calls reach this thread through queues, which lose the context that the program had when it passed on the request.
 * Each call names where it came from, and its handler runs in the context of that.
 */

import { AsyncResource } from "node:async_hooks";

/** A context to run functions in. */
export type AsyncContext = AsyncResource;

/** Captures the current context. */
export function captureContext(): AsyncContext {
  return new AsyncResource("McplineRequest");
}

/** Contexts by the number of their HTTP exchange or channel (`hub.ts`, column of calls). */
const origins = new Map<number, AsyncContext>();

/** Runs calls with this origin in a context, until {@link endOrigin}. */
export function beginOrigin(number: number, context: AsyncContext): void {
  origins.set(number, context);
}

/** Reverts {@link beginOrigin}. */
export function endOrigin(number: number): void {
  origins.delete(number);
}

/** Returns the context of a call's origin. */
export function contextOf(origin: number): AsyncContext | undefined {
  return origins.get(origin);
}
