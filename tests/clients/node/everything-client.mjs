// The Node everything-client: `node everything-client.mjs URL`. Its specification is `tests/clients/README.md`.

import { Client } from "mcpline";

import { scenarios as authorization } from "./authorization.mjs";

const LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN = ["2026-07-28"];

/** Connects a client that speaks the era of the scenario. */
function host(url, handlers = {}) {
  const revision = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "";
  const revisions = MODERN.includes(revision) ? MODERN : LEGACY.includes(revision) ? LEGACY : [...LEGACY, ...MODERN];
  // The suite starts everything at once: a busy machine must not look like a server of another era.
  const patience = { probeTimeout: 25_000 };
  // Servers of the suite answer `tools/list` without declaring tools.
  const daring = { allowUndeclaredCapabilities: true };
  return Client.connect(url, {
    name: "everything-client",
    version: "1.0.0",
    revisions,
    ...patience,
    ...daring,
    ...handlers,
  });
}

/** Runs a function with a client, and closes the client. */
async function connected(connecting, play) {
  const client = await connecting;
  try {
    await play(client);
  } finally {
    await client.close();
  }
}

const accept = (content) => () => ({ action: "accept", ...(content === undefined ? {} : { content }) });

const listsTools = (url) => connected(host(url), (client) => client.listTools());

const scenarios = {
  initialize: listsTools,

  "json-schema-ref-no-deref": listsTools,

  tools_call: (url) =>
    connected(host(url), async (client) => {
      await client.listTools();
      await client.callTool("add_numbers", { a: 5, b: 3 });
    }),

  // Accepts without content, so that the form's defaults are used.
  "elicitation-sep1034-client-defaults": (url) =>
    connected(host(url, { elicit: accept() }), async (client) => {
      await client.listTools();
      await client.callTool("test_client_elicitation_defaults");
    }),

  "sse-retry": (url) =>
    connected(host(url), async (client) => {
      await client.listTools();
      await client.callTool("test_reconnection");
    }),

  "request-metadata": (url) => connected(host(url, { elicit: () => "decline" }), (client) => client.listTools()),

  "sep-2322-client-request-state": (url) =>
    connected(host(url, { elicit: accept({ confirmed: true }) }), async (client) => {
      await client.listTools();
      for (const kind of ["echo_state", "no_state", "unrelated", "no_result_type"]) {
        await client.callTool(`test_mrtr_${kind}`);
      }
    }),

  "http-standard-headers": (url) =>
    connected(host(url), async (client) => {
      for (const { name } of await client.listTools()) {
        await client.callTool(name);
      }
      for (const { uri } of await client.listResources()) {
        await client.readResource(uri);
      }
      for (const { name } of await client.listPrompts()) {
        await client.getPrompt(name);
      }
    }),

  "http-custom-headers": (url) =>
    connected(host(url), async (client) => {
      const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
      await client.listTools();
      for (const { name, arguments: args } of toolCalls) {
        await client.callTool(name, args);
      }
    }),

  // Calls all tools that are left in the list.
  "http-invalid-tool-headers": (url) =>
    connected(host(url), async (client) => {
      for (const { name } of await client.listTools()) {
        await client.callTool(name, { region: "eu" });
      }
    }),

  "json-schema-2020-12-preservation": (url) =>
    connected(host(url), async (client) => {
      const tools = await client.listTools();
      const tool = tools.find(({ name }) => name === "json_schema_2020_12_tool");
      await client.callTool("json_schema_echo", { schema: tool.inputSchema });
    }),

  ...authorization(host),
};

const [url] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
if (url === undefined) {
  console.error("usage: everything-client.mjs URL");
  process.exit(2);
}
if (!Object.hasOwn(scenarios, scenario)) {
  console.error(`no scenario is named ${JSON.stringify(scenario)}`);
  process.exit(1);
}
await scenarios[scenario](url);
