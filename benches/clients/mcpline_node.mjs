// The mcpline client for Node, calling one echo tool. With `MODERN` in the environment it uses 2026-07-28.

import { Client } from "mcpline";

const [width, milliseconds, kind, ...target] = process.argv.slice(2);
const revisions = [process.env.MODERN ? "2026-07-28" : "2025-11-25"];
const client =
  kind === "http"
    ? await Client.connect(target[0], { revisions })
    : await Client.spawn(target[0], target.slice(1), { revisions });

let calls = 0;
let going = true;
const text = "abcdefghijklmnop".repeat(2);
const sleep = (time) => new Promise((done) => setTimeout(done, time));
const slots = Array.from({ length: Number(width) }, async () => {
  while (going) {
    const result = await client.callTool("echo", { text });
    if (result.content[0].text !== text) {
      throw new Error("not the answer");
    }
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
