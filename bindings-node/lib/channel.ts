/** Transports of one's own: channels that carry one message at a time, for clients and for servers. */

import { errorText, warn } from "./client/host.js";
import { attempt } from "./errors.js";
import { hub, listen, type Listener, nextNumber, promised, unlisten } from "./hub.js";
import { native, type NativeChannels } from "./native.js";

/** Where what comes by a channel is given. */
export interface Incoming {
  /**
   * Gives one message from the other side, or a batch of them, as JSON text. Returns whether there is room for more: if
   * there isn't, wait for {@link ready} before reading on. At 256 MiB that nobody has waited for, the channel ends.
   */
  message(text: string): boolean;
  /** Resolves when there is room for more: while more than 32 MiB wait, there isn't. */
  ready(): Promise<void>;
  /** Says that the channel is closed, and nothing more comes; with a reason if it failed. */
  closed(reason?: string | Error): void;
}

/** A channel that is open. */
export interface Channel {
  /**
   * Sends one message to the other side: JSON text on one line. A promise says when it is sent: no more is given than a few
   * messages before that.
   */
  send(message: string): unknown;
  /** Closes the channel: the last that is called of it, whichever side has closed it. */
  close?(): unknown;
}

/** A way to the other side. */
export interface ClientTransport {
  /**
   * Opens a channel: once for each conversation, anew when the last one was closed.
   *
   * @param incoming Where to give what comes; from now on, if need be.
   */
  open(incoming: Incoming): Channel | Promise<Channel>;
}

/** What is to be done with a channel; as in `src/channel.rs`. */
const enum About {
  Open = 0,
  Send = 1,
  Close = 2,
}

/** The channels of one client, or of one connection of a server. */
export class Channels implements Listener {
  readonly native: NativeChannels;
  readonly #transport: ClientTransport;
  readonly #number = nextNumber();
  readonly #open = new Map<number, Channel>();
  /** How many channels the core has. */
  #carried = 0;
  #isOver = false;

  constructor(transport: ClientTransport) {
    this.#transport = transport;
    this.native = attempt(() => new native.Channels(hub, this.#number));
    listen(this.#number, this);
  }

  /** Does what the core wants done. */
  told(about: About, number: number, json: string): void {
    switch (about) {
      case About.Open:
        this.#carried++;
        void this.#dial(number);
        break;
      case About.Send:
        void this.#send(number, json);
        break;
      case About.Close:
        this.#carried--;
        void this.#hangUp(number);
        this.#leave();
        break;
    }
  }

  /** Lets go of them, once they are closed. */
  end(): void {
    this.#isOver = true;
    this.#leave();
  }

  #leave(): void {
    if (this.#isOver && this.#carried === 0) {
      unlisten(this.#number);
    }
  }

  async #dial(number: number): Promise<void> {
    const channels = this.native;
    const incoming: Incoming = {
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
    try {
      const channel = await this.#transport.open(incoming);
      this.#open.set(number, channel);
      channels.opened(number);
    } catch (error) {
      channels.opened(number, errorText(error));
    }
  }

  /** Sends a message. A channel that can't is closed. */
  async #send(number: number, message: string): Promise<void> {
    try {
      await this.#open.get(number)?.send(message);
    } catch (error) {
      warn("a transport failed", error);
      this.native.hungUp(number, errorText(error));
      void this.#hangUp(number);
    }
    this.native.sent(number);
  }

  async #hangUp(number: number): Promise<void> {
    const channel = this.#open.get(number);
    this.#open.delete(number);
    try {
      await channel?.close?.();
    } catch (error) {
      warn("a transport failed", error);
    }
  }
}
