/** Stores of a program for the state that several processes of a service share. */

import { UsageError } from "./errors.js";
import type { Awaitable } from "./feature_options.js";
import type { RegisteredHandler } from "./handlers.js";
import { reportEnded, hub, watch } from "./hub.js";
import { isPromise } from "./is_promise.js";
import type { NativeSharingArguments } from "./native.js";
import { checkOptions, isObject, typeName } from "./option_checks.js";
import { optionNames } from "./option_names.js";
import { secondsFromMs } from "./settings.js";

/**
 * Stores sessions under their ids, for every process of a service. Sessions are bytes that only mcpline reads.
 *
 * The ids are digests, which open no session. But a program that writes to the store can change who a session belongs to.
 */
export interface SessionStore {
  /**
   * Stores a session, unless another process has changed it.
   *
   * Store it if the store has `replaces`, `session` itself, or nothing under this id: it may have lost what it had. Otherwise
   * change nothing, and return what is stored. To compare and to store must be one step, for example a transaction. A session
   * that was removed shortly before, for example in the last 5 minutes, should stay removed: return nothing.
   *
   * If tokens are bound to keys (DPoP), each proof that was used is saved like a session, once, for some minutes. Its id begins
   * with `proof-`.
   *
   * @param id At most 64 letters, digits, `-` and `_`.
   * @param replaces What this process has found or stored before.
   * @param lifetime How long to keep it at least, in milliseconds; `Infinity` if it does not end. A session in use is saved again
   *   before its lifetime is over.
   * @returns Nothing if the session is stored, or was removed; otherwise what is stored.
   */
  save(
    id: string,
    session: Uint8Array,
    replaces: Uint8Array,
    lifetime: number,
  ): Awaitable<Uint8Array | null | undefined | void>;
  /** Returns the session that was saved last; nothing if there is none, or its lifetime is over. */
  load(id: string): Awaitable<Uint8Array | null | undefined>;
  /** Removes a session, if it is there. Its id is never used again. */
  remove(id: string): Awaitable<unknown>;
}

/** A part of a stream. */
export interface LoggedEvents {
  /** The events, one after the other. */
  events: readonly Uint8Array[];
  /** Whether the stream ended after them. Default: `false`. */
  ended?: boolean;
  /** Whether further events are stored already. Then `events` must not be empty. Default: `false`. */
  hasMore?: boolean;
}

/**
 * Stores the events of streams, for clients that resume them with `Last-Event-ID` at another process.
 *
 * The name of a stream is the id of its session, a slash, and a name within the session: at most 128 characters. Once a session is
 * removed or has expired, its streams are not read any more. Limit the size and the lifetime of streams: a server itself keeps the
 * latest 1,024 events or 4 MiB of each.
 */
export interface EventLog {
  /**
   * Adds events to the end of a stream, which may be new. Calls for one stream do not overlap: after a timeout, the next one begins
   * once the promise is settled. Give your database a timeout.
   *
   * If `number` does not follow the last stored event, events were lost. What is stored before is then of no use: the stream begins
   * anew.
   *
   * @param number The number of the first event; each of the others has the next one.
   * @param events At most 256. An event may be empty.
   */
  append(stream: string, number: number, events: Uint8Array[]): Awaitable<unknown>;
  /**
   * Stores that no more events follow. Does nothing if the stream is unknown.
   *
   * If the last stored event has another number than `last`, events were lost. Remove the stream, so that `read` returns nothing: a
   * client must not take what is left for the whole stream.
   *
   * @param last The number of the last event.
   */
  end(stream: string, last: number): Awaitable<unknown>;
  /**
   * Returns the events that follow the one with the number `after`, in order and without gaps, beginning with `after + 1`. Return a
   * part of a long stream, with `hasMore`: it is called again for the next part. After the last event, the part is empty.
   *
   * @returns Nothing if the stream is unknown, some of the events are no longer kept, or `after` is higher than the number of the
   *   last event.
   */
  read(stream: string, after: number): Awaitable<LoggedEvents | null | undefined>;
}

