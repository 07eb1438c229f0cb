/** Records of requests, and the function and the logger of the program that receive them. */

import { captureContext } from "./async_context.js";
import { errorText, warn } from "./client/host.js";
import type { ErrorKind } from "./errors.js";
import { isPromise } from "./is_promise.js";
import { takeTraceId } from "./request_spans.js";

/** One request that has ended. */
export interface RequestRecord {
  /** The method, such as `tools/call`. */
  readonly method: string;
  /** Name of the tool or prompt, or URI of the resource; at most 200 characters. Empty for other methods. */
  readonly name: string;
  /**
   * How it ended: with a result, with the result of a tool that reports an error, with input requests to the client
   * (2026-07-28), with a JSON-RPC error, or without a response because the client cancelled it or is gone.
   */
  readonly outcome: "ok" | "tool_error" | "input_required" | "error" | "cancelled";
  /** Code of the JSON-RPC error, if the outcome is `error`. */
  readonly code: number | undefined;
  /** Time from the arrival of the request to its response, in milliseconds. */
  readonly duration: number;
  /** Name of the client, if it has identified itself; at most 200 characters. */
  readonly client: string | undefined;
  /**
   * The first eight characters of the session's id, over HTTP on revisions with sessions: enough to tell sessions apart, and
   * too few to use one.
   */
  readonly session: string | undefined;
  /** Issuer of the authenticated caller's token; at most 200 characters. */
  readonly issuer: string | undefined;
  /** Subject of the authenticated caller's token; at most 200 characters. */
  readonly subject: string | undefined;
  /** Client that acts for the subject, as the token says; at most 200 characters. */
  readonly clientId: string | undefined;
  /**
   * Id of the trace that the request belongs to, as 32 hexadecimal digits: that of its span, or else the one that the message or
   * the headers of its HTTP request name.
   */
  readonly traceId: string | undefined;
}

/** One request of a client that has ended. */
export interface ClientRequestRecord {
  /** Whether the client has sent the request, or received it from the server. */
  readonly direction: "sent" | "received";
  /** The method, such as `tools/call`; at most 200 characters. */
  readonly method: string;
  /** Name of the tool or prompt, or URI of the resource; at most 200 characters. Empty for other methods. */
  readonly name: string;
  /**
   * How it ended: with a result, with the result of a tool that reports an error, with input requests that the program answers by
   * itself (2026-07-28), with an error, or without an outcome: the program has given the request up, or the server has
   * cancelled it or is gone.
   */
  readonly outcome: "ok" | "tool_error" | "input_required" | "error" | "cancelled";
  /** Kind of the error, if the outcome is `error`; `rpc_error` for a request that the client has received. */
  readonly errorKind: ErrorKind | undefined;
  /** Code of the JSON-RPC error, if there was one. */
  readonly code: number | undefined;
  /** Time from the beginning of the request to its outcome, with middleware of the library, input requests and repetitions, in milliseconds. */
  readonly duration: number;
  /** Name of the server, if the client was connected and the server has identified itself; at most 200 characters. */
  readonly server: string | undefined;
  /** Address of the server: host and port of its URL, or the path of its socket; at most 200 characters. */
  readonly address: string | undefined;
  /** The first eight characters of the session's id, over HTTP on revisions with sessions. */
  readonly session: string | undefined;
  /** Id of the trace that the request belongs to, as 32 hexadecimal digits: the one that its `_meta` names. */
  readonly traceId: string | undefined;
}

/** A record as the core reports it: members without a value are `null`. */
type ReportedRecord = { [Name in keyof RequestRecord]: RequestRecord[Name] | null } & {
  /** Number of the request, if it is traced. */
  number: number | null;
};

/** Called at the end of each request; see {@link ServerOptions.onRequestEnd}. */
export type OnRequestEnd = (record: RequestRecord) => unknown;

/** Called at the end of each request of a client; see {@link ClientOptions.onRequestEnd}. */
export type OnClientRequestEnd = (record: ClientRequestRecord) => unknown;

/** A logger for records of requests: `console`, and pino and other loggers that take an object of fields before the message. */
export interface RequestLogger {
  /** Logs a record, with a text such as `tools/call "search": ok in 12.3 ms`. */
  info(record: object, message: string): unknown;
}

/**
 * Returns a function that passes records to the function and the logger of the program; `undefined` if it has set neither.
 */
export function requestListener<R extends RequestRecord | ClientRequestRecord>(
  onRequestEnd: ((record: R) => unknown) | undefined,
  logger: RequestLogger | undefined,
): ((record: R) => void) | undefined {
  if (onRequestEnd === undefined && logger === undefined) {
    return undefined;
  }
  return (record) => {
    if (onRequestEnd !== undefined) {
      pass("`onRequestEnd`", onRequestEnd, record);
    }
    if (logger !== undefined) {
      pass("`logger`", (each) => logger.info(each, messageOf(each)), record);
    }
  };
}

/** Returns the text of a record. */
function messageOf(record: RequestRecord | ClientRequestRecord): string {
  const { method, name, outcome, code, duration } = record;
  const target = name === "" ? [] : [JSON.stringify(name)];
  const kind = "errorKind" in record ? record.errorKind : undefined;
  const end = [outcome, kind, code].filter((part) => part !== undefined);
  return `${[method, ...target].join(" ")}: ${end.join(" ")} in ${duration.toFixed(1)} ms`;
}

/** Returns a function that passes records, as JSON, to a listener, in the current asynchronous context. */
export function requestRecorder(listener: (record: RequestRecord) => void): (record: string) => void {
  const context = captureContext();
  return (record) => {
    context.runInAsyncScope(reportRequest, undefined, listener, record);
  };
}

function reportRequest(listener: (record: RequestRecord) => void, json: string): void {
  const { number, ...reported } = JSON.parse(json) as ReportedRecord;
  const record = present(reported) as { -readonly [Name in keyof RequestRecord]: RequestRecord[Name] };
  record.traceId ??= number === null ? undefined : takeTraceId(number);
  listener(record);
}

/** Passes the record of a client's request, as JSON, to a listener. */
export function reportClientRequest(listener: (record: ClientRequestRecord) => void, json: string): void {
  listener(present(JSON.parse(json) as object) as ClientRequestRecord);
}

/** Returns a record whose members without a value are `undefined`. */
function present(reported: object): object {
  return Object.fromEntries(Object.entries(reported).map(([name, value]) => [name, (value as unknown) ?? undefined]));
}

/** Calls a function of the program. What it throws must not end the process. */
function pass<R extends { readonly method: string }>(what: string, receive: (record: R) => unknown, record: R): void {
  const failure = (reason: unknown) => {
    warn(`${what} failed for ${record.method}: ${errorText(reason)}`, reason);
  };
  try {
    const returned = receive(record);
    if (isPromise(returned)) {
      returned.then(undefined, failure);
    }
  } catch (reason) {
    failure(reason);
  }
}
