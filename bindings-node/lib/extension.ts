/** Extensions of the protocol: what belongs to one identifier, as one value for a server or a client. */

import type { Context } from "./context.js";
import type { Asked } from "./client/host.js";
import type { Schema } from "./schemas.js";
import type { Awaitable, MethodOptions, ParamsOf, RequestReturn, Server } from "./server.js";

/** What an extension of a server declares. */
export interface ExtensionOptions {
  /** Settings, whose members the extension defines. */
  settings?: Readonly<Record<string, unknown>>;
  /** Types of results that handlers may return to clients that declare the extension; see {@link ExtendedResult}. */
  resultTypes?: readonly string[];
}

/**
 * An extension that a server offers (2026-07-28, "Extensions").
 *
 * ```ts
 * const stamps = new Extension("com.example/stamps", { settings: { colors: 3 } });
 * stamps.onRequest("stamps/issue", { params: z.object({ color: z.string() }) }, ({ color }) => ({ stamp: color }));
 * const server = new Server({ name: "shop", version: "1.0.0", extensions: [stamps] });
 * ```
 *
 * The server declares the identifier with the settings to clients of every revision. The extension's methods are served to
 * clients that declare it, too: a request of another client is answered with -32021, a notification is dropped with a warning.
 * On 2026-07-28 notifications need not say what their client declares; one that doesn't is handled.
 */
export class Extension {
  readonly #registrations: ((server: Server) => void)[] = [];

  /**
   * @param identifier A prefix made of a domain that you own and a name, such as `com.example/stamps`.
   */
  constructor(
    readonly identifier: string,
    readonly options: ExtensionOptions = {},
  ) {}

  /** Serves requests of a method of the extension; see {@link Server.onRequest}. */
  onRequest<const P extends Schema | undefined = undefined>(
    method: string,
    options: Omit<MethodOptions<P>, "extension">,
    handler: (params: ParamsOf<P>, ctx: Context) => Awaitable<RequestReturn>,
  ): this {
    const own = { ...options, extension: this.identifier } as MethodOptions<P>;
    return this.register((server) => {
      server.onRequest(method, own, handler);
    });
  }

  /** Handles notifications of a method of the extension; see {@link Server.onNotification}. */
  onNotification<const P extends Schema | undefined = undefined>(
    method: string,
    options: Omit<MethodOptions<P>, "extension" | "runOnce">,
    handler: (params: ParamsOf<P>, ctx: Context) => Awaitable<void>,
  ): this {
    const own = { ...options, extension: this.identifier } as MethodOptions<P>;
    return this.register((server) => {
      server.onNotification(method, own, handler);
    });
  }

  /**
   * Registers whatever else belongs to the extension with each server that it is added to: tools, resources, prompts. Clients
   * that don't declare the extension see them as well.
   */
  register(register: (server: Server) => void): this {
    this.#registrations.push(register);
    return this;
  }

  /** @internal */
  addTo(server: Server): void {
    for (const register of this.#registrations) {
      register(server);
    }
  }
}

/** A result of an extension's type that a client was answered with. */
export interface ReceivedResult {
  /** The method of the request. */
  readonly method: string;
  /** The parameters of the request. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** The result, as it came. */
  readonly result: Readonly<Record<string, unknown>>;
}

/** An extension that a client supports: the client declares the identifier, to servers of every revision. */
export interface ClientExtension {
  /** A prefix made of a domain that you own and a name, such as `com.example/stamps`. */
  readonly identifier: string;
  /** Settings, whose members the extension defines. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Serves requests of servers by method, as {@link Handlers.onRequest} does. */
  readonly onRequest?: Readonly<
    Record<string, (params: Record<string, unknown>, asked: Asked) => Awaitable<object | undefined>>
  >;
  /**
   * Takes results of the extension's types (2026-07-28), by `resultType`. A handler returns the ordinary result of the method, and
   * may send requests for that. The caller of the method sees that result alone. What it throws becomes
   * `InputRequestFailedError`.
   */
  readonly onResultType?: Readonly<Record<string, (received: ReceivedResult, asked: Asked) => Awaitable<object>>>;
}

/**
 * Returned by a handler of a tool, resource or prompt in place of its usual result: a result of a type of an extension's
 * ({@link ExtensionOptions.resultTypes}). Only clients of 2026-07-28 that declare the extension can be sent one; a client that
 * doesn't is answered with -32021. {@link Context.clientExtension} says whether one does.
 */
export class ExtendedResult {
  /**
   * @param resultType `resultType`, a name that the extension defines.
   * @param members The other members of the result.
   */
  constructor(
    readonly resultType: string,
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {}
}
