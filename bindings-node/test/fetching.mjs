// Sends requests of the newest revision with `server.fetch`: without a process, a socket or this package's client.
const REVISION = "2026-07-28";

/** Returns the result of a request; throws a JSON-RPC error unchanged. */
export async function ask(server, method, params = {}) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const request = new Request("http://localhost/mcp", {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": REVISION,
      "Mcp-Method": method,
      ...(params.name === undefined ? {} : { "Mcp-Name": params.name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } }),
  });
  const response = await server.fetch(request);
  const body = await response.text();
  const answer = JSON.parse(body);
  if (answer.error !== undefined) {
    throw answer.error;
  }
  return answer.result;
}

/** Returns the tools that a server lists. */
export async function tools(server) {
  return (await ask(server, "tools/list")).tools;
}

/** Calls a tool and returns its result. */
export function call(server, name, args = {}) {
  return ask(server, "tools/call", { name, arguments: args });
}

/** Returns the text of a result. */
export function textOf(result) {
  return result.content.map((block) => block.text).join("\n");
}
