// The command line and the main loop of both client scripts.

import { parseArgs } from 'node:util';
import { BEHAVIOURS, ENDINGS } from './behaviours.mjs';
import { Callbacks } from './peer.mjs';

const PER_BEHAVIOUR = 180_000; // A behaviour that takes longer counts as hanging.

/** Splits a command into words like a shell, with quotes and backslashes. */
function words(command) {
  const found = command.match(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/g) ?? [];
  return found.map((word) => word.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/g, (_all, a, b, c) => a ?? b ?? c));
}

/** Runs every behaviour that applies to the chosen transport and revision, and exits. */
export async function main(connect, revisions) {
  const { values: chosen } = parseArgs({
    options: {
      transport: { type: 'string' },
      revision: { type: 'string', default: revisions.at(-1) },
      url: { type: 'string' },
      'server-command': { type: 'string' },
      // Ends the server: run only the behaviours about its end.
      stop: { type: 'string' },
      only: { type: 'string', default: '' },
    },
  });
  if (!['stdio', 'http', 'sse'].includes(chosen.transport) || !revisions.includes(chosen.revision)
    || (chosen.transport === 'stdio') !== Boolean(chosen['server-command'])) {
    console.error('usage: --transport stdio --server-command CMD | --transport http|sse --url URL [--revision R]');
    process.exit(2);
  }
  const command = words(chosen['server-command'] ?? '');
  let passed = 0;
  let failed = 0;
  try {
    const peer = await connect({ ...chosen, command }, new Callbacks());
    if (peer.revision !== chosen.revision) {
      console.log(`FAIL negotiation: ${peer.revision} instead of ${chosen.revision}`);
      failed += 1;
    }
    peer.stop = words(chosen.stop ?? '');
    for (const { name, run, holds } of chosen.stop ? ENDINGS : BEHAVIOURS) {
      if (!holds(peer) || !name.includes(chosen.only)) continue;
      try {
        await within(PER_BEHAVIOUR, run(peer));
        passed += 1;
      } catch (error) {
        failed += 1;
        console.log(`FAIL ${name}: ${String(error?.message ?? error).slice(0, 1500)}`);
      }
    }
    await within(PER_BEHAVIOUR, peer.client.close());
  } catch (error) {
    failed += 1;
    console.log('FAIL connection', error);
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed || !passed ? 1 : 0);
}

async function within(milliseconds, promise) {
  let timer;
  const limit = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${milliseconds / 1000} s`)), milliseconds);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}
