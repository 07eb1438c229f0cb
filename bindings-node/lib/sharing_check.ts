/** A check of shared state that a program implements: what the methods of `sharing.ts` promise. */

import { AssertionError } from "node:assert";
import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import type { Awaitable } from "./feature_options.js";
import type { Sharing } from "./sharing.js";

// In milliseconds.
const LIFETIME = 600_000;
const MESSAGE_TIMEOUT = 10_000;
const CALL_TIMEOUT = 10_000;
const CONCURRENT = 8;
const LONG_STREAM = 600;
const APPENDED = 256;

/**
 * Checks that stores of a program do what {@link Sharing} says; for a test of the program.
 *
 * It saves, changes and removes sessions, also at the same time, writes and reads streams, and publishes messages. Use a database for
 * tests: what is written under names that begin with `check-` may stay there.
 *
 * @param other The same as another process has them: with connections of its own to the same database. Default: `sharing`.
 * @throws AssertionError of `node:assert` if a method does something else. The text names it.
 */
export async function checkSharing(sharing: Sharing, other: Sharing = sharing): Promise<void> {
  const name = `check-${randomBytes(8).toString("hex")}`;
  const [a, b] = [limited(sharing), limited(other)];
  await checkSessions(a, b, name);
  await checkChanges(a, b, `${name}-changes`);
  await checkEvents(a, b, `${name}-events`);
  await checkBus(a, b);
}

/** Returns stores whose calls have a time limit. */
function limited({ sessions, events, bus }: Sharing): Sharing {
  return {
    sessions: {
      save: (...given) => withTimeout("sessions.save", sessions.save(...given)),
      load: (id) => withTimeout("sessions.load", sessions.load(id)),
      remove: (id) => withTimeout("sessions.remove", sessions.remove(id)),
    },
    events: {
      append: (...given) => withTimeout("events.append", events.append(...given)),
      end: (...given) => withTimeout("events.end", events.end(...given)),
      read: (...given) => withTimeout("events.read", events.read(...given)),
    },
    bus: {
      publish: (message) => withTimeout("bus.publish", bus.publish(message)),
      subscribe: (receive) => withTimeout("bus.subscribe", bus.subscribe(receive)),
    },
  };
}

async function withTimeout<T>(method: string, result: Awaitable<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const message = `${method}: no answer within ${String(CALL_TIMEOUT / 1000)} s`;
      reject(new AssertionError({ message, stackStartFn: checkSharing }));
    }, CALL_TIMEOUT);
  });
  try {
    return await Promise.race([result, late]);
  } finally {
    clearTimeout(timer);
  }
}

function fail(message: string): never {
  throw new AssertionError({ message, stackStartFn: checkSharing });
}

function expect(method: string, what: string, value: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(value, expected)) {
    fail(`${method}: ${what}: ${JSON.stringify(value)} instead of ${JSON.stringify(expected)}`);
  }
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Returns the text of bytes; `null` for nothing. */
function text(method: string, value: unknown): string | null {
  if (value === undefined || value === null) {
    return null;
  }
  if (!(value instanceof Uint8Array)) {
    return fail(`${method}: ${typeof value} instead of a Uint8Array or nothing`);
  }
  return new TextDecoder().decode(value);
}

async function checkSessions(a: Sharing, b: Sharing, name: string): Promise<void> {
  const save = async (sharing: Sharing, session: string, replaces: string, lifetime = LIFETIME) =>
    text("sessions.save", await sharing.sessions.save(name, bytes(session), bytes(replaces), lifetime));
  const load = async (sharing: Sharing) => text("sessions.load", await sharing.sessions.load(name));
  const [first, second, third] = ['{"name":"first"}', '{"name":"zwölf"}', "{}"];
  expect("sessions.load", "an id that was never saved", await load(a), null);
  await a.sessions.remove(`${name}-unknown`);
  expect("sessions.save", "nothing is stored under the id", await save(a, first, first), null);
  expect("sessions.load", "what the other process has saved", await load(b), first);
  expect("sessions.save", "the store has what is replaced", await save(b, second, first), null);
  expect("sessions.load", "what the other process has changed", await load(a), second);
  expect("sessions.save", "another process has changed the session", await save(a, third, first), second);
  expect("sessions.load", "the session after a conflict", await load(b), second);
  expect("sessions.save", "the store has the session itself", await save(a, second, first), null);
  expect("sessions.save", "a lifetime without an end", await save(a, third, second, Infinity), null);
  expect("sessions.load", "a session whose lifetime does not end", await load(b), third);
  await b.sessions.remove(name);
  expect("sessions.load", "a session that was removed", await load(a), null);
  expect("sessions.save", "a session that was removed shortly before", await save(a, third, third), null);
  expect("sessions.load", "a removed session that was saved again stays removed", await load(b), null);
}

