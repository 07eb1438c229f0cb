// What a page does at an MCP server. `cors` bundles it for the browser.

import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const INFO = { name: "page", version: "1.0.0" };

/** Returns an official client and a transport for each name. */
const CLIENTS = {
  sdk1: (url) => [new Client1(INFO), new Transport1(url)],
  "client2-2025-11-25": (url) => [new Client2(INFO, { versionNegotiation: { mode: "legacy" } }), new Transport2(url)],
  "client2-2026-07-28": (url) => [new Client2(INFO, { versionNegotiation: { mode: "auto" } }), new Transport2(url)],
};

/** Connects, lists the tools, calls one, and ends the session. Returns what the page has seen, or the error. */
globalThis.useServer = async (name, url) => {
  const [client, transport] = CLIENTS[name](new URL(url));
  const progress = [];
  try {
    await client.connect(transport);
    const session = transport.sessionId !== undefined;
    const { tools } = await client.listTools();
    const call = { name: "greet", arguments: { name: "page" } };
    const options = { onprogress: (update) => progress.push(update.progress) };
    const { content } = await (name === "sdk1"
      ? client.callTool(call, undefined, options)
      : client.callTool(call, options));
    if (session) {
      await transport.terminateSession();
    }
    return {
      revision: transport.protocolVersion ?? client.getNegotiatedProtocolVersion?.(),
      session,
      tools: tools.map((tool) => tool.name),
      text: content[0].text,
      progress,
    };
  } catch (error) {
    return { failed: error.name, message: error.message };
  } finally {
    await client.close();
  }
};

/** Returns the type of the response to a request, or the name of the error if the browser keeps it from the page. */
globalThis.request = (url, options) =>
  fetch(url, options).then(
    ({ type }) => type,
    ({ name }) => name,
  );
