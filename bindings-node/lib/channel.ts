/** Custom transports: channels that carry one message at a time, for clients and servers. */

import { errorText, warn } from "./client/host.js";
import { attempt } from "./errors.js";
import { hub, listen, type Listener, nextNumber, promised, unlisten } from "./hub.js";
import { native, type NativeChannels } from "./native.js";
import { isPromise } from "./is_promise.js";

/** Receiver of a channel's messages. */
export interface MessageReceiver {
  /**
   * Delivers one message, or a batch, as JSON text. Returns whether there is room for more; if not, wait for {@link
   * ready} before reading on. The channel ends if more than 256 MiB are waiting.
   */
  message(text: string): boolean;
  /** Resolves when there is room for more messages: when at most 32 MiB are waiting. */
  ready(): Promise<void>;
  /** Reports that the channel is closed, with a reason if it failed. */
  closed(reason?: string | Error): void;
}

/** An open channel. */
export interface Channel {
  /**
   * Sends one message to the peer: JSON text without line breaks. Calls do not overlap: if it returns a promise, the
   * next call waits for it. If it throws or rejects, the channel is closed, and further messages are not sent.
   */
  send(message: string): unknown;
  /** Closes the channel. Called last, regardless of which side closed it. */
  close?(): unknown;
}

/** A way to open channels to a server. */
export interface ClientTransport {
  /**
   * Opens a channel. Called for each connection, again after a connection was lost.
   *
   * @param incoming Receiver of the channel's messages, which can be used at once.
   */
  open(incoming: MessageReceiver): Channel | Promise<Channel>;
}

/** Kinds of events of a channel; as in `src/channel.rs`. */
const enum About {
  Open = 0,
  Send = 1,
  Close = 2,
}

/** A channel in use by the core. */
interface OpenedChannel {
  /** `undefined` until the channel is open, and after it has failed. */
  channel: Channel | undefined;
  /** Messages that wait for the current `send`; bounded by the core. */
  readonly unsent: string[];
  isSending: boolean;
}

/** The channels of one client, or of one connection of a server. */
export class Channels implements Listener {
  readonly native: NativeChannels;
  readonly #transport: ClientTransport;
  readonly #number = nextNumber();
  /** Channels in use by the core, by number. */
  readonly #carried = new Map<number, OpenedChannel>();
  #isOver = false;

  constructor(transport: ClientTransport) {
    this.#transport = transport;
    this.native = attempt(() => new native.Channels(hub, this.#number));
    listen(this.#number, this);
  }

  /** Handles an event of the core. */
  onEvent(about: About, number: number, json: string): void {
    switch (about) {
      case About.Open:
        void this.#dial(number);
        break;
      case About.Send:
        this.#send(number, json);
        break;
      case About.Close:
        this.#close(number);
        break;
    }
  }

  /** Releases the channels when they are closed. */
  end(): void {
    this.#isOver = true;
    this.#leave();
  }

  #leave(): void {
    if (this.#isOver && this.#carried.size === 0) {
      unlisten(this.#number);
    }
  }

  async #dial(number: number): Promise<void> {
    const channels = this.native;
    const carried: OpenedChannel = { channel: undefined, unsent: [], isSending: false };
    this.#carried.set(number, carried);
    const incoming: MessageReceiver = {
      message: (text) => channels.received(number, text),
      ready: async () => {
        const [promise, ready] = promised(false);
        channels.ready(number, promise);
        await ready;
      },
      closed: (reason) => {
        channels.hungUp(number, reason === undefined ? undefined : errorText(reason));
      },
    };
    let channel: Channel;
    try {
      channel = checked(await this.#transport.open(incoming));
    } catch (error) {
      channels.opened(number, errorText(error));
      return;
    }
    if (this.#carried.get(number) === carried) {
      carried.channel = channel;
      channels.opened(number);
    } else {
      // The core closed it while it was being opened.
      await hangUp(channel);
    }
  }

  /** Sends a message after the previous ones. */
  #send(number: number, message: string): void {
    const carried = this.#carried.get(number);
    if (carried !== undefined) {
      carried.unsent.push(message);
      if (!carried.isSending) {
        void this.#sendAll(number, carried);
      }
    }
  }

  /** Sends the waiting messages; synchronously, if `send` returns no promises. Closes the channel if it fails. */
  async #sendAll(number: number, carried: OpenedChannel): Promise<void> {
    carried.isSending = true;
    for (let message; (message = carried.unsent.shift()) !== undefined;) {
      try {
        const sent = carried.channel?.send(message);
        if (isPromise(sent)) {
          await sent;
        }
      } catch (error) {
        warn("a transport failed", error);
        this.native.hungUp(number, errorText(error));
        end(carried);
      }
      // Counts messages that a failed channel drops: the core waits for them.
      this.native.sent(number);
    }
    carried.isSending = false;
  }

  /** Closes a channel now, or as soon as it is open. */
  #close(number: number): void {
    const carried = this.#carried.get(number);
    this.#carried.delete(number);
    if (carried !== undefined) {
      end(carried);
    }
    this.#leave();
  }
}

/** Checks that a transport has opened a channel. */
function checked(channel: Channel): Channel {
  // JavaScript programs are not type-checked.
  const given = channel as Partial<Channel> | null | undefined;
  if (typeof given?.send !== "function") {
    throw new TypeError("`open` of a transport must resolve to a channel: `send` is not a function");
  }
  if (given.close !== undefined && typeof given.close !== "function") {
    throw new TypeError("`open` of a transport must resolve to a channel: `close` is not a function");
  }
  return channel;
}

/** Closes a channel, if it is open. */
function end(carried: OpenedChannel): void {
  const { channel } = carried;
  carried.channel = undefined;
  if (channel !== undefined) {
    void hangUp(channel);
  }
}

async function hangUp(channel: Channel): Promise<void> {
  try {
    await channel.close?.();
  } catch (error) {
    warn("a transport failed", error);
  }
}
