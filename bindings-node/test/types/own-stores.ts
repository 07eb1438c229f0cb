// Types of shared state that a program implements. This file never runs: `types.test.mjs` compiles it.
import {
  type Bus,
  checkSharing,
  type EventLog,
  type LoggedEvents,
  Server,
  type SessionStore,
  type Sharing,
} from "mcpline";

class AsyncStore implements SessionStore, EventLog, Bus {
  async save(_id: string, _session: Uint8Array, replaces: Uint8Array): Promise<Uint8Array | undefined> {
    return replaces.length > 0 ? replaces : undefined;
  }
  async load(id: string): Promise<Buffer | null> {
    return id === "" ? null : Buffer.from(id);
  }
  async remove(): Promise<void> {}
  async append(_stream: string, _number: number, _events: Uint8Array[]): Promise<void> {}
  async end(): Promise<void> {}
  async read(): Promise<LoggedEvents | undefined> {
    return { events: [new Uint8Array()], hasMore: false };
  }
  async publish(): Promise<void> {}
  async subscribe(receive: (message: Uint8Array) => void): Promise<() => Promise<void>> {
    receive(Buffer.from("message"));
    return async () => {};
  }
}

const plain = {
  save: (_id: string, _session: Uint8Array, _replaces: Uint8Array, lifetime: number) => {
    console.log(lifetime);
  },
  load: () => undefined,
  remove: (id: string) => id.length,
  append: () => {},
  end: () => {},
  read: () => ({ events: [], ended: true }),
  publish: () => {},
  subscribe: () => () => {},
};

const store = new AsyncStore();
const sharing: Sharing = { sessions: store, events: plain, bus: store, timeout: 500 };
export const servers = [sharing, { sessions: plain, events: store, bus: plain }, "local"].map(
  (sharing: Sharing | string) => new Server({ name: "typed", version: "1", settings: { sharing } }),
);
export const checked: Promise<void> = checkSharing(sharing, sharing);
// @ts-expect-error -- a server needs all three parts
export const incomplete: Sharing = { sessions: store, events: store };
// @ts-expect-error -- sessions are bytes
export const text: SessionStore = { ...plain, load: () => "text" };
