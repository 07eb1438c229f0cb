/** Spans of requests that this side sends, and of input requests that a client answers, in the program's OpenTelemetry. */

import { McplineError, RequestCancelledError, RpcError } from "./errors.js";
import {
  activeContext,
  type Attributes,
  beginSpan,
  type Carrier,
  extract,
  guarded,
  inject,
  isSetUp,
  recordException,
  remoteContext,
  runIn,
  setFailed,
  type Span,
  SpanKind,
  withSpan,
} from "./open_telemetry.js";

/** Attributes for what a request names, by method. */
const TARGETS: ReadonlyMap<string, { readonly member: "name" | "uri"; readonly attribute: string }> = new Map([
  ["tools/call", { member: "name", attribute: "gen_ai.tool.name" }],
  ["prompts/get", { member: "name", attribute: "gen_ai.prompt.name" }],
  ["resources/read", { member: "uri", attribute: "mcp.resource.uri" }],
  ["resources/subscribe", { member: "uri", attribute: "mcp.resource.uri" }],
  ["resources/unsubscribe", { member: "uri", attribute: "mcp.resource.uri" }],
]);

/** Returns the name and the attributes of the span of a request. URIs are too many to be part of names. */
function described(method: string, params: object | undefined, attributes: Attributes): [string, Attributes] {
  const all: Attributes = { "mcp.method.name": method, ...attributes };
  let name = method;
  const target = TARGETS.get(method);
  if (target !== undefined) {
    const { member, attribute } = target;
    const value: unknown = (params as { name?: unknown; uri?: unknown } | undefined)?.[member];
    if (typeof value === "string" || value instanceof URL) {
      all[attribute] = String(value);
      name = member === "name" ? `${method} ${String(value)}` : method;
    }
    if (method === "tools/call") {
      all["gen_ai.operation.name"] = "execute_tool";
    }
  }
  return [name, all];
}

/** The span of one request, which ends once. */
class RequestSpan {
  #isEnded = false;

  constructor(protected readonly span: Span) {}

  /** Ends the span of a request that has failed with an error. */
  failed(error: unknown): void {
    if (error instanceof RequestCancelledError) {
      this.cancelled();
    } else if (error instanceof RpcError) {
      const code = String(error.code);
      this.end({ "error.type": code, "rpc.response.status_code": code }, error.rpcMessage);
    } else {
      // Texts of other errors are those of the program.
      this.end({ "error.type": nameOf(error) }, error instanceof McplineError ? error.message : undefined);
    }
  }

  /** Ends the span of a request that was cancelled. */
  cancelled(): void {
    this.end({ "error.type": "cancelled" });
  }

  /** Ends the span, with the attributes of a failure if there is one. */
  protected end(failure?: Attributes, text?: string): void {
    if (this.#isEnded) {
      return;
    }
    this.#isEnded = true;
    guarded(() => {
      if (failure !== undefined) {
        this.span.setAttributes(failure);
        setFailed(this.span, text);
      }
      this.span.end();
    });
  }
}

/** Whether a value is an object as in JSON. */
function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Name of an error. Programs may throw anything, such as a proxy that throws when it is read. */
function nameOf(error: unknown): string {
  const name = guarded(() => (error instanceof Error ? error.name : typeof error));
  return typeof name === "string" && name !== "" ? name : "_OTHER";
}

/** The span of a request that is being sent. */
export class SentRequest extends RequestSpan {
  readonly #method: string;

  private constructor(
    method: string,
    span: Span,
    /** The trace context that the request carries. */
    readonly carrier: Carrier,
  ) {
    super(span);
    this.#method = method;
  }

  /** Begins the span of a request; `undefined` if the program has not set up OpenTelemetry. */
  static begin(method: string, params: object | undefined, attributes: () => Attributes): SentRequest | undefined {
    // The core refuses parameters that are `null`.
    if (!isSetUp() || (params as unknown) === null) {
      return undefined;
    }
    const description = guarded(() => described(method, params, attributes()));
    if (description === undefined) {
      return undefined;
    }
    const [name, all] = description;
    const parent = activeContext();
    const span = beginSpan({ name, kind: SpanKind.Client, attributes: all, parent });
    return span === undefined ? undefined : new SentRequest(method, span, inject(withSpan(parent, span)));
  }

  /** Returns `_meta` with the trace context, unless it has one. */
  inMeta(meta: object | undefined): object | undefined {
    // The core refuses what is not an object.
    const isKept = meta !== undefined && (!isObject(meta) || Object.hasOwn(meta, "traceparent"));
    return isKept || Object.keys(this.carrier).length === 0 ? meta : { ...this.carrier, ...meta };
  }

  /** Returns parameters with the trace context in `_meta`. */
  inParams(params: object | undefined): object | undefined {
    const { _meta: given } = (params ?? {}) as { _meta?: unknown };
    if (
      (given !== undefined && !isObject(given)) ||
      typeof (params as { toJSON?: unknown } | undefined)?.toJSON === "function"
    ) {
      return params;
    }
    const meta = this.inMeta(given);
    return meta === given ? params : { ...params, _meta: meta };
  }

  /** Adds what is known once the request was sent, as JSON; `null` if nothing is. */
  sent(attributes: string | null): void {
    if (attributes !== null) {
      guarded(() => this.span.setAttributes(JSON.parse(attributes) as Attributes));
    }
  }

  /** Ends the span of a request that has a result. */
  succeeded(result: unknown): void {
    const isToolError = this.#method === "tools/call" && (result as { isError?: unknown } | null)?.isError === true;
    if (isToolError) {
      this.end({ "error.type": "tool_error" });
    } else {
      this.end();
    }
  }
}

/** What the span of an input request begins with: attributes, and the trace context of its parent. */
export interface ReceivedSpan {
  readonly attributes: Attributes;
  readonly parent: Carrier;
}

/** The span of an input request that a handler of a client answers. */
export class ReceivedRequest extends RequestSpan {
  readonly #carrier: Carrier;

  private constructor(span: Span, carrier: Carrier) {
    super(span);
    this.#carrier = carrier;
  }

  /**
   * Begins the span of a request; `undefined` if the program has not set up OpenTelemetry.
   *
   * @param json The parameters, or empty.
   * @param start Returns what it begins with.
   */
  static begin(method: string, json: string, start: () => ReceivedSpan): ReceivedRequest | undefined {
    if (!isSetUp()) {
      return undefined;
    }
    const { attributes, parent } = start();
    const [name, all] = described(method, json === "" ? {} : (JSON.parse(json) as object), attributes);
    const span = beginSpan({ name, kind: SpanKind.Server, attributes: all, parent: remoteContext(parent) });
    return span === undefined ? undefined : new ReceivedRequest(span, parent);
  }

  /** Runs the handler in the context of the span, and ends the span with it. */
  async run<T>(handle: () => Promise<T>): Promise<T> {
    try {
      const answer = await runIn(withSpan(extract(this.#carrier, activeContext()), this.span), handle);
      this.end();
      return answer;
    } catch (error) {
      if (!(error instanceof McplineError)) {
        recordException(this.span, error);
      }
      this.failed(error);
      throw error;
    }
  }
}
