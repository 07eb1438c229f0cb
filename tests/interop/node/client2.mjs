// The official TypeScript client 2.x (`@modelcontextprotocol/client`): 2025-11-25 and 2026-07-28.

import {
  Client, LOG_LEVEL_META_KEY, ResourceNotFoundError, SSEClientTransport, StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Peer } from './peer.mjs';
import { main } from './script.mjs';

const HEADERS = { 'x-fixture': 'interop' };

class Client2 extends Peer {
  callTool(name, args, { onProgress, logLevel, signal } = {}) {
    const _meta = logLevel ? { _meta: { [LOG_LEVEL_META_KEY]: logLevel } } : {};
    return this.client.callTool({ name, ...(args ? { arguments: args } : {}), ..._meta }, { onprogress: onProgress, signal });
  }

  // Every request must reach the server, or a test would check the client's cache. The cache is refreshed, not
  // bypassed: this client takes the headers and schemas of later calls from it.
  listOptions() {
    return { cacheMode: 'refresh' };
  }

  // This client reports an unknown resource with the newest code, whatever code the server sent.
  errorCode(error) {
    return error instanceof ResourceNotFoundError && !this.modern ? -32002 : error.code;
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
    // "auto" probes with server/discover, which must detect that our server is modern.
    versionNegotiation: { mode: chosen.revision === '2026-07-28' ? 'auto' : 'legacy' },
  });
  client.setRequestHandler('sampling/createMessage', (request) => callbacks.sample(request.params));
  client.setRequestHandler('elicitation/create', (request) => callbacks.elicit(request.params));
  client.setRequestHandler('roots/list', () => callbacks.listRoots());
  client.setNotificationHandler('notifications/message', ({ params: { _meta, ...message } }) => { callbacks.logged.push(message); });
  for (const method of [
    'tools/list_changed', 'prompts/list_changed', 'resources/list_changed', 'resources/updated', 'elicitation/complete',
  ]) {
    client.setNotificationHandler(`notifications/${method}`, (notice) => { callbacks.notified.push(notice); });
  }
  await client.connect(transport(chosen));
  return new Client2(client, client.getNegotiatedProtocolVersion(), chosen.transport, callbacks);
}

await main(connect, ['2025-11-25', '2026-07-28']);
