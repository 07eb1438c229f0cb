// Requests of clients, over every transport and in both eras.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server, UsageError } from "mcpline";
import * as z from "zod";

import { LEGACY, makeServer, MODERN, pipes, reach, settable, ways } from "./client-peer.mjs";

for (const way of Object.keys(ways)) {
  for (const revision of [LEGACY, MODERN]) {
    test(`every request is answered: ${way}, ${revision}`, async (t) => {
      const client = await reach(t, way, { revision, roots: ["file:///a"] });
      assert.equal(client.protocolVersion, revision);
      assert.equal(client.serverInfo.name, "peer");
      assert.equal(client.serverInfo.version, "1.2.3");
      assert.equal(client.instructions, "ask it");
      assert.ok(client.serverCapabilities.tools);

      const tools = (await client.listTools()).map(({ name }) => name);
      assert.deepEqual(tools.slice(0, 3), ["echo", "sum", "fails"]);
      assert.equal(tools.length, 13);
      assert.equal((await client.listResources())[0].uri, "test://a");
      assert.equal((await client.listResourceTemplates())[0].uriTemplate, "test://of/{name}");
      assert.equal((await client.listPrompts())[0].name, "greet");

      const { content, isError } = await client.callTool("echo", { text: "grüß \u{1F30D} \n" });
      assert.deepEqual(content, [{ type: "text", text: "grüß \u{1F30D} \n" }]);
      assert.ok(!isError);
      assert.deepEqual((await client.callTool("sum")).structuredContent, { sum: 3 });
      assert.equal((await client.callTool("fails")).isError, true);

      assert.equal((await client.readResource("test://a")).contents[0].text, "the a");
      assert.equal((await client.readResource(new URL("test://of/ada"))).contents[0].text, "ada");
      const prompt = await client.getPrompt("greet", { who: "Ada" });
      assert.deepEqual(prompt.messages[0], { role: "user", content: { type: "text", text: "Hello Ada" } });
      const ofPrompt = await client.complete({ prompt: "greet" }, { name: "who", value: "Al" });
      assert.deepEqual(ofPrompt.completion.values, ["Alan"]);
      const known = { context: { other: "x" } };
      const ofTemplate = await client.complete({ template: "test://of/{name}" }, { name: "name", value: "ad" }, known);
      assert.deepEqual(ofTemplate.completion.values, ["ada"]);

      await client.ping();
      await client.setLogLevel("info");
      await client.subscribe("test://a");
      await client.unsubscribe("test://a");
      await client.rootsChanged();
      await client.notify("notifications/of/its/own", { a: 1 });
      const result = await client.request("tools/call", { name: "echo", arguments: { text: "raw" } });
      assert.equal(result.content[0].text, "raw");
    });
  }
}

test("pages are fetched when they are needed", async (t) => {
  const client = await reach(t, "memory");
  const names = [];
  for await (const { name } of client.tools()) {
    names.push(name);
    if (names.length === 3) {
      break;
    }
  }
  assert.deepEqual(names, ["echo", "sum", "fails"]);
  for await (const { uri } of client.resources()) {
    assert.equal(uri, "test://a");
  }
});

test("progress is delivered in order, and awaited before the result", async (t) => {
  const client = await reach(t, "http");
  const reports = [];
  const result = await client.callTool("reports", {}, { onProgress: (report) => reports.push(report) });
  assert.equal(result.content[0].text, "done");
  assert.deepEqual(reports.at(-1), { progress: 2, total: 2 });
  const slow = [];
  await client.callTool(
    "reports",
    {},
    {
      onProgress: async ({ progress }) => {
        await new Promise((resolve) => setTimeout(resolve, progress === 1 ? 20 : 1));
        slow.push(progress);
      },
    },
  );
  assert.equal(slow.at(-1), 2);
  assert.deepEqual(slow, [...slow].sort());
});

test("slow listeners to progress share the room of one client", { timeout: 60_000 }, async (t) => {
  const settings = { progressRate: { perSecond: 1_000_000, burst: 1_000_000 } };
  const server = new Server({ name: "flood", version: "1", settings });
  const sent = [settable(), settable()];
  server.tool("report", { input: z.object({ steps: z.int(), call: z.int() }) }, async ({ steps, call }, ctx) => {
    for (let step = 1; step <= steps; step += 1) {
      ctx.progress(step);
      await new Promise((resolve) => setImmediate(resolve));
    }
    sent[call][1]();
    return "done";
  });
  const client = await Client.memory(server);
  t.after(() => client.close());
  const [released, release] = settable();
  let delivered = 0;
  const onProgress = async () => {
    await released;
    delivered += 1;
  };
  const report = (steps, call, listener) =>
    client.callTool("report", { steps, call }, { onProgress: listener, timeout: 60_000 });

  // Neither exceeds the share of one client, but both together do.
  const calls = [report(3_000, 0, onProgress), report(3_000, 1, onProgress)];
  await Promise.all(sent.map(([end]) => end));
  await client.ping();
  await client.ping();
  release();
  await Promise.all(calls);
  // One report of each call is being handled by its listener and does not wait.
  assert.ok(delivered > 3_000, `only ${delivered} were delivered`);
  assert.ok(delivered <= 4_096 + 2, `${delivered} were kept`);

  delivered = 0;
  await report(3_000, 0, onProgress);
  assert.equal(delivered, 3_000, "the room is free again");
});

test("a failing progress listener does not fail its request", async (t) => {
  const client = await reach(t, "memory");
  const [warned, warn] = settable();
  process.once("warning", warn);
  const onProgress = () => {
    throw new Error("deaf");
  };
  assert.equal((await client.callTool("reports", {}, { onProgress })).content[0].text, "done");
  assert.match((await warned).message, /the progress listener failed: Error: deaf/);
});

