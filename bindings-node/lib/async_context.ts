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

/** The context in which this module was loaded, which is that of no request. */
const neutral = new AsyncResource("Mcpline");

/** Contexts by the number of their HTTP exchange, channel or passed request (`hub.ts`, column of calls). */
const origins = new Map<number, AsyncContext>();

/** Runs calls with this origin in a context, until {@link endOrigin}. */
export function beginOrigin(number: number, context: AsyncContext): void {
  origins.set(number, context);
}

/** Reverts {@link beginOrigin}. */
export function endOrigin(number: number): void {
  origins.delete(number);
}

/**
 * Returns the context of a call: that of its origin, or `other` if it has none (0). If neither is known, it is that of no
 * request: the current context may be that of another caller, whose calls are drained in the same turn.
 */
export function contextOf(origin: number, other: AsyncContext | undefined): AsyncContext {
  return (origin === 0 ? other : origins.get(origin)) ?? neutral;
}