/** Checks that no change is lost when processes change a session at the same time. */
async function checkChanges(a: Sharing, b: Sharing, name: string): Promise<void> {
  const save = async ({ sessions }: Sharing, session: string, replaces: string) =>
    text("sessions.save", await sessions.save(name, bytes(session), bytes(replaces), LIFETIME));
  const add = async (sharing: Sharing, member: number) => {
    for (let stored: string | null = "-"; stored !== null;) {
      stored = await save(sharing, `${stored},${String(member)}`, stored);
    }
  };
  expect("sessions.save", "nothing is stored under the id", await save(a, "-", "-"), null);
  const members = Array.from({ length: 2 * CONCURRENT }, (_, index) => index);
  await Promise.all(members.map((member) => add(member % 2 === 0 ? a : b, member)));
  const changed = text("sessions.load", await a.sessions.load(name)) ?? "";
  const kept = changed.split(",").slice(1).map(Number);
  kept.sort((one, other) => one - other);
  const what = "changes at the same time, of which some are lost if `save` is not one step";
  expect("sessions.save", what, kept, members);
  await a.sessions.remove(name);
}

async function checkEvents(a: Sharing, b: Sharing, name: string): Promise<void> {
  const append = (stream: string, number: number, events: string[]) =>
    a.events.append(stream, number, events.map(bytes));
  /** Reads all parts. */
  const read = async (stream: string, after: number): Promise<[events: string[], ended: boolean] | null> => {
    const events: string[] = [];
    for (;;) {
      const part = await b.events.read(stream, after + events.length);
      if (part === undefined || part === null) {
        return null;
      }
      if (!Array.isArray(part.events)) {
        return fail("events.read: no array `events`");
      }
      if (part.hasMore === true && part.events.length === 0) {
        return fail("events.read: a part without events has `hasMore`: it would be read without end");
      }
      events.push(...part.events.map((event) => text("events.read", event) ?? ""));
      if (events.length > 2 * LONG_STREAM) {
        return fail("events.read: more events than were appended: `hasMore` does not end");
      }
      if (part.hasMore !== true) {
        return [events, part.ended === true];
      }
    }
  };
  const [stream, unknown] = [`${name}/1`, `${name}/2`];
  expect("events.read", "a stream that is unknown", await read(stream, 0), null);
  await a.events.end(unknown, 5);
  expect("events.end", "a stream that is unknown stays so", await read(unknown, 0), null);
  const every = ["four", "", "sechs ☃"];
  await append(stream, 4, every.slice(0, 2));
  await append(`${stream}0`, 0, ["of another stream"]);
  await append(stream, 6, every.slice(2));
  expect("events.read", "from the first event on", await read(stream, 3), [every, false]);
  expect("events.read", "from a later event on", await read(stream, 5), [every.slice(2), false]);
  expect("events.read", "after the last event", await read(stream, 6), [[], false]);
  expect("events.read", "events before the first one that is kept", await read(stream, 2), null);
  expect("events.read", "after a number that was never stored", await read(stream, 7), null);
  await a.events.end(stream, 6);
  expect("events.read", "a stream that has ended", await read(stream, 5), [every.slice(2), true]);
  const gap = `${name}/gap`;
  await append(gap, 0, ["0", "1"]);
  await append(gap, 5, ["5", "6"]);
  expect("events.read", "events after a gap", await read(gap, 4), [["5", "6"], false]);
  expect("events.read", "from before a gap, so that events are missing", await read(gap, 1), null);
  const lost = `${name}/lost`;
  await append(lost, 0, ["0", "1"]);
  await a.events.end(lost, 2);
  expect("events.end", "a stream without its last event, which is not known any more", await read(lost, 0), null);
  const long = `${name}/long`;
  const numbered = Array.from({ length: LONG_STREAM }, (_, index) => String(index));
  for (let first = 0; first < LONG_STREAM; first += APPENDED) {
    await append(long, first, numbered.slice(first, first + APPENDED));
  }
  expect("events.read", "a long stream, in all parts", await read(long, 0), [numbered.slice(1), false]);
}

async function checkBus(a: Sharing, b: Sharing): Promise<void> {
  const messages = Array.from({ length: 100 }, (_, index) => `check ${String(index)} ☃`);
  const received: string[] = [];
  let arrive: (() => void) | undefined;
  const arrived = new Promise<boolean>((resolve) => {
    arrive = () => {
      resolve(true);
    };
  });
  const end: unknown = await b.bus.subscribe((message) => {
    const shown = text("bus.subscribe", message);
    // The messages of others may be received as well.
    if (shown !== null && messages.includes(shown)) {
      received.push(shown);
    }
    if (received.length >= messages.length) {
      arrive?.();
    }
  });
  if (typeof end !== "function") {
    return fail(`bus.subscribe: ${typeof end} instead of a function that ends the subscription`);
  }
  let timer: NodeJS.Timeout | undefined;
  try {
    for (const message of messages) {
      await a.bus.publish(bytes(message));
    }
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => {
        resolve(false);
      }, MESSAGE_TIMEOUT);
    });
    if (!(await Promise.race([arrived, late]))) {
      const [count, all] = [received.length, messages.length].map(String) as [string, string];
      fail(`bus.publish: ${count} of ${all} messages arrived within ${String(MESSAGE_TIMEOUT)} ms`);
    }
    expect("bus.publish", "messages in their order, each once", received, messages);
  } finally {
    clearTimeout(timer);
    await withTimeout("bus.subscribe: its function that ends the subscription", (end as () => unknown)());
  }
}
