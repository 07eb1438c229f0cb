// The official TypeScript client 1.x (`@modelcontextprotocol/sdk`): 2025-11-25 over all three transports.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema, ElicitationCompleteNotificationSchema, ElicitRequestSchema, ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema, ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { Peer } from './peer.mjs';
import { main } from './script.mjs';

const HEADERS = { 'x-fixture': 'interop' };

class Sdk1 extends Peer {
  callTool(name, args, { onProgress, signal } = {}) {
    return this.client.callTool({ name, ...(args ? { arguments: args } : {}) }, undefined, { onprogress: onProgress, signal });
  }
}

function transport({ transport: kind, url, command }) {
  if (kind === 'stdio') {
    return new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env, stderr: 'inherit' });
  }
  const options = { requestInit: { headers: HEADERS } };
  return kind === 'http'
    ? new StreamableHTTPClientTransport(new URL(url), options)
    : new SSEClientTransport(new URL(url), options);
}

async function connect(chosen, callbacks) {
  const client = new Client({ name: 'interop', version: '1.2.3' }, {
    capabilities: { sampling: { tools: {} }, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
  });
  client.setRequestHandler(CreateMessageRequestSchema, (request) => callbacks.sample(request.params));
  client.setRequestHandler(ElicitRequestSchema, (request) => callbacks.elicit(request.params));
  client.setRequestHandler(ListRootsRequestSchema, () => callbacks.listRoots());
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params: { _meta, ...message } }) => {
    callbacks.logged.push(message);
  });
  for (const schema of [
    ToolListChangedNotificationSchema, PromptListChangedNotificationSchema, ResourceListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema, ElicitationCompleteNotificationSchema,
  ]) {
    client.setNotificationHandler(schema, (notice) => { callbacks.notified.push(notice); });
  }
  // The client passes the negotiated version to its transport only, so it is intercepted here.
  const chosenTransport = transport(chosen);
  let revision;
  const setVersion = chosenTransport.setProtocolVersion?.bind(chosenTransport);
  chosenTransport.setProtocolVersion = (version) => { revision = version; setVersion?.(version); };
  await client.connect(chosenTransport);
  return new Sdk1(client, revision, chosen.transport, callbacks);
}

await main(connect, ['2025-11-25']);
