/**
 * The OpenTelemetry of the program, for spans.
 *
 * It is read from the global object in which `@opentelemetry/api` 1.x keeps what the program has registered, and not imported.
 * So it is found whichever copy of that package has registered it, also from a bundle; the package need not be installed;
 * and a program that does not use it pays for one lookup of a property. All versions 1.x share the symbols below
 * (`api/src/internal/global-utils.ts`, `api/src/trace/context-utils.ts` of open-telemetry/opentelemetry-js).
 */

import { warn } from "./client/host.js";
import { native } from "./native.js";

/** Attributes of a span. */
export type Attributes = Record<string, string | number>;

/** A trace context as messages carry it (W3C Trace Context and Baggage). */
export type Carrier = Record<string, string>;

/** A time: seconds since 1970, and nanoseconds. */
export type HrTime = [seconds: number, nanoseconds: number];

/** Identity of a span. */
interface SpanContext {
  readonly traceId: string;
  readonly traceFlags: number;
}

/** A span, as far as it is used here. */
export interface Span {
  spanContext(): SpanContext;
  isRecording(): boolean;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(exception: unknown): void;
  end(time?: HrTime): void;
}

/** An immutable set of values that belong to a path of execution. */
export interface OtelContext {
  getValue(key: symbol): unknown;
  setValue(key: symbol, value: unknown): OtelContext;
  deleteValue(key: symbol): OtelContext;
}

interface SpanOptions {
  kind: SpanKind;
  attributes: Attributes;
  links?: { context: SpanContext }[];
  startTime?: HrTime;
}

interface Tracer {
  startSpan(name: string, options: SpanOptions, context: OtelContext): Span;
}

interface TracerProvider {
  getTracer(name: string, version?: string): Tracer;
}

interface ContextManager {
  active(): OtelContext;
  with<T>(context: OtelContext, run: () => T): T;
}

interface Setter {
  set(carrier: Carrier, name: string, value: string): void;
}

interface Getter {
  keys(carrier: Carrier): string[];
  get(carrier: Carrier, name: string): string | undefined;
}

interface Propagator {
  inject(context: OtelContext, carrier: Carrier, setter: Setter): void;
  extract(context: OtelContext, carrier: Carrier, getter: Getter): OtelContext;
}

/** What the program has registered. */
interface Registered {
  readonly trace?: TracerProvider;
  readonly context?: ContextManager;
  readonly propagation?: Propagator;
}

/** Kinds of spans; as in `@opentelemetry/api`. */
export const enum SpanKind {
  Server = 1,
  Client = 2,
}

/** The status of a span that failed. */
const ERROR = 2;

/** The flag of spans that are recorded (W3C Trace Context, sampled flag). */
const SAMPLED = 1;

const REGISTERED = Symbol.for("opentelemetry.js.api.1");
const SPAN = Symbol.for("OpenTelemetry Context Key SPAN");

/** What requests carry in `_meta`, whatever else a propagator writes (SEP-414). */
const FIELDS = ["traceparent", "tracestate", "baggage"];

const setter: Setter = {
  set(carrier, name, value): void {
    if (FIELDS.includes(name)) {
      carrier[name] = value;
    }
  },
};

const getter: Getter = {
  keys: (carrier) => Object.keys(carrier),
  get: (carrier, name) => (Object.hasOwn(carrier, name) ? carrier[name] : undefined),
};

/** A context that has no values, or those that were set. */
class ValuesContext implements OtelContext {
  constructor(private readonly values: ReadonlyMap<symbol, unknown>) {}

  getValue(key: symbol): unknown {
    return this.values.get(key);
  }

  setValue(key: symbol, value: unknown): OtelContext {
    return new ValuesContext(new Map(this.values).set(key, value));
  }

  deleteValue(key: symbol): OtelContext {
    const values = new Map(this.values);
    values.delete(key);
    return new ValuesContext(values);
  }
}

const EMPTY: OtelContext = new ValuesContext(new Map());

let provider: TracerProvider | undefined;
let ownTracer: Tracer | undefined;