for (const way of ["memory", "http"]) {
  test(`an aborted signal rejects with its reason and cancels at the server: ${way}`, async (t) => {
    const [started, start] = settable();
    const [cancelled, cancel] = settable();
    const client = await reach(t, way, { seen: { started: start, cancelled: cancel } });
    const giving = new AbortController();
    const call = client.callTool("waits", {}, { signal: giving.signal });
    await started;
    const reason = new Error("enough");
    giving.abort(reason);
    await assert.rejects(call, reason);
    await cancelled;
    await assert.rejects(client.callTool("echo", {}, { signal: giving.signal }), reason);
    await assert.rejects(client.ping({ signal: giving.signal }), reason);
    const list = client.listTools({ signal: giving.signal });
    await assert.rejects(list, reason);
    await client.callTool("echo", {}, { signal: new AbortController().signal });
  });
}

test("members of _meta reach the server, in options or in parameters", async (t) => {
  const server = new Server({ name: "meta", version: "1" });
  server.tool("meta", {}, (_, ctx) => JSON.stringify(ctx.meta ?? {}));
  const client = await Client.memory(server);
  t.after(() => client.close());
  const metaOf = async (result) => JSON.parse((await result).content[0].text)["example.com/a"];
  assert.equal(await metaOf(client.callTool("meta", {}, { meta: { "example.com/a": 1 } })), 1);
  assert.equal(await metaOf(client.request("tools/call", { name: "meta", _meta: { "example.com/a": 2 } })), 2);
});

test("results that request input can be returned to the caller", async (t) => {
  const client = await reach(t, "memory", { revision: MODERN, elicit: () => "decline" });
  const first = await client.callTool("elicits", {}, { manualResults: true });
  assert.equal(first.resultType, "input_required");
  const [[key, request]] = Object.entries(first.inputRequests);
  assert.equal(request.params.message, "Where?");
  const inputResponses = { [key]: { action: "accept", content: { city: "Rome" } } };
  const params = { name: "elicits", arguments: {}, inputResponses, requestState: first.requestState };
  const result = await client.request("tools/call", params);
  assert.match(result.content[0].text, /Rome/);
});

test("arguments without a JSON representation, or with a lone surrogate, are rejected", async (t) => {
  const client = await reach(t, "memory");
  await assert.rejects(client.callTool("echo", { text: 1n }), TypeError);
  await assert.rejects(client.callTool("echo", { text: "\ud800" }), UsageError);
  assert.equal((await client.callTool("echo", { text: "\\ud800" })).content[0].text, "\\ud800");
});

test("unknown and invalid options are rejected", async () => {
  const server = makeServer();
  await assert.rejects(Client.memory(server, { time_out: 5 }), {
    name: "UsageError",
    message: /unknown option `time_out`/,
  });
  await assert.rejects(Client.memory(server, { proxy: "direct" }), UsageError);
  await assert.rejects(Client.memory(server, { timeout: -1 }), UsageError);
  await assert.rejects(Client.connect("http://127.0.0.1:1", { revisions: ["2020-01-01"] }), UsageError);
  await assert.rejects(Client.connect("no url"), UsageError);
  const client = await Client.memory(server);
  await assert.rejects(client.callTool("echo", {}, { reissue: "often" }), UsageError);
  await assert.rejects(client.setLogLevel("loud"), UsageError);
  await assert.rejects(client.request("tools/list", [1]), UsageError);
  await client.close();
});

test("many calls at once are all answered", async (t) => {
  const client = await reach(t, "program");
  const calls = Array.from({ length: 1000 }, (_, n) => client.callTool("echo", { text: String(n) }));
  const texts = (await Promise.all(calls)).map(({ content }) => content[0].text);
  assert.deepEqual(
    texts,
    texts.map((_, n) => String(n)),
  );
});

test("a custom transport is reopened after it was closed", async (t) => {
  const seen = {};
  const client = await Client.over(pipes(seen), { reconnectDelay: 1 });
  t.after(() => client.close());
  await client.callTool("echo", { text: "one" });
  seen.child.kill("SIGKILL");
  await new Promise((resolve) => seen.child.once("close", resolve));
  // The tool is read-only, so the call is repeated; or it fails, if it was sent before the end was detected.
  const again = await client.callTool("echo", { text: "two" }, { reissue: "always" });
  assert.equal(again.content[0].text, "two");
  assert.equal(seen.opened, 2);
  await client.close();
  assert.equal(seen.closed, 2);
});

test("a transport that cannot be opened fails the connection", async () => {
  const broken = {
    open() {
      throw new Error("no way");
    },
  };
  await assert.rejects(Client.over(broken), { kind: "server_unreachable", message: /no way/ });
  const late = { open: () => Promise.reject(new Error("no way either")) };
  await assert.rejects(Client.over(late), { kind: "server_unreachable", message: /no way either/ });
});

test("headers and environment variables reach the server", async (t) => {
  const server = new Server({ name: "headers", version: "1" });
  server.tool("header", {}, (_, ctx) => ctx.headers.get("x-secret") ?? "none");
  t.after(() => server.close());
  const { url } = await server.listen();
  for (const headers of [{ "X-Secret": "hush" }, [["X-Secret", "hush"]], new Headers({ "X-Secret": "hush" })]) {
    const client = await Client.connect(url, { headers });
    assert.equal((await client.callTool("header")).content[0].text, "hush");
    await client.close();
  }
  const lines = [];
  const [received, onLine] = settable();
  const client = await reach(t, "program", {
    env: { PEER_SAYS: "over there" },
    stderr: (line) => {
      lines.push(line);
      onLine();
    },
  });
  await received;
  assert.deepEqual(lines, ["over there"]);
  await client.close();
});
