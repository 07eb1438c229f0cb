/** Records of requests, and the function of the program that receives them. */

import { captureContext } from "./async_context.js";
import { errorText, warn } from "./client/host.js";
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

/** A record as the core reports it: members without a value are `null`. */
type ReportedRecord = { [Name in keyof RequestRecord]: RequestRecord[Name] | null } & {
  /** Number of the request, if it is traced. */
  number: number | null;
};

/** Called at the end of each request; see {@link ServerOptions.onRequestEnd}. */
export type OnRequestEnd = (record: RequestRecord) => unknown;

/** Returns a function that passes records, as JSON, to that of the program, in the current asynchronous context. */
export function requestRecorder(onRequestEnd: OnRequestEnd): (record: string) => void {
  const context = captureContext();
  return (record) => {
    context.runInAsyncScope(reportRequest, undefined, onRequestEnd, record);
  };
}

/** Passes a record to the program. What it throws must not end the process. */
function reportRequest(onRequestEnd: OnRequestEnd, json: string): void {
  const { number, ...reported } = JSON.parse(json) as ReportedRecord;
  const members = Object.entries(reported).map(([name, value]) => [name, value ?? undefined]);
  const record = Object.fromEntries(members) as { -readonly [Name in keyof RequestRecord]: RequestRecord[Name] };
  record.traceId ??= number === null ? undefined : takeTraceId(number);
  const failure = (reason: unknown) => {
    warn(`\`onRequestEnd\` failed for ${record.method}: ${errorText(reason)}`, reason);
  };
  try {
    const returned = onRequestEnd(record);
    if (isPromise(returned)) {
      returned.then(undefined, failure);
    }
  } catch (reason) {
    failure(reason);
  }
}