function registered(): Registered | undefined {
  return (globalThis as { [REGISTERED]?: Registered })[REGISTERED];
}

/** Returns the tracer of this package; `undefined` if the program has registered no provider of tracers. */
function tracer(): Tracer | undefined {
  const current = registered()?.trace;
  if (current === undefined) {
    return undefined;
  }
  if (current !== provider) {
    ownTracer = guarded(() => current.getTracer("mcpline", native.version()));
    provider = current;
  }
  return ownTracer;
}

/** Whether the program has registered a provider of tracers. */
export function isSetUp(): boolean {
  return tracer() !== undefined;
}

/** Returns the active context; without a context manager it is empty. */
export function activeContext(): OtelContext {
  return guarded(() => registered()?.context?.active()) ?? EMPTY;
}

/** Runs a function in a context, if there is a context manager. */
export function runIn<T>(context: OtelContext, run: () => T): T {
  const manager = registered()?.context;
  if (manager === undefined) {
    return run();
  }
  const progress = { hasRun: false };
  try {
    return manager.with(context, () => {
      progress.hasRun = true;
      return run();
    });
  } catch (error) {
    if (progress.hasRun) {
      throw error;
    }
    warn("OpenTelemetry failed", error);
    return run();
  }
}

/** Returns a context with what a carrier contains. */
export function extract(carrier: Carrier, into: OtelContext): OtelContext {
  return guarded(() => registered()?.propagation?.extract(into, carrier, getter)) ?? into;
}

/** Returns the carrier for a request that is sent in a context. */
export function inject(context: OtelContext): Carrier {
  const carrier: Carrier = {};
  guarded(() => registered()?.propagation?.inject(context, carrier, setter));
  return carrier;
}

/** Returns a context in which a span is active. */
export function withSpan(context: OtelContext, span: Span): OtelContext {
  return context.setValue(SPAN, span);
}

/** Returns the active span. */
export function activeSpan(): Span | undefined {
  return activeContext().getValue(SPAN) as Span | undefined;
}

/**
 * Returns the carrier of the active span, if there is one that has not ended: servers handle requests in the context in which
 * they began to listen.
 */
export function activeCarrier(): Carrier | undefined {
  const span = activeSpan();
  const isOpen = span !== undefined && (span.isRecording() || (span.spanContext().traceFlags & SAMPLED) === 0);
  return isOpen ? inject(activeContext()) : undefined;
}

/** What a span begins with. */
export interface SpanBeginning {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  /** The context that has the parent. */
  readonly parent: OtelContext;
  /** Another span that caused this one. */
  readonly link?: Carrier;
  /** Default: now. */
  readonly start?: HrTime;
}

/** Begins a span; `undefined` if the program has registered no provider of tracers. */
export function beginSpan({ name, kind, attributes, parent, link = {}, start }: SpanBeginning): Span | undefined {
  const ours = tracer();
  if (ours === undefined) {
    return undefined;
  }
  const linked = Object.keys(link).length === 0 ? undefined : extract(link, EMPTY).getValue(SPAN);
  const links = linked === undefined ? {} : { links: [{ context: (linked as Span).spanContext() }] };
  const startTime = start === undefined ? {} : { startTime: start };
  return guarded(() => ours.startSpan(name, { kind, attributes, ...links, ...startTime }, parent));
}

/** Returns the context of a request that another process has sent. */
export function remoteContext(carrier: Carrier): OtelContext {
  return extract(carrier, EMPTY);
}

/** Says that the operation of a span failed. */
export function setFailed(span: Span, message: string | undefined): void {
  span.setStatus({ code: ERROR, ...(message === undefined || message === "" ? {} : { message }) });
}

/** Adds an exception to a span that has not ended. */
export function recordException(span: Span, error: unknown): void {
  guarded(() => {
    if (span.isRecording()) {
      span.recordException(error instanceof Error ? error : String(error));
    }
  });
}

/** Calls the program's OpenTelemetry. What it throws must not fail requests: it is emitted as a warning of the process. */
export function guarded<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    warn("OpenTelemetry failed", error);
    return undefined;
  }
}
