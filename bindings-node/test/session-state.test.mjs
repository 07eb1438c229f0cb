// Values that live as long as the session of a client.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import { Client, NotSupportedError, Server } from "mcpline";

import { Child } from "./peer.mjs";

const LEGACY = ["2025-11-25"];
const textOf = ({ content }) => content[0].text;

function counter() {
  const inner = new Server({ name: "inner", version: "1" });
  inner.tool("count", {}, (_, ctx) => {
    const state = ctx.sessionState;
    state.set("count", (state.get("count") ?? 0) + 1);
    return String(state.get("count"));
  });
  return new Server({ name: "main", version: "1" }).mount(inner);
}

test("calls of a session share its state, in memory and over HTTP", async (t) => {
  const server = counter();
  const listening = await server.listen();
  t.after(() => listening.close());
  for (const connect of [
    () => Client.memory(server, { revisions: LEGACY }),
    () => Client.connect(listening.url, { revisions: LEGACY }),
  ]) {
    const [one, other] = [await connect(), await connect()];
    assert.equal(textOf(await one.callTool("count")), "1");
    assert.equal(textOf(await one.callTool("count")), "2");
    assert.equal(textOf(await other.callTool("count")), "1");
    await one.close();
    await other.close();
  }
});

test("a revision without sessions has no state", async () => {
  const server = new Server({ name: "main", version: "1" });
  server.tool("state", {}, (_, ctx) => {
    assert.throws(() => ctx.sessionState, NotSupportedError);
    assert.throws(() => ctx.sessionState, /revision 2026-07-28 has no sessions/);
    return "refused";
  });
  const client = await Client.memory(server, { revisions: ["2026-07-28"] });
  assert.equal(textOf(await client.callTool("state")), "refused");
  await client.close();
});

test("state is released with its session", async () => {
  const child = new Child(
    `import { Client, Server } from "mcpline";
     import { setImmediate as turn } from "node:timers/promises";
     let kept;
     const server = new Server({ name: "main", version: "1" });
     server.tool("keep", {}, (_, ctx) => {
       const value = { large: "value" };
       kept = new WeakRef(value);
       ctx.sessionState.set("value", value);
       return "";
     });
     const client = await Client.memory(server, { revisions: ["2025-11-25"] });
     await client.callTool("keep");
     await turn();
     gc();
     const before = kept.deref() !== undefined;
     await client.close();
     while (kept.deref() !== undefined) {
       await turn();
       gc();
     }
     console.log(before, kept.deref());`,
    { args: ["--expose-gc"] },
  );
  assert.equal(await child.line(), "true undefined");
  await child.ended;
  await turn();
});
