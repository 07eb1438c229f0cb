/** Values that may come later. */

/** Whether a value is a promise, or behaves like one. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
