// Schemas of declared types: `@types/json-schema`. This file never runs: `types.test.mjs` compiles it.
import type { JSONSchema4, JSONSchema6, JSONSchema7 } from "json-schema";
import { type CreateMessageParams, elicitForm, sample, Server, type Tool } from "mcpline";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only if `T` is exactly `Expected`. */
function exactly<Expected>() {
  return <T>(_value: T, ..._proof: Equal<T, Expected> extends true ? [] : [never]) => undefined;
}

declare const draft4: JSONSchema4;
declare const draft6: JSONSchema6;
declare const draft7: JSONSchema7;

const server = new Server({ name: "typed", version: "1" });

server.tool("draft 4", { input: draft4, output: draft4 }, (args) => {
  exactly<Record<string, unknown>>()(args);
  return args;
});
server.tool("draft 6", { input: draft6, output: draft6 }, (args) => {
  exactly<Record<string, unknown>>()(args);
  return args;
});
server.tool("draft 7", { input: draft7, output: draft7 }, (args) => {
  exactly<Record<string, unknown>>()(args);
  return args;
});
server.tool("declared arguments", { input: draft7 }, (args: Record<string, unknown>) => Object.keys(args));
declare const read: Record<string, unknown>;
server.tool("read at run time", { input: read }, (args: Record<string, unknown>) => Object.keys(args));
server.tool("unknown arguments", { input: read }, (args: unknown) => typeof args);
// @ts-expect-error -- the compiler doesn't know that there is a city
server.tool("assumed arguments", { input: read }, ({ city }: { city: string }) => city);
server.onRequest("acme/draft7", { params: draft7 }, (params) => ({ params }));
server.onNotification("acme/draft7", { params: draft7 }, (params) => {
  exactly<Record<string, unknown>>()(params);
});

// The type of the values is known if the compiler knows the schema.
const city = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city"],
} as const satisfies JSONSchema7;
server.tool("constant", { input: city, output: city }, ({ city, days }) => {
  exactly<string>()(city);
  exactly<number | undefined>()(days);
  return { city };
});
// @ts-expect-error -- the handler's result isn't what `output` says
server.tool("other constant", { output: city }, () => ({ city: 1 }));

server.tool("elicits", {}, async (_, ctx) => {
  const answer = await ctx.elicit("Which city?", draft7);
  if (answer.action === "accept") {
    exactly<unknown>()(answer.content);
  }
  const known = await ctx.elicit("Which city?", city);
  if (known.action === "accept") {
    exactly<string>()(known.content.city);
  }
  return elicitForm("Which city?", draft7).method;
});

server.tool("samples", {}, async (_, ctx) => {
  const tool: Tool = { name: "forecast", inputSchema: draft7, outputSchema: draft7 };
  const { role } = await ctx.sample({ messages: [], maxTokens: 10, tools: [tool] });
  return sample({ messages: [], maxTokens: 10, tools: [tool] }).method + role;
});

// Tools that a client has received are for SDKs of models, whose types are narrower.
declare const listed: Tool;
const parameters: Record<string, unknown> = listed.inputSchema;
exactly<unknown>()(listed.inputSchema.properties);
const copied: Tool = { ...listed, inputSchema: { type: "object", ...parameters, "x-own": 1 }, outputSchema: draft6 };
sample({ messages: [], maxTokens: 10, tools: [listed, copied] });

// Parameters that a client has received can be sent on.
declare const received: CreateMessageParams;
sample(received);
