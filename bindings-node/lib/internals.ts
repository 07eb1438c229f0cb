/** The package, and parts of it that only its tests use. It is built like the package, and not published. */

export * from "./index.js";
export { captureContext, contextOf } from "./async_context.js";
export { errorOf, isForModel } from "./errors.js";
export { native } from "./native.js";
export { RecentValues } from "./recent_values.js";
export { liveSpans } from "./request_spans.js";
