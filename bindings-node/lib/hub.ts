/**
 * The JavaScript side of the queues between this thread and its I/O thread (`src/hub.rs`).
 *
 * Everything that is queued is drained at once when the thread is woken. Results of handlers are flushed at the end of
 * each turn of the event loop. Pending work keeps the process alive.
 */

import { type AsyncContext, captureContext } from "./async_context.js";
import { attempt, errorOf } from "./errors.js";
import { native } from "./native.js";

/** Maximum number of rows per drain or flush, and number of columns; as in `src/hub.rs`. */
const ROWS = 64;
const COLUMNS = 6;

/** Time that results may wait for handlers that run later in the same turn, in milliseconds. */
const MAX_RESULT_DELAY = 0.5;

/** Length of the results of one turn, in characters, from which they are flushed at once. Each is in memory twice. */
const MAX_WAITING_CHARACTERS = 256 * 1024;

/** Kinds of rows; as in `src/hub.rs`. */
const enum Row {
  Call = 0,
  Done = 1,
  Json = 2,
  Failed = 3,
  Cancelled = 4,
  Ready = 5,
  ListenerCalled = 6,
  Warning = 7,
  RequestEnded = 8,
  SessionEnded = 9,
  SpanEnded = 10,
}

/** Kinds of results; as in `src/outcome.rs`. */
export const enum ResultKind {
  Text = 0,
  Content = 1,
  Structured = 2,
  Complete = 3,
  InputRequired = 4,
  ToolFailure = 5,
  RpcFailure = 6,
  InternalFailure = 7,
  Unsupported = 8,
  UrlElicitations = 9,
  Result = 10,
  /** A resource that does not exist: its URI, or empty for the requested one. */
  ResourceNotFound = 11,
  /** An error of a handler: its summary, which clients get in debug mode only, and its stack trace, for the log. */
  Exception = 12,
  /** A result that a middleware passes on as it got it: JSON of the core. */
  Unchanged = 13,
}

/** An object with handlers: a server. */
export interface CallReceiver {
  /**
   * Runs a handler for a call. `origin` is the number of the promise with which middleware waits for the request, or that
   * of the HTTP exchange or of the channel that the call arrived on, or 0. `span` is the number of the request if it is traced,
   * or 0.
   */
  run(handler: number, call: number, input: string, origin: number, span: number): void;
  /** Receives the record of a request that has ended, as JSON. */
  requestEnded(record: string): void;
}

/** Receives the events of a client. */
export interface Listener {
  onEvent(about: number, number: number, json: string): void;
}

/** An HTTP exchange. */
export interface ExchangeListener {
  /** Called whenever the exchange makes progress. */
  onProgress(): void;
}

interface ListenerEntry {
  listener: Listener;
  context: AsyncContext;
}

interface Waiting {
  resolve: (json: string | undefined) => void;
  reject: (error: Error) => void;
  /** Whether it keeps the process alive until it is settled. */
  isHeld: boolean;
}

const table: Float64Array = new Float64Array(ROWS * COLUMNS);
/** Numbers that the addon returns besides rows, and reads results from. */
export const answers: Float64Array = new Float64Array(ROWS * COLUMNS);
const texts: string[] = new Array<string>(ROWS).fill("");

/** The native side. */
export const hub = attempt(() => new native.Hub(wake));
hub.share(table, answers);

const receivers = new Map<number, WeakRef<CallReceiver>>();
const held = new Map<number, CallReceiver>();
const forgotten = new FinalizationRegistry<number>((number) => receivers.delete(number));
const listeners = new Map<number, ListenerEntry>();
const waiting = new Map<number, Waiting>();
const cancellations = new Map<number, () => void>();
const exchanges = new Map<number, ExchangeListener>();

const sessionStates = new Map<number, Map<string, unknown>>();

let endSpan: ((json: string) => void) | undefined;

let lastNumber = 0;
let pending = 0;
let isDraining = false;

/** Returns an unused number. */
export function nextNumber(): number {
  // 32 bits. When the numbers wrap around, the first ones are no longer in use.
  lastNumber = lastNumber === 0xffff_ffff ? 1 : lastNumber + 1;
  return lastNumber;
}

/** Keeps the process alive until {@link release}. */
export function hold(): void {
  if (pending++ === 0) {
    hub.hold(true);
  }
}

