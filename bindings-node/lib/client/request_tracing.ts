/** Spans of the requests of one client, and of the input requests that it answers. */

import { UsageError } from "../errors.js";
import type { Attributes } from "../open_telemetry.js";
import { typeName } from "../option_checks.js";
import type { Revision } from "../protocol.js";
import { ReceivedRequest, type ReceivedSpan, SentRequest } from "../sent_requests.js";

/** Attributes of the spans of a client that starts its server. */
export const PIPE: Attributes = { "network.transport": "pipe" };

/** Returns the attributes of the spans of a client of a server at a URL. The core refuses an invalid one. */
export function networkOf(url: string | URL): Attributes {
  const attributes: Attributes = { "network.transport": "tcp", "network.protocol.name": "http" };
  const parsed = URL.canParse(String(url)) ? new URL(url) : undefined;
  if (parsed !== undefined && parsed.hostname !== "") {
    const ownPort = parsed.protocol === "https:" ? HTTPS_PORT : HTTP_PORT;
    // Brackets around IPv6 addresses belong to URLs.
    attributes["server.address"] = parsed.hostname.replace(/^\[(.*)\]$/, "$1");
    attributes["server.port"] = parsed.port === "" ? ownPort : Number(parsed.port);
  }
  return attributes;
}

const HTTP_PORT = 80;
const HTTPS_PORT = 443;

/** Returns the attributes of the spans of a client of a server on a Unix domain socket. */
export function socketOf(path: string): Attributes {
  return { "network.transport": "unix", "server.address": path };
}

/** Creates the spans of one client. */
export class RequestTracing {
  readonly #isEnabled: boolean;
  readonly #attributes: Attributes;

  /**
   * @param option The option `tracing` of the client.
   * @param network Attributes of all spans: how the server is reached.
   */
  constructor(option: unknown, network: Attributes) {
    if (option !== undefined && typeof option !== "boolean") {
      throw new UsageError(`\`tracing\` must be a boolean, not ${typeName(option)}`);
    }
    this.#isEnabled = option ?? true;
    this.#attributes = { ...network };
  }

  /** Sets the negotiated revision. */
  set revision(revision: Revision) {
    this.#attributes["mcp.protocol.version"] = revision;
  }

  /** Begins the span of a request; `undefined` if requests are not traced. */
  send(method: string, params: object | undefined): SentRequest | undefined {
    return this.#isEnabled ? SentRequest.begin(method, params, () => this.#attributes) : undefined;
  }

  /**
   * Begins the span of an input request; `undefined` if requests are not traced.
   *
   * @param params Its parameters, as JSON or empty.
   * @param start Returns the attributes that only this span has, and the trace context of its parent, as JSON.
   */
  receive(method: string, params: string, start: () => string): ReceivedRequest | undefined {
    const all = (): ReceivedSpan => {
      const own = JSON.parse(start()) as ReceivedSpan;
      return { ...own, attributes: { ...this.#attributes, ...own.attributes } };
    };
    return this.#isEnabled ? ReceivedRequest.begin(method, params, all) : undefined;
  }
}
