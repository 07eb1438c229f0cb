/** Transports of one's own: channels that carry one message at a time. */

import { warn } from "./host.js";
import type { NativeClient } from "./native.js";

/** Where what comes by a channel is given. */
export interface Incoming {
  /** Gives one message from the server, or a batch of them, as JSON text. */
  message(text: string): void;
  /** Says that the channel is closed, and nothing more comes. */
  closed(): void;
}

/** A channel to a server that is open. */
export interface Channel {
  /** Sends one message to the server: JSON text on one line. */
  send(message: string): unknown;
  /** Closes the channel. */
  close?(): unknown;
}

/** A way to a server. */
export interface ClientTransport {
  /**
   * Opens a channel: once for each conversation, anew when the last one was closed.
   *
   * @param incoming Where to give what comes; from now on, if need be.
   */
  open(incoming: Incoming): Channel | Promise<Channel>;
}

/** The channels of one client. */
export class Channels {
  readonly #transport: ClientTransport;
  readonly #native: NativeClient;
  readonly #open = new Map<number, Channel>();

  constructor(transport: ClientTransport, native: NativeClient) {
    this.#transport = transport;
    this.#native = native;
  }

  /** Opens the channel with this number. */
  dial(number: number): void {
    void this.#dial(number);
  }

  async #dial(number: number): Promise<void> {
    const native = this.#native;
    const incoming: Incoming = {
      message: (text) => native.received(number, text),
      closed: () => {
        native.hungUp(number);
        this.#open.delete(number);
      },
    };
    try {
      const channel = await this.#transport.open(incoming);
      this.#open.set(number, channel);
      native.opened(number);
    } catch (error) {
      native.opened(number, error instanceof Error ? error.message : String(error));
    }
  }

  /** Sends a message by the channel with this number. One that fails is closed. */
  send(number: number, message: string): void {
    const failed = (error: unknown) => {
      warn("a transport failed", error);
      this.#native.hungUp(number);
      this.hangUp(number);
    };
    try {
      const sent = this.#open.get(number)?.send(message);
      if (sent instanceof Promise) {
        sent.catch(failed);
      }
    } catch (error) {
      failed(error);
    }
  }

  /** Closes the channel with this number. */
  hangUp(number: number): void {
    const channel = this.#open.get(number);
    this.#open.delete(number);
    const failed = (error: unknown) => warn("a transport failed", error);
    try {
      const closed = channel?.close?.();
      if (closed instanceof Promise) {
        closed.catch(failed);
      }
    } catch (error) {
      failed(error);
    }
  }
}
