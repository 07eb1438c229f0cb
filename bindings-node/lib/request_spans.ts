/**
 * Spans of the requests that servers of this thread answer, in the program's OpenTelemetry.
 *
 * The core reports each request when it has ended, with the name and the attributes of its span (`core`,
 * `foreign/request_spans.rs`). A span is created earlier if a handler of the request begins, so that it is the parent of the
 * handler's own spans.
 */

import { hub, onSpanEnded } from "./hub.js";
import type { NativeServer } from "./native.js";
import {
  activeCarrier,
  activeContext,
  activeSpan,
  type Attributes,
  beginSpan,
  type Carrier,
  extract,
  guarded,
  isSetUp,
  recordException,
  remoteContext,
  runIn,
  setFailed,
  type Span,
  SpanKind,
  type HrTime,
  withSpan,
} from "./open_telemetry.js";

/** What the span of a request begins with. */
interface Beginning {
  name: string;
  /** Nanoseconds since 1970. */
  start: number;
  attributes: Attributes;
  parent: Carrier;
  link: Carrier;
}

/** What the span of a request ends with. */
interface SpanEnding {
  number: number;
  /** Nanoseconds since 1970. */
  end: number;
  attributes: Attributes;
  /** Text of the error; `null` if the request succeeded. */
  error: string | null;
  /** Present if no handler has begun. */
  description?: Beginning;
}

/** The key in contexts of the request whose handlers run in them. */
const REQUEST = Symbol("mcpline request");

/** The span of a request whose handler has begun. */
export class RequestSpan {
  constructor(
    readonly span: Span,
    private readonly carrier: Carrier,
  ) {}

  /**
   * Runs a handler or a middleware of the request in the context of the span. What a middleware has passed on runs in its
   * context, where a span of its own may be active.
   */
  run(handle: () => void): void {
    const active = activeContext();
    if (active.getValue(REQUEST) === this) {
      handle();
      return;
    }
    const context = withSpan(extract(this.carrier, active), this.span).setValue(REQUEST, this);
    runIn(context, handle);
  }

  /** Adds an exception that a handler has thrown. */
  recordException(error: unknown): void {
    recordException(this.span, error);
  }
}

/**
 * The spans of requests whose handlers have begun, by number. The core reports the end of each of these requests, once, after
 * its handler has begun.
 *
 * @internal
 */
export const liveSpans = new Map<number, RequestSpan>();

/**
 * Returns the span of a request whose handler begins. The first handler creates it. `undefined` if the request has ended.
 *
 * @param number Number of the request.
 */
export function spanOfCall(number: number, call: number): RequestSpan | undefined {
  const known = liveSpans.get(number);
  if (known !== undefined) {
    return known;
  }
  const json = hub.beginSpan(call);
  if (json === null) {
    return undefined;
  }
  const beginning = JSON.parse(json) as Beginning;
  const span = begin(beginning);
  if (span === undefined) {
    return undefined;
  }
  const live = new RequestSpan(span, beginning.parent);
  liveSpans.set(number, live);
  return live;
}

/**
 * Maximum number of ended spans whose traces are remembered for the records of their requests. A record directly follows the end
 * of its span, apart from those of other threads.
 */
const MAX_RECENT_TRACES = 64;

/** The traces of requests whose spans have just ended, by the number of the request. */
const recentTraces = new Map<number, string>();

/** Returns the id of the trace that a request has begun, once. */
export function takeTraceId(number: number): string | undefined {
  const traceId = recentTraces.get(number);
  recentTraces.delete(number);
  return traceId;
}

function rememberTrace(number: number, traceId: string): void {
  if (/^0*$/.test(traceId)) {
    // The span is not of a trace: it comes from a provider that does nothing.
    return;
  }
  recentTraces.set(number, traceId);
  for (const oldest of recentTraces.keys()) {
    if (recentTraces.size <= MAX_RECENT_TRACES) {
      break;
    }
    recentTraces.delete(oldest);
  }
}

/** Ends the span of a request that has ended. `json` describes its end. */
export function endRequestSpan(json: string): void {
  const { number, end, attributes, error, description } = JSON.parse(json) as SpanEnding;
  let span;
  if (description === undefined) {
    span = liveSpans.get(number)?.span;
    liveSpans.delete(number);
  } else {
    span = begin(description);
  }
  const ended = span;
  if (ended !== undefined) {
    guarded(() => {
      rememberTrace(number, ended.spanContext().traceId);
      ended.setAttributes(attributes);
      if (error !== null) {
        setFailed(ended, error);
      }
      ended.end(timeOf(end));
    });
  }
}

/**
 * Begins the span of a request. Its parent is the one that the message names, or the span of the HTTP request. Without either it
 * has no parent: what is active is the context of the code that serves, such as that of the whole program.
 */
function begin({ name, start, attributes, parent, link }: Beginning): Span | undefined {
  return beginSpan({
    name,
    kind: SpanKind.Server,
    attributes,
    parent: remoteContext(parent),
    link,
    start: timeOf(start),
  });
}

const SECOND = 1e9;

function timeOf(nanoseconds: number): HrTime {
  const rest = nanoseconds % SECOND;
  return [(nanoseconds - rest) / SECOND, rest];
}

/** Whether the requests of a server have spans. */
export class RequestTracing {
  #isTraced = false;

  /**
   * The span that was active at the previous request: one that is active for several requests is that of the program, in which
   * its HTTP server began to listen, and not of a request.
   */
  #lastOuter: WeakRef<Span> | undefined;

  constructor(
    private readonly native: NativeServer,
    /** The option `tracing` of the server. */
    readonly isEnabled: boolean,
  ) {}

  /** Traces requests from now on, if the program has set up OpenTelemetry. Called when a transport begins to be served. */
  begin(): void {
    if (!this.#isTraced && this.isEnabled && isSetUp()) {
      onSpanEnded(endRequestSpan);
      this.native.traceRequests();
      this.#isTraced = true;
    }
  }

  /**
   * Returns the trace context of the active span, in the form that the core takes; `undefined` without one. Called when an outer
   * HTTP server passes on a request, whose span it is.
   */
  outerSpan(): string | undefined {
    this.begin();
    if (!this.#isTraced) {
      return undefined;
    }
    const span = guarded(activeSpan);
    if (span === undefined || span === this.#lastOuter?.deref()) {
      return undefined;
    }
    this.#lastOuter = new WeakRef(span);
    const { traceparent, tracestate = "", baggage = "" } = guarded(activeCarrier) ?? {};
    return traceparent === undefined ? undefined : [traceparent, tracestate, baggage].join("\n");
  }
}
