/** Serving: the transports that a server serves at present, and their end. */

import { writeSync } from "node:fs";

import { type AsyncContext, beginOrigin, captureContext, endOrigin } from "./async_context.js";
import { principalJson, registerVerifier, type VerifiedCaller } from "./auth.js";
import { type Channel, Channels, type MessageReceiver } from "./channel.js";
import { attempt, RpcError, TransportError, UsageError } from "./errors.js";
import { exitIfClosedOnSignals, exitSoon } from "./exit.js";
import { type HttpExchange, HttpApp } from "./http.js";
import {
  allowCollection,
  type CallReceiver,
  dropPromise,
  preventCollection,
  promised,
  runsOnlyCancelledCalls,
} from "./hub.js";
import type { NativeHttpApp, NativeServedChannel, NativeServer } from "./native.js";
import { checkName, checkOptions } from "./option_checks.js";
import type { RequestTracing } from "./request_spans.js";
import { HTTP_NAMES, httpOptions, type HttpSettings, UNIX_NAMES, unixOptions, type UnixSettings } from "./settings.js";
import { type Tls, tlsOptions } from "./tls.js";
import { printToStderr } from "./windows_output.js";
import { workerProgram } from "./worker_program.js";

/** Options of {@link Server.listen}. */
export interface ListenOptions extends HttpSettings {
  /** Port to bind; 0 selects a free one. Default: 0. */
  port?: number;
  /**
   * Address to bind. Default: `127.0.0.1`. `0.0.0.0` binds all IPv4 interfaces. `fd://3` is a listening TCP socket that the
   * process has inherited, here as descriptor 3, the first one from systemd.
   */
  host?: string;
  /**
   * Number of processes that serve, for handlers that compute: JavaScript runs on one thread. `listen` starts the program again,
   * with the same arguments, once for each worker; workers serve on the same socket, are replaced when they end, and stop
   * together. What the program does before `listen` is done in each process. Clients of revisions up to 2025-11-25
   * have sessions, so the server needs the setting `sharing`, or `stateless`. Call
   * {@link Server.closeOnSignals}, so that processes end when their server has stopped. Not on Windows. Default: 1, this process.
   */
  workers?: number;
  /**
   * How long each of the `workers` may take from its start until it serves, in milliseconds. A worker that takes longer is killed
   * and replaced. Set it higher if the program loads for minutes, for example a model. Default: 300,000.
   */
  workerStartTimeout?: number;
  /** Certificate and private key, to serve `https` URLs. Default: none, `http`. */
  tls?: Tls;
}

/** A running HTTP server. */
export interface HttpListener {
  /** The bound address. */
  readonly host: string;
  /** The bound port. */
  readonly port: number;
  /** URL of the MCP endpoint. */
  readonly url: string;
  /** Settles when the server has stopped. */
  readonly closed: Promise<void>;
  /** Stops the server gracefully, as {@link Server.close} does. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A server that listens on a Unix socket. */
export interface UnixListener {
  /** Path of the socket. */
  readonly path: string;
  /** Settles when the server has stopped. */
  readonly closed: Promise<void>;
  /** Stops the server gracefully, as {@link Server.close} does. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A client that is served over a custom transport. */
export interface ServedChannel {
  /** Resolves when the channel has ended, closed by either side. Rejects if the transport failed. */
  readonly closed: Promise<void>;
  /** Ends the channel gracefully, as {@link Server.close} does. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Options of {@link Server.serveChannel}. */
export interface ChannelOptions {
  /**
   * The client's identity, as authenticated by the transport. It does not change until the channel closes. Handlers
   * read it from {@link Context.auth}. Scopes of tools, resources, prompts and custom methods apply as over HTTP:
   * features that it may not use are hidden from lists, and calls are refused with error -31001. All channels of a
   * principal count as one client. Without a principal the client may do everything, which is right if this process
   * started the client, or the client started this process.
   */
  principal?: VerifiedCaller;
}

const LISTEN = [...HTTP_NAMES, "port", "host", "workers", "workerStartTimeout", "tls"];
const MAX_PORT = 65_535;

/** Host, port, URL, start-up message, and role in a program with workers. */
type Bound = [string, number, string, string | null, "worker" | "supervisor" | null];

/** A transport that is being served. */
interface ServedTransport {
  native: NativeServedChannel;
  ended: Promise<void>;
  /** Whether an HTTP server serves `https` URLs; `undefined` for other transports. */
  hasTls: boolean | undefined;
}

/** The transports and the HTTP applications of a server, and the contexts in which the handlers of their calls run. */
export class Serving {
  readonly #transports = new Set<ServedTransport>();
  readonly #apps = new Set<HttpApp>();
  /** Contexts of stdio, of HTTP and of clients in this process while they are served. The last one is used. */
  readonly #contexts: AsyncContext[] = [];

