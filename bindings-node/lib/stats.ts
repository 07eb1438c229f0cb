/** Statistics of servers and clients. */

/** A snapshot of what a server holds now; see {@link Server.stats}. */
export interface ServerStats {
  /** Time since the server was created, in milliseconds. */
  readonly uptime: number;
  /**
   * Open connections: those of the standalone HTTP server, and one for each client over stdio, over a custom transport or in
   * this process. Connections of an HTTP server that the server is mounted in are not counted.
   */
  readonly connections: number;
  /** Open sessions of the revisions up to 2025-11-25; 2026-07-28 has none. */
  readonly sessions: number;
  /** Event streams over HTTP that a client reads: responses, streams of change notifications, HTTP+SSE. */
  readonly streams: number;
  /**
   * Requests that a handler or middleware is answering. Custom notifications and requests to routes count as well; requests
   * that are answered at once, such as lists, do not.
   */
  readonly requestsInFlight: number;
  /** How much is used of each limit of what all clients may hold together. */
  readonly budgets: readonly BudgetStats[];
}

/** A snapshot of what a client holds now; see {@link Client.stats}. */
export interface ClientStats {
  /** Time since the client was created, in milliseconds. */
  readonly uptime: number;
  /** Whether the client has a connection. Over HTTP: a session, or on 2026-07-28 that the server has answered. */
  readonly isConnected: boolean;
  /** Number of connections that were opened, with the present one. More than one: the client has reconnected. */
  readonly connections: number;
  /** Requests that wait for a response of the server, with those that the client sends by itself, such as subscriptions. */
  readonly requestsInFlight: number;
  /** Results in the cache (2026-07-28). */
  readonly cachedResults: number;
  /** Size of these results and of the parameters that they belong to, in bytes. */
  readonly cachedBytes: number;
}

/** How much of a limit is used. */
export interface BudgetStats {
  /** The setting that limits it. */
  readonly name: "maxTotalClientBytes" | "maxCalls" | "maxSuspendedHandlers";
  /**
   * How much is used: bytes, calls or suspended handlers. May exceed the limit for a short time, because what has arrived
   * already cannot be refused.
   */
  readonly used: number;
  /** The limit. */
  readonly limit: number;
}

/** The names of settings in JavaScript, by those of the core. */
const BUDGETS = {
  max_total_client_bytes: "maxTotalClientBytes",
  max_calls: "maxCalls",
  max_suspended_handlers: "maxSuspendedHandlers",
} as const;

/** Statistics as the core has them, with the time in seconds. */
interface CoreStats {
  uptime: number;
  connections: number;
  sessions: number;
  streams: number;
  requests_in_flight: number;
  budgets: { name: keyof typeof BUDGETS; used: number; limit: number }[];
}

/** Converts statistics of the core. */
export function statsOf(json: string): ServerStats {
  const { uptime, requests_in_flight: requestsInFlight, budgets, ...counts } = JSON.parse(json) as CoreStats;
  return {
    uptime: uptime * 1_000,
    ...counts,
    requestsInFlight,
    budgets: budgets.map((budget) => ({ ...budget, name: BUDGETS[budget.name] })),
  };
}

/** Statistics of a client as the core has them, with the time in seconds. */
interface CoreClientStats {
  uptime: number;
  is_connected: boolean;
  connections: number;
  requests_in_flight: number;
  cached_results: number;
  cached_bytes: number;
}

/** Converts statistics of a client of the core. */
export function clientStatsOf(json: string): ClientStats {
  const stats = JSON.parse(json) as CoreClientStats;
  return {
    uptime: stats.uptime * 1_000,
    isConnected: stats.is_connected,
    connections: stats.connections,
    requestsInFlight: stats.requests_in_flight,
    cachedResults: stats.cached_results,
    cachedBytes: stats.cached_bytes,
  };
}
