// The official TypeScript client 2.x, calling one echo tool; from the pinned installation of the interop tests.

import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [width, milliseconds, kind, ...target] = process.argv.slice(2);
const { resolve } = createRequire(new URL('../../tests/interop/node/package.json', import.meta.url));
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
await client.connect(kind === 'http'
  ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({ command: target[0], args: target.slice(1) }));

let calls = 0;
let going = true;
const text = 'abcdefghijklmnop'.repeat(2);
const sleep = (time) => new Promise((done) => { setTimeout(done, time); });
const slots = Array.from({ length: Number(width) }, async () => {
  while (going) {
    const result = await client.callTool({ name: 'echo', arguments: { text } });
    if (result.isError) throw new Error('not the answer');
    calls += 1;
  }
});
await sleep(milliseconds / 4);
const before = calls;
const cpu = process.cpuUsage();
const began = performance.now();
await sleep(Number(milliseconds));
const made = calls - before;
const { user, system } = process.cpuUsage(cpu);
const took = (performance.now() - began) / 1000;
going = false;
await Promise.all(slots);
console.log(JSON.stringify({ calls: made, cpu_us_per_call: (user + system) / made, calls_per_s: made / took }));
await client.close();