  /**
   * @param number Number of the server in the hub.
   * @param receiver Runs the calls of the server. It is kept from being collected while a transport is served.
   * @param tracing Begins with the first transport for which the program has set it up.
   */
  constructor(
    private readonly native: NativeServer,
    private readonly number: number,
    private readonly receiver: CallReceiver,
    private readonly tracing: RequestTracing,
  ) {}

  /** The context of calls without one of their own. */
  get context(): AsyncContext | undefined {
    return this.#contexts.at(-1);
  }

  /** Makes the current context that of calls without one of their own, until the returned function is called. */
  enterContext(): () => void {
    this.tracing.begin();
    const context = captureContext();
    this.#contexts.push(context);
    return () => {
      const index = this.#contexts.indexOf(context);
      if (index >= 0) {
        this.#contexts.splice(index, 1);
      }
    };
  }

  /** Whether the HTTP servers serve `https` URLs, all of them. */
  get servesTls(): boolean {
    const known = [...this.#transports].map(({ hasTls }) => hasTls);
    return known.includes(true) && !known.includes(false);
  }

  /** Returns an exchange of an HTTP application. */
  exchange(number: number): HttpExchange | undefined {
    for (const app of this.#apps) {
      const exchange = app.exchange(number);
      if (exchange !== undefined) {
        return exchange;
      }
    }
    return undefined;
  }

  /** Serves over stdio; see {@link Server.run}. */
  async stdio(): Promise<void> {
    let transport: ServedTransport | undefined;
    const stop = () => {
      transport?.native.stop();
    };
    const leave = this.enterContext();
    printToStderr();
    // Before a client can detect that the server runs.
    process.once("SIGINT", stop).once("SIGTERM", stop);
    try {
      const [number, ended] = promised();
      transport = this.#serve([number], ended, () => this.native.serveStdio(number));
      announce(transport.native.startupMessage);
      await transport.ended;
    } finally {
      leave();
      process.off("SIGINT", stop).off("SIGTERM", stop);
      exitSoon(() => this.#apps.size === 0 && runsOnlyCancelledCalls());
    }
  }

  /** Checks functions that implement shared state, by their numbers and with their timeout in seconds. */
  async checkSharing(
    [functions, timeout]: [number[], number | undefined],
    [others, otherTimeout]: [number[], number | undefined],
  ): Promise<void> {
    const [number, ended] = promised();
    const transport = this.#serve([number], ended, () =>
      this.native.checkSharing(number, functions, timeout, others, otherTimeout),
    );
    const leave = this.enterContext();
    try {
      await transport.ended;
    } finally {
      leave();
    }
  }

  /** Serves one client over a custom transport; see {@link Server.serveChannel}. */
  async channel(
    open: (incoming: MessageReceiver) => Channel | Promise<Channel>,
    { principal }: ChannelOptions,
  ): Promise<ServedChannel> {
    const named = principal === undefined ? undefined : principalJson(principal, "principal");
    const channels = new Channels({ open });
    const [openedNumber, opened] = promised();
    const [endedNumber, ended] = promised();
    let transport: ServedTransport;
    beginOrigin(endedNumber, captureContext());
    const end = () => {
      endOrigin(endedNumber);
      channels.end();
    };
    try {
      transport = this.#serve([openedNumber, endedNumber], ended, () =>
        this.native.serveChannel(openedNumber, endedNumber, channels.native, named),
      );
    } catch (error) {
      end();
      throw error;
    }
    const ends = () => {
      dropPromise(openedNumber);
      end();
    };
    transport.ended.then(ends, ends);
    await Promise.race([opened, transport.ended]);
    const close = closing(transport);
    return { closed: transport.ended, close, [Symbol.asyncDispose]: close };
  }

