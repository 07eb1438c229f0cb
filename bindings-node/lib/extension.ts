/** Protocol extensions of servers and clients. */

import type { Context } from "./context.js";
import type { InputRequestContext } from "./client/host.js";
import { checkMethod } from "./feature_checks.js";
import { checkHandler, checkName, checkOptions } from "./option_checks.js";
import { optionNames } from "./option_names.js";
import type { Schema } from "./schemas.js";
import type { Awaitable, MethodOptions, ParamsOf, RequestReturn } from "./feature_options.js";
import type { Server } from "./server.js";

/** Options of an extension of a server. */
export interface ExtensionOptions {
  /** Settings to declare; their members are defined by the extension. */
  settings?: Readonly<Record<string, unknown>>;
  /** Result types of the extension, which handlers can return with {@link ExtendedResult}. */
  resultTypes?: readonly string[];
}

const EXTENSION_OPTIONS = optionNames<ExtensionOptions>({ settings: true, resultTypes: true });

/**
 * A protocol extension that a server offers (2026-07-28, "Extensions").
 *
 * ```ts
 * const stamps = new Extension("com.example/stamps", { settings: { colors: 3 } });
 * stamps.onRequest("stamps/issue", { params: z.object({ color: z.string() }) }, ({ color }) => ({ stamp: color }));
 * const server = new Server({ name: "shop", version: "1.0.0", extensions: [stamps] });
 * ```
 *
 * The server declares the identifier and the settings, to clients of every revision. Requests of the extension's
 * methods are refused with -32021 if the client does not declare the extension; notifications are dropped with a
 * warning. Notifications of 2026-07-28 are handled if they do not contain the client's capabilities.
 *
 * An extension can be added to several servers. What is registered later takes effect on each of them.
 */
export class Extension {
  readonly #registrations: ((server: Server) => void)[] = [];
  /** Weak references: an extension keeps no server alive. */
  #servers: WeakRef<Server>[] = [];

  /** @param identifier A domain that you own as prefix, and a name, such as `com.example/stamps`. */
  constructor(
    readonly identifier: string,
    readonly options: ExtensionOptions = {},
  ) {
    checkName("the identifier of an extension", identifier);
    checkOptions(`extension \`${identifier}\``, options, EXTENSION_OPTIONS);
  }

  /** Registers a handler of a request of the extension; see {@link Server.onRequest}. */
  onRequest<const P extends Schema | undefined = undefined>(
    method: string,
    options: Omit<MethodOptions<P>, "extension">,
    handler: (params: ParamsOf<P>, ctx: Context) => Awaitable<RequestReturn>,
  ): this {
    checkMethod(method, options, handler);
    const own = { ...options, extension: this.identifier } as MethodOptions<P>;
    return this.register((server) => {
      server.onRequest(method, own, handler);
    });
  }

  /** Registers a handler of a notification of the extension; see {@link Server.onNotification}. */
  onNotification<const P extends Schema | undefined = undefined>(
    method: string,
    options: Omit<MethodOptions<P>, "extension" | "runOnce">,
    handler: (params: ParamsOf<P>, ctx: Context) => Awaitable<void>,
  ): this {
    checkMethod(method, options, handler);
    const own = { ...options, extension: this.identifier } as MethodOptions<P>;
    return this.register((server) => {
      server.onNotification(method, own, handler);
    });
  }

  /**
   * Calls a function with each server that the extension is added to, before or after, to register its tools, resources
   * and prompts. All clients see these, including those that do not declare the extension.
   *
   * An error of the function is thrown here if the extension is already added to a server, and otherwise where the
   * server is created.
   */
  register(register: (server: Server) => void): this {
    checkHandler(`extension \`${this.identifier}\``, register);
    for (const reference of [...this.#servers]) {
      const server = reference.deref();
      if (server !== undefined) {
        register(server);
      }
    }
    this.#registrations.push(register);
    return this;
  }

  /** @internal */
  addTo(server: Server): void {
    // What a registration registers in turn takes effect at once, because the server is added before.
    const registrations = [...this.#registrations];
    const added = new WeakRef(server);
    this.#servers = [...this.#servers.filter((reference) => reference.deref() !== undefined), added];
    try {
      for (const register of registrations) {
        register(server);
      }
    } catch (error) {
      this.#servers = this.#servers.filter((reference) => reference !== added);
      throw error;
    }
  }
}

/** A result that a server returned, with a `resultType` that an extension defines. */
export interface ReceivedResult {
  /** Method of the request. */
  readonly method: string;
  /** Parameters of the request. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** The result as the server sent it. */
  readonly result: Readonly<Record<string, unknown>>;
}

/** A protocol extension that a client supports. The client declares it to servers of every revision. */
export interface ClientExtension {
  /** A domain as prefix, and a name, such as `com.example/stamps`. */
  readonly identifier: string;
  /** Settings to declare; their members are defined by the extension. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Handlers of requests of the server, by method; see {@link Handlers.onRequest}. */
  readonly onRequest?: Readonly<
    Record<string, (params: Record<string, unknown>, context: InputRequestContext) => Awaitable<object | undefined>>
  >;
  /**
   * Handlers of the extension's result types, by `resultType` (2026-07-28). Each is called with a {@link
   * ReceivedResult} and returns the method's ordinary result, which the caller of the method gets. It may send
   * requests. If it throws, the call fails with {@link InputRequestFailedError}.
   */
  readonly onResultType?: Readonly<
    Record<string, (received: ReceivedResult, context: InputRequestContext) => Awaitable<object>>
  >;
}

/**
 * A result of an extension's result type, returned by a handler instead of its usual result.
 *
 * The type must be one of {@link ExtensionOptions.resultTypes} of the server's extensions. It can only be sent to
 * clients of 2026-07-28 that declare the extension (see {@link Context.clientExtension}); other clients are refused
 * with -32021.
 */
export class ExtendedResult {
  /**
   * @param resultType The `resultType`, a name that the extension defines.
   * @param members The other members of the result.
   */
  constructor(
    readonly resultType: string,
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {}
}