/** Passes messages to all processes of a service. A message that is lost costs a notification, or an answer. */
export interface Bus {
  /**
   * Sends a message to every subscriber. Calls do not overlap, as those of {@link EventLog.append}, and messages must arrive in
   * their order.
   *
   * Messages are UTF-8 and usually have some 100 bytes, and up to 16 MiB. It does not matter whether the process that publishes a
   * message gets it too.
   */
  publish(message: Uint8Array): Awaitable<unknown>;
  /**
   * Calls `receive` with every message from now on. Called when the server begins to be served. Return once messages arrive, and
   * keep the subscription connected. If it fails, it is called again some seconds later.
   *
   * @returns A function that ends the subscription, which may return a promise. Called when the server is no longer served.
   */
  subscribe(receive: (message: Uint8Array) => void): Awaitable<() => unknown>;
}

/**
 * Shared state of a program, for {@link ServerSettings.sharing}: for a database or a message bus that is not included.
 *
 * After an error, or without an answer within `timeout`, the process continues with the sessions that it has. Requests for other
 * sessions get status 503, and the client tries again. The error is emitted as a warning of the process, and
 * {@link ServerOptions.onError} gets it with its stack. At most 32 calls run
 * at once: 16 for sessions, 5 that read streams, 8 that write them, and 3 of the bus; 1,024 calls or 32 MiB wait. Calls for sessions and
 * those that read streams count until their timeout, others until their promises are settled. 32 MiB of events and of messages wait; above that the oldest are dropped.
 */
export interface Sharing {
  /** The store of sessions. */
  sessions: SessionStore;
  /** The log of events. */
  events: EventLog;
  /** The bus. One object may be all three. */
  bus: Bus;
  /** How long a call may take, in milliseconds. Default: 2,000. */
  timeout?: number;
}

/** Kinds of results; as in `src/sharing.rs`. */
const enum Result {
  Done = 0,
  Session = 1,
  Conflict = 2,
  Events = 3,
  NoEvents = 4,
}

const NAMES = optionNames<Sharing>({ sessions: true, events: true, bus: true, timeout: true });
const METHODS = {
  sessions: ["save", "load", "remove"],
  events: ["append", "end", "read"],
  bus: ["publish", "subscribe"],
} as const;

/** Checks shared state. */
function checkSharing(sharing: Sharing): void {
  checkOptions("`sharing`", sharing, NAMES);
  for (const [name, methods] of Object.entries(METHODS)) {
    const part: unknown = sharing[name as keyof typeof METHODS];
    if (!isObject(part)) {
      throw new UsageError(`\`sharing.${name}\` must be an object, not ${typeName(part)}`);
    }
    const missing = methods.find((method) => typeof (part as Record<string, unknown>)[method] !== "function");
    if (missing !== undefined) {
      throw new UsageError(`\`sharing.${name}\` has no method \`${missing}\``);
    }
  }
}

/** Returns the handlers of shared state in the order of the native module, and their timeout in seconds. */
export function sharingHandlers(sharing: Sharing): [handlers: RegisteredHandler[], timeout: number | undefined] {
  checkSharing(sharing);
  const { sessions, events, bus, timeout } = sharing;
  const subscription = new Subscription(bus);
  const handlers = [
    handler(
      "sessions.save",
      (given) => sessions.save(given.name, bytesAt(given, 0), bytesAt(given, 1), lifetimeOf(given)),
      saved,
    ),
    handler("sessions.load", ({ name }) => sessions.load(name), loaded),
    handler("sessions.remove", ({ name }) => sessions.remove(name), done),
    handler("events.append", ({ name, number, bytes }) => events.append(name, number ?? 0, bytes), done),
    handler("events.end", ({ name, number }) => events.end(name, number ?? 0), done),
    handler("events.read", ({ name, number }) => events.read(name, number ?? 0), read),
    handler("bus.publish", (given) => bus.publish(bytesAt(given, 0)), done),
    handler("bus.subscribe", (_, call) => subscription.begin(receiver(call)), done),
    handler("bus.unsubscribe", () => subscription.end(), done),
  ];
  if (timeout === Infinity) {
    throw new UsageError("`sharing.timeout` must be a finite time");
  }
  return [handlers, timeout === undefined ? undefined : secondsFromMs("sharing.timeout", timeout)];
}

/**
 * The subscription of a server to its bus. The core ends it once, also while the promise of `subscribe` is not settled: what that
 * returns later ends at once. It subscribes again only after that.
 */