/** Reverts one {@link hold}. */
export function release(): void {
  if (--pending === 0) {
    hub.hold(false);
  }
}

/** Registers a server for calls; {@link preventCollection} prevents its garbage collection. */
export function register(receiver: CallReceiver): number {
  const number = nextNumber();
  receivers.set(number, new WeakRef(receiver));
  forgotten.register(receiver, number);
  return number;
}

/** Prevents the garbage collection of a server while it serves. */
export function preventCollection(number: number, receiver: CallReceiver): void {
  held.set(number, receiver);
}

/** Reverts {@link preventCollection}. */
export function allowCollection(number: number): void {
  held.delete(number);
}

/** Whether this thread no longer serves anything, but still runs handlers of cancelled calls. */
export function runsOnlyCancelledCalls(): boolean {
  return held.size === 0 && hub.hasCancelled();
}

/** Sets the function that receives the ends of traced requests, as JSON. */
export function onSpanEnded(listener: (json: string) => void): void {
  endSpan = listener;
}

/** Registers the listener of a client's events, which is called in the current asynchronous context. */
export function listen(number: number, listener: Listener): void {
  listeners.set(number, { listener, context: captureContext() });
}

/** Reverts {@link listen}. */
export function unlisten(number: number): void {
  listeners.delete(number);
}

/**
 * Returns a promise that the addon settles, with JSON or nothing, and its number. It keeps the process alive if
 * `isHeld`; the promises of handlers do not need to, because their caller does.
 */
export function promised(isHeld = true): [number, Promise<string | undefined>] {
  const number = nextNumber();
  if (isHeld) {
    hold();
  }
  const promise = new Promise<string | undefined>((resolve, reject) => {
    waiting.set(number, { resolve, reject, isHeld });
  });
  return [number, promise];
}

/** Removes a promise that the addon will not settle. */
export function dropPromise(number: number): void {
  settle(number);
}

/** Returns the values of the program that live as long as the session of a call's client. */
export function sessionStateOf(call: number): Map<string, unknown> {
  const number = attempt(() => hub.callSession(call));
  let state = sessionStates.get(number);
  if (state === undefined) {
    state = new Map();
    sessionStates.set(number, state);
  }
  return state;
}

/** Calls `cancelled` when a call is cancelled, until it ends, after what else watches the call. */
export function watch(call: number, cancelled: () => void): void {
  const earlier = cancellations.get(call);
  if (earlier !== undefined) {
    cancellations.set(call, () => {
      earlier();
      cancelled();
    });
    return;
  }
  cancellations.set(call, cancelled);
  hub.watchCall(call);
}

/** Reports the progress of an HTTP exchange to its listener. */
export function watchExchange(number: number, exchange: ExchangeListener): void {
  exchanges.set(number, exchange);
}

/** Reverts {@link watchExchange}. */
export function unwatchExchange(exchange: number): void {
  exchanges.delete(exchange);
}

const outNumbers: number[] = [];
const outKinds: ResultKind[] = [];
const outTexts: string[] = [];
/** Total length of the texts. */
let outLength = 0;
let isFlushScheduled = false;
let waitsForFlush = false;
let firstWaits = 0;

/** Ends a call, at the end of this turn, or at once if many results are waiting. */
export function finish(call: number, kind: ResultKind, text: string): void {
  if (cancellations.size > 0) {
    cancellations.delete(call);
  }
  outNumbers.push(call);
  outKinds.push(kind);
  outTexts.push(text);
  outLength += text.length;
  if (outLength > MAX_WAITING_CHARACTERS) {
    flush();
  } else {
    scheduleFlush();
  }
}

/** A call was ended without a result of a {@link Kind}: the native side flushes it at the end of this turn. */
export function reportEnded(call: number): void {
  if (cancellations.size > 0) {
    cancellations.delete(call);
  }
  hasReported();
}

/** Sends an input request to the client of a call, at the end of this turn. Returns the answer as JSON. */
export function requestInput(
  call: number,
  method: string,
  params: string | undefined,
  key: string | undefined,
): Promise<string> {
  const [number, answered] = promised(false);
  try {
    attempt(() => {
      hub.requestInput(call, number, method, params, key);
    });
  } catch (error) {
    dropPromise(number);
    throw error;
  }
  hasReported();
  return answered as Promise<string>;
}