  /** Serves over HTTP; see {@link Server.listen}. */
  async http(options: ListenOptions): Promise<HttpListener> {
    checkOptions("`listen`", options, LISTEN);
    const { port = 0, host = "127.0.0.1", workers = 1, workerStartTimeout, tls, ...settings } = options;
    if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) {
      throw new UsageError(`\`port\` must be a whole number from 0 to ${String(MAX_PORT)}, not ${String(port)}`);
    }
    checkName("`host`", host);
    const program = workers === 1 ? undefined : workerProgram(workers, workerStartTimeout);
    const serialized = httpOptions(settings);
    const certified = tls === undefined ? undefined : tlsOptions(tls);
    const verifier = registerVerifier(settings.auth);
    const [boundNumber, bound] = promised();
    const [endedNumber, ended] = promised();
    let transport: ServedTransport;
    try {
      const start = () =>
        this.native.serveHttp(boundNumber, endedNumber, host, port, serialized, verifier.native, certified, program);
      transport = this.#serve([boundNumber, endedNumber], ended, start, certified !== undefined);
    } catch (error) {
      verifier.end();
      throw error;
    }
    const leave = this.enterContext();
    const end = () => {
      leave();
      verifier.end();
    };
    transport.ended.then(end, end);
    let facts;
    try {
      facts = await bound;
    } catch (error) {
      throw error instanceof TransportError ? unboundError(error, host, port) : error;
    }
    const [actualHost, actualPort, url, message, role] = JSON.parse(facts ?? "[]") as Bound;
    announce(message);
    if (role === "worker") {
      // It is for this process, not for programs that handlers start.
      delete process.env["MCPLINE_WORKER"];
      this.native.reportReady();
      transport.ended.then(exitIfClosedOnSignals, exitIfClosedOnSignals);
    }
    if (role === "supervisor") {
      transport.ended.catch(failProgram);
    }
    const close = closing(transport);
    return {
      host: actualHost,
      port: actualPort,
      url,
      closed: transport.ended,
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /** Serves on a Unix socket; see {@link Server.listenUnix}. */
  async unix(path: string, settings: UnixSettings): Promise<UnixListener> {
    checkName("`path`", path);
    checkOptions("`listenUnix`", settings, UNIX_NAMES);
    const options = unixOptions(settings);
    const [boundNumber, bound] = promised();
    const [endedNumber, ended] = promised();
    const transport = this.#serve([boundNumber, endedNumber], ended, () =>
      this.native.serveUnix(boundNumber, endedNumber, path, options),
    );
    const leave = this.enterContext();
    transport.ended.then(leave, leave);
    announce(JSON.parse((await bound) ?? "null") as string | null);
    const close = closing(transport);
    return { path, closed: transport.ended, close, [Symbol.asyncDispose]: close };
  }

  /** Creates an HTTP application. It belongs to the server until it is closed. */
  httpApp(settings: HttpSettings): HttpApp {
    const options = httpOptions(settings);
    const verifier = registerVerifier(settings.auth);
    let made: NativeHttpApp;
    try {
      made = attempt(() => this.native.httpApp(options, verifier.native));
    } catch (error) {
      verifier.end();
      throw error;
    }
    const closed = () => {
      this.#apps.delete(app);
      verifier.end();
    };
    const outerSpan = () => this.tracing.outerSpan();
    const app: HttpApp = new HttpApp(made, settings.auth !== undefined, closed, outerSpan);
    this.#apps.add(app);
    return app;
  }

  /** Stops all transports and applications gracefully, and waits for their end. */
  async close(): Promise<void> {
    const transports = [...this.#transports];
    for (const { native } of transports) {
      native.stop();
    }
    const apps = [...this.#apps].map((app) => app.close());
    await Promise.allSettled([...apps, ...transports.map(({ ended }) => ended)]);
  }

  #serve(
    promises: number[],
    ended: Promise<unknown>,
    start: () => NativeServedChannel,
    hasTls?: boolean,
  ): ServedTransport {
    this.tracing.begin();
    let native: NativeServedChannel;
    try {
      native = attempt(start);
    } catch (error) {
      promises.forEach(dropPromise);
      throw error;
    }
    preventCollection(this.number, this.receiver);
    const transport: ServedTransport = {
      native,
      hasTls,
      ended: ended.then(
        () => {
          this.#served(transport);
        },
        (error: unknown) => {
          this.#served(transport);
          throw error;
        },
      ),
    };
    // Programs need not handle the rejection.
    transport.ended.catch(() => undefined);
    this.#transports.add(transport);
    return transport;
  }

  #served(transport: ServedTransport): void {
    this.#transports.delete(transport);
    if (this.#transports.size === 0) {
      allowCollection(this.number);
    }
  }
}

/** Returns a function that stops a transport and waits for its end. */
function closing({ native, ended }: ServedTransport): () => Promise<void> {
  return async () => {
    native.stop();
    await ended;
  };
}

/** Adds the address to the error of a server that cannot listen on it. */
function unboundError({ source, operation }: TransportError, host: string, port: number): TransportError {
  const shown = host.includes(":") ? `[${host}]` : host;
  const place = host.startsWith("fd://") ? host : `${shown}:${String(port)}`;
  const reason = source instanceof RpcError ? source.message : (source ?? "unknown reason");
  return new TransportError(`cannot listen on ${place}: ${reason}`, { source, operation });
}

/** Lets a program fail whose workers do not start. It need not handle the rejection of `closed`. */
function failProgram(error: unknown): void {
  process.exitCode = 1;
  announce(String(error));
  exitIfClosedOnSignals();
}

/** Writes the line that says that a transport is ready, if there is to be one. Stdout may carry the protocol. */
function announce(message: string | null): void {
  if (message !== null) {
    try {
      // The stream would report a reader that is gone by an event, which ends the program.
      writeSync(2, `${message}\n`);
    } catch {
      // A closed stderr does not end the program.
    }
  }
}
