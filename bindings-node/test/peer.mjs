// A peer that sends handwritten messages to a server over HTTP or a pipe, for tests of the server alone.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const MODERN = "2026-07-28";
const VERSION = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const CLIENT = "io.modelcontextprotocol/clientInfo";

/** The `_meta` that every request of 2026-07-28 has. */
export function meta(capabilities = {}) {
  return { [VERSION]: MODERN, [CAPABILITIES]: capabilities, [CLIENT]: { name: "peer", version: "1" } };
}

/** A request of 2026-07-28 as an HTTP request. */
export function posted(method, params = {}, { capabilities = {}, id = 1, ...init } = {}) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": MODERN,
    "mcp-method": method,
  };
  const name = params.name ?? params.uri;
  if (name !== undefined) {
    headers["mcp-name"] = name;
  }
  const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta(capabilities) } });
  return { method: "POST", headers, body, ...init };
}

/** Calls a tool through a fetch function, and returns the result. */
export async function called(fetch, name, args = {}, options = {}) {
  const params = { name, arguments: args, ...options.params };
  const response = await fetch(new Request("http://localhost/mcp", posted("tools/call", params, options)));
  const answer = await messageOf(response);
  if (answer.error !== undefined) {
    throw Object.assign(new Error(answer.error.message), answer.error);
  }
  return answer.result;
}

/** Returns the last message of a response: its body, or the last event of its stream. */
export async function messageOf(response) {
  const text = await response.text();
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    return JSON.parse(text);
  }
  const events = text.split("\n").filter((line) => line.startsWith("data:"));
  return JSON.parse(events.at(-1).slice(5));
}

/** Runs a JavaScript program in a new process, and exchanges messages with it, one per line. */
export class Child {
  constructor(source, { args = [], env = {} } = {}) {
    this.process = spawn(process.execPath, [...args, "--input-type=module", "--eval", source], {
      stdio: ["pipe", "pipe", "pipe"],
      // A folder in which the package is found by its name.
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      env: { ...process.env, ...env },
    });
    this.stderr = "";
    this.process.stderr.setEncoding("utf8").on("data", (text) => (this.stderr += text));
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    this.ended = new Promise((resolve) => this.process.on("close", (code, signal) => resolve({ code, signal })));
  }

  send(message) {
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** Returns the next line. */
  async line() {
    const { value, done } = await this.lines.next();
    if (done) {
      throw new Error(`the program has ended: ${this.stderr}`);
    }
    return value;
  }

  async receive() {
    return JSON.parse(await this.line());
  }

  /** Performs the handshake of 2025-11-25. */
  async open(capabilities = {}) {
    const clientInfo = { name: "peer", version: "1" };
    this.send({ id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities, clientInfo } });
    const answer = await this.receive();
    this.send({ method: "notifications/initialized" });
    return answer.result;
  }

  call(id, name, args = {}) {
    this.send({ id, method: "tools/call", params: { name, arguments: args } });
  }
}
