// Types of clients as the compiler infers them.

import {
  bytesOf,
  type CallToolResult,
  Client,
  type ClientTransport,
  type ElicitParams,
  type Notification,
  type Prompt,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplate,
  Server,
  textOf,
  type Tool,
  type ToolCallResult,
} from "mcpline";
import * as z from "zod";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_same: Same<A, B>): void {
  // Only compiled.
}

declare const client: Client;

async function typed(): Promise<void> {
  same<Awaited<ReturnType<typeof client.listTools>>, Tool[]>(true);
  same<Awaited<ReturnType<typeof client.listResources>>, Resource[]>(true);
  same<Awaited<ReturnType<typeof client.listResourceTemplates>>, ResourceTemplate[]>(true);
  same<Awaited<ReturnType<typeof client.listPrompts>>, Prompt[]>(true);
  same<Awaited<ReturnType<typeof client.callTool>>, ToolCallResult>(true);
  same<Awaited<ReturnType<typeof client.readResource>>, ReadResourceResult>(true);
  for await (const notification of client.notifications()) {
    same<typeof notification, Notification>(true);
  }
  for await (const tool of client.tools({ fresh: true })) {
    same<typeof tool, Tool>(true);
  }
  const { content } = await client.callTool("x", { a: 1 }, { timeout: 5, signal: new AbortController().signal });
  const [block] = content;
  if (block?.type === "text") {
    same<typeof block.text, string>(true);
  }
  const result = await client.request<{ answer: number }>("of/its/own", { a: 1 });
  same<typeof result.answer, number>(true);
  await client.complete({ prompt: "p" }, { name: "a", value: "" }, { context: { b: "c" } });
  // @ts-expect-error an argument of either a prompt or a template
  await client.complete({}, { name: "a", value: "" });
  // @ts-expect-error there is no such level
  await client.setLogLevel("loud");
  // @ts-expect-error there is no such option
  await client.callTool("x", {}, { time_out: 5 });
}

async function data(): Promise<void> {
  const plain = await client.callTool("x");
  same<typeof plain.data, unknown>(true);
  const whole: CallToolResult = plain;
  const [block] = whole.content;
  if (block?.type === "image") {
    same<typeof block.data, string>(true);
    same<ReturnType<typeof bytesOf>, Uint8Array>(true);
    bytesOf(block);
  }
  if (block?.type === "text") {
    // @ts-expect-error a text has no bytes
    bytesOf(block);
  }
  same<ReturnType<typeof textOf>, string>(true);
  textOf(plain);
  textOf(await client.readResource("x://y"));
  (await client.getPrompt("x")).messages.map(textOf);
  // @ts-expect-error a list has no text
  textOf(await client.listTools());
  const typedResult = await client.callTool("x", { a: 1 }, { schema: z.object({ days: z.int() }), timeout: 5 });
  same<typeof typedResult.data, { days: number } | undefined>(true);
  if (!typedResult.isError) {
    same<typeof typedResult.data, { days: number }>(true);
    // @ts-expect-error there is no such member
    void typedResult.data.hours;
  }
  const transformed = await client.callTool("x", undefined, { schema: { when: z.string().transform(Number) } });
  same<typeof transformed.data, { when: number } | undefined>(true);
  // @ts-expect-error JSON Schema is not applied by the client
  await client.callTool("x", {}, { schema: { type: "object" } });
}

async function made(): Promise<void> {
  await using connected = await Client.connect("http://localhost", {
    headers: { Authorization: "x" },
    proxy: "direct",
    elicit: (params) => {
      same<typeof params, ElicitParams>(true);
      if (params.mode === "url") {
        same<typeof params.url, string>(true);
        return "decline";
      }
      return { action: "accept", content: { city: "Oslo" } };
    },
    sample: async ({ messages }) => String(messages.length),
    roots: () => ["file:///", new URL("file:///tmp")],
  });
  same<typeof connected, Client>(true);
  await Client.spawn("node", ["x.mjs"], { stderr: (line: string) => line, exitTimeout: 5 });
  await Client.memory(new Server({ name: "s", version: "1" }), { roots: [] });
  const transport: ClientTransport = { open: () => ({ send: (message: string) => message.length }) };
  await Client.over(transport);
  // @ts-expect-error headers are for clients of a URL
  await Client.spawn("node", [], { headers: {} });
  // @ts-expect-error clients are made by connecting
  new Client();
}

void typed;
void data;
void made;