/** Flushes the reports of a handler at the end of this turn, or at once if this turn takes long. */
export function hasReported(): void {
  waitsForFlush = true;
  if (isFlushScheduled) {
    flushOverdueResults();
  } else {
    firstWaits = performance.now();
    scheduleFlush();
  }
}

function scheduleFlush(): void {
  if (!isFlushScheduled) {
    isFlushScheduled = true;
    // After the microtasks, in which more handlers may end or send input requests.
    process.nextTick(flush);
  }
}

/** Flushes input requests and results. */
export function flush(): void {
  isFlushScheduled = false;
  while (outNumbers.length > 0 || waitsForFlush) {
    waitsForFlush = false;
    outLength = 0;
    const numbers = outNumbers.splice(0, ROWS);
    const kinds = outKinds.splice(0, ROWS);
    const results = outTexts.splice(0, ROWS);
    for (let row = 0; row < numbers.length; row++) {
      answers[row * COLUMNS] = numbers[row] as number;
      answers[row * COLUMNS + 1] = kinds[row] as number;
    }
    const ready = hub.flush(results, numbers.length);
    if (ready > 0) {
      for (const exchange of Array.from(answers.subarray(0, ready))) {
        exchanges.get(exchange)?.onProgress();
      }
    }
  }
}

/**
 * Runs everything that is queued. `local`: calls have arrived on this thread; all of them are run before it returns.
 */
export function drain(local: boolean): void {
  if (isDraining) {
    // A handler has sent an HTTP request to this server: it is drained when the handler returns.
    wakeLater();
    return;
  }
  isDraining = true;
  try {
    let rows;
    do {
      rows = hub.drain(texts, local);
      firstWaits = 0;
      for (let row = 0; row < rows; row++) {
        const text = texts[row] as string;
        texts[row] = "";
        dispatch(row * COLUMNS, text);
        if (outNumbers.length > 0 && row + 1 < rows) {
          flushOverdueResults();
        }
      }
      // The addon wakes this thread for the remaining calls, so that the program can run in between.
    } while (local && rows === ROWS);
  } finally {
    isDraining = false;
  }
  if (local) {
    flush();
  }
}

/** Flushes results that have waited too long. */
function flushOverdueResults(): void {
  const now = performance.now();
  if (firstWaits === 0) {
    firstWaits = now;
  } else if (now - firstWaits > MAX_RESULT_DELAY) {
    firstWaits = 0;
    flush();
  }
}

function wake(): void {
  drain(false);
}

function wakeLater(): void {
  setImmediate(wake);
}

function dispatch(index: number, text: string): void {
  const first = table[index + 1] as number;
  switch (table[index]) {
    case Row.Call: {
      const call = table[index + 3] as number;
      const receiver = held.get(first) ?? receivers.get(first)?.deref();
      if (receiver === undefined) {
        finish(call, ResultKind.InternalFailure, "the server is gone");
      } else {
        receiver.run(table[index + 2] as number, call, text, table[index + 4] as number, table[index + 5] as number);
      }
      break;
    }
    case Row.Done:
      settle(first)?.resolve(undefined);
      break;
    case Row.Json:
      settle(first)?.resolve(text);
      break;
    case Row.Failed:
      settle(first)?.reject(errorOf(text));
      break;
    case Row.Cancelled: {
      const cancelled = cancellations.get(first);
      cancellations.delete(first);
      cancelled?.();
      break;
    }
    case Row.Ready:
      exchanges.get(first)?.onProgress();
      break;
    case Row.ListenerCalled:
      notifyListener(first, table[index + 2] as number, table[index + 3] as number, text);
      break;
    case Row.SessionEnded:
      sessionStates.delete(first);
      break;
    case Row.Warning:
      process.emitWarning(text, "McplineWarning");
      break;
    case Row.RequestEnded:
      (held.get(first) ?? receivers.get(first)?.deref())?.requestEnded(text);
      break;
    case Row.SpanEnded:
      endSpan?.(text);
      break;
  }
}

function notifyListener(number: number, about: number, subject: number, json: string): void {
  const entry = listeners.get(number);
  if (entry !== undefined) {
    const { listener, context } = entry;
    context.runInAsyncScope(() => {
      listener.onEvent(about, subject, json);
    });
  }
}

function settle(number: number): Waiting | undefined {
  const entry = waiting.get(number);
  if (entry !== undefined) {
    waiting.delete(number);
    if (entry.isHeld) {
      release();
    }
  }
  return entry;
}