class Subscription {
  readonly #bus: Bus;
  #end: (() => unknown) | undefined;
  /** What is wrong with the bus, so that it is not called again: it may have subscribed. */
  #mistake: UsageError | undefined;
  /** Changes when the subscription is ended. */
  #attempt = 0;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  async begin(receive: (message: Uint8Array) => void): Promise<void> {
    if (this.#mistake !== undefined) {
      throw this.#mistake;
    }
    const attempt = this.#attempt;
    const end: unknown = await this.#bus.subscribe(receive);
    if (typeof end !== "function") {
      const reason = `\`subscribe\` must return a function that ends the subscription, not ${typeName(end)}`;
      this.#mistake = new UsageError(reason);
      throw this.#mistake;
    }
    let late = end as (() => unknown) | undefined;
    if (attempt === this.#attempt) {
      // One that could not be ended, because the event loop was busy for too long.
      [late, this.#end] = [this.#end, end as () => unknown];
    }
    await late?.();
  }

  end(): unknown {
    this.#attempt += 1;
    const end = this.#end;
    this.#end = undefined;
    return end?.();
  }
}

/** Functions whose calls do not overlap: the next one waits until a promise is settled, also after its timeout. */
const ORDERED = ["events.append", "events.end", "bus.publish", "bus.subscribe", "bus.unsubscribe"];

function handler(
  name: string,
  run: (given: NativeSharingArguments, call: number) => unknown,
  finish: (call: number, value: unknown) => void,
): RegisteredHandler {
  return {
    kind: "sharing",
    name,
    run: (ctx) => {
      const given = hub.callSharing(ctx.call);
      if (given === null) {
        // The call has ended.
        return ENDED;
      }
      const result = run(given, ctx.call);
      return ORDERED.includes(name) ? result : untilCancelled(ctx.call, result);
    },
    finish: (call, value) => {
      if (value !== ENDED) {
        finish(call, value);
      }
    },
  };
}

/** The result of a function that was not called. */
const ENDED = Symbol("ended");

/** Returns a result that fails when its call is cancelled: a promise that is never settled must not hold the call's place. */
function untilCancelled(call: number, result: unknown): unknown {
  if (!isPromise(result)) {
    return result;
  }
  return new Promise((resolve, reject) => {
    result.then(resolve, reject);
    watch(call, () => {
      reject(new Error("no answer in time"));
    });
  });
}

/** Returns the function that takes the messages of a bus. */
function receiver(call: number): (message: Uint8Array) => void {
  const native = hub.callBusReceiver(call);
  return (message) => {
    native?.receive(bytesOf("a message", message));
  };
}

function bytesAt({ bytes }: NativeSharingArguments, index: number): Uint8Array {
  return bytes[index] ?? new Uint8Array();
}

function lifetimeOf({ number }: NativeSharingArguments): number {
  return number ?? Infinity;
}

function reply(call: number, result: Result, bytes: Uint8Array[] = [], isEnded = false, hasMore = false): void {
  hub.replySharing(call, result, bytes, isEnded, hasMore);
  reportEnded(call);
}

function done(call: number): void {
  reply(call, Result.Done);
}

function saved(call: number, stored: unknown): void {
  if (stored === undefined || stored === null) {
    done(call);
  } else {
    reply(call, Result.Conflict, [bytesOf("the result of `save`", stored)]);
  }
}

function loaded(call: number, session: unknown): void {
  const isMissing = session === undefined || session === null;
  reply(call, Result.Session, isMissing ? [] : [bytesOf("the result of `load`", session)]);
}

function read(call: number, part: unknown): void {
  if (part === undefined || part === null) {
    reply(call, Result.NoEvents);
    return;
  }
  const { events, ended: isEnded, hasMore } = part as { events?: unknown; ended?: unknown; hasMore?: unknown };
  if (!Array.isArray(events)) {
    throw new UsageError("the result of `read` must be an object with an array `events`, or nothing");
  }
  const bytes = events.map((event: unknown) => bytesOf("an event", event));
  reply(call, Result.Events, bytes, Boolean(isEnded), Boolean(hasMore));
}

/** @throws UsageError if a value is something else than bytes. */
function bytesOf(what: string, value: unknown): Uint8Array {
  if (!ArrayBuffer.isView(value)) {
    throw new UsageError(`${what} must be a Uint8Array, not ${typeName(value)}`);
  }
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}
