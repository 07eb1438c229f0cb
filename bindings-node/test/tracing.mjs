// The OpenTelemetry of a test program: the real SDK, whose spans stay in memory.

import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from "@opentelemetry/core";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";

/** Spans that have begun and have not ended, and those that have ended, in the order of their ends. */
export class Spans {
  open = new Set();
  #ended = new WeakSet();
  ended = [];

  onStart(span) {
    this.open.add(span);
  }

  onEnd(span) {
    if (this.#ended.has(span)) {
      throw new Error(`the span ${span.name} has ended twice`);
    }
    this.#ended.add(span);
    this.open.delete(span);
    this.ended.push(span);
  }

  forceFlush() {
    return Promise.resolve();
  }

  shutdown() {
    return Promise.resolve();
  }

  /** Waits until this many spans have ended and none is open, and takes them. */
  async take(count) {
    const deadline = Date.now() + 20_000;
    while (this.ended.length < count || this.open.size > 0) {
      if (Date.now() > deadline) {
        const open = [...this.open].map(({ name }) => name);
        throw new Error(`ended: ${this.ended.map(({ name }) => name)}; open: ${open}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return this.ended.splice(0);
  }
}

/** Registers the SDK, and returns the spans that it makes. */
export function setUp({ sampler, contexts = true, propagator } = {}) {
  const spans = new Spans();
  if (contexts) {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  }
  const propagators = [new W3CTraceContextPropagator(), new W3CBaggagePropagator()];
  propagation.setGlobalPropagator(propagator ?? new CompositePropagator({ propagators }));
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [spans], ...(sampler && { sampler }) }));
  return spans;
}

/** Reverts `setUp`. */
export function tearDown() {
  trace.disable();
  propagation.disable();
  context.disable();
}

/** Runs a function in an active span. */
export function inSpan(name, run) {
  return trace.getTracer("test").startActiveSpan(name, async (span) => {
    try {
      return await run(span);
    } finally {
      span.end();
    }
  });
}

/** Returns the only span of a kind with this name. */
export function only(spans, kind, name) {
  const found = spans.filter((span) => span.kind === kind && span.name === name);
  if (found.length !== 1) {
    const all = spans.map((span) => `${span.kind} ${span.name}`).join(", ");
    throw new Error(`there are ${found.length} spans ${kind} ${name} in ${all}`);
  }
  return found[0];
}

export const idOf = (span) => span.spanContext().spanId;
export const parentOf = (span) => span.parentSpanContext?.spanId;
export const traceOf = (span) => span.spanContext().traceId;
