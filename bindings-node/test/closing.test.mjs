// Closing a server that is mounted in another one: calls in flight, and what remains open.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, get } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, Server } from "mcpline";

/** The error of a call that the server does not wait for. */
const SHUTTING_DOWN = { code: -31002, message: /the server is shutting down/, data: { retryable: true } };

/** A mounted server whose tools wait for the test, a client of it, and a function that closes both. */
async function mounted(t, { shutdownTimeout, revision }) {
  const server = new Server({ name: "test", version: "1", settings: { shutdownTimeout } });
  let begun;
  const started = new Promise((resolve) => (begun = resolve));
  let end;
  const ending = new Promise((resolve) => (end = resolve));
  server.tool("slow", {}, async () => {
    begun();
    await ending;
    return "ended by itself";
  });
  let aborted;
  const abortion = new Promise((resolve) => (aborted = resolve));
  server.tool("attentive", {}, async (_, ctx) => {
    ctx.signal.addEventListener("abort", aborted);
    begun();
    await sleep(60_000, undefined, { signal: ctx.signal });
  });
  const app = createServer(server.handler);
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  const client = await Client.connect(`http://127.0.0.1:${app.address().port}/mcp`, {
    revisions: [revision],
    reconnectAttempts: 0,
  });
  t.after(() => client.close());
  // The call is awaited before its client closes: a client that closes ends the calls whose answers it hasn't read yet.
  const gone = async (call) => {
    await server.close();
    await call;
    await client.close();
    app.close();
    await once(app, "close");
  };
  return { abortion, client, server, started, end, gone };
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`${revision}: a call that ends within the grace period is answered`, async (t) => {
    const { client, started, end, server, gone } = await mounted(t, { shutdownTimeout: 60_000, revision });
    const call = client.callTool("slow");
    await started;
    const closed = server.close();
    end();
    assert.equal((await call).content[0].text, "ended by itself");
    await closed;
    await gone();
  });

  test(`${revision}: a call beyond the grace period is answered with an error, and nothing is left open`, async (t) => {
    const { client, started, gone } = await mounted(t, { shutdownTimeout: 10, revision });
    const call = client.callTool("slow");
    await started;
    await gone(assert.rejects(call, SHUTTING_DOWN));
  });

  test(`${revision}: a call beyond the grace period is aborted without a warning`, async (t) => {
    const warnings = [];
    const onWarning = (warning) => warnings.push(warning);
    process.on("warning", onWarning);
    t.after(() => process.off("warning", onWarning));
    const { abortion, client, started, gone } = await mounted(t, { shutdownTimeout: 10, revision });
    const call = client.callTool("attentive");
    await started;
    await gone(assert.rejects(call, SHUTTING_DOWN));
    await abortion;
    await sleep(0);
    assert.deepEqual(warnings, []);
  });

  test(`${revision}: a closed server refuses requests`, async (t) => {
    const { client, server, gone } = await mounted(t, { shutdownTimeout: 10, revision });
    await server.close();
    await assert.rejects(client.callTool("slow"));
    await gone();
  });
}

/** Send a request before and after the server closes, and return the status of the second and its `connection`. */
const REFUSALS = {
  async "HTTP/1.1"(t, server) {
    const app = createServer(server.handler);
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    const agent = new Agent({ keepAlive: true });
    t.after(() => (agent.destroy(), app.close()));
    const ask = async () => {
      const [response] = await once(get({ port: app.address().port, path: "/mcp", agent }), "response");
      response.resume();
      await once(response, "end");
      return [response.statusCode, response.headers.connection];
    };
    await ask();
    await server.close();
    return ask();
  },
  async "HTTP/2"(t, server) {
    const app = createHttp2Server(server.handler);
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    const session = connect(`http://127.0.0.1:${app.address().port}`);
    t.after(() => (session.destroy(), app.close()));
    const ask = async () => {
      const [headers] = await once(session.request({ ":path": "/mcp" }), "response");
      return [headers[":status"], headers.connection];
    };
    await ask();
    await server.close();
    return ask();
  },
};

for (const [version, refusal] of Object.entries(REFUSALS)) {
  // The outer server waits for connections, and clients open the stream of their session again on one that is kept.
  test(`${version}: a closed server ends the connections of clients that go on`, async (t) => {
    const warnings = [];
    const onWarning = (warning) => warnings.push(warning);
    process.on("warning", onWarning);
    t.after(() => process.off("warning", onWarning));
    const server = new Server({ name: "test", version: "1" });
    assert.deepEqual(await refusal(t, server), [503, version === "HTTP/1.1" ? "close" : undefined]);
    assert.deepEqual(warnings, []);
  });
}

test("a server that was closed before its first request refuses it", async (t) => {
  const server = new Server({ name: "test", version: "1" });
  await server.close();
  const app = createServer(server.handler);
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  t.after(() => app.close());
  const [response] = await once(get({ port: app.address().port, path: "/mcp", agent: false }), "response");
  response.resume();
  await once(response, "end");
  assert.equal(response.statusCode, 503);
  const fetched = await server.fetch(new Request("http://localhost/mcp"));
  assert.equal(fetched.status, 503);
});
