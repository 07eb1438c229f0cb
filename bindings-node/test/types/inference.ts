// Inferred types of handlers' arguments, answers and results. This file never runs: `types.test.mjs` compiles it.
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { type CallToolResult, Client, result, Server, text } from "mcpline";
import { Type } from "typebox";
import * as v from "valibot";
import * as z from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only if `T` is exactly `Expected`. */
function exactly<Expected>() {
  return <T>(_value: T, ..._proof: Equal<T, Expected> extends true ? [] : [never]) => undefined;
}

const server = new Server({ name: "typed", version: "1" });

new Server({
  name: "errors",
  version: "1",
  onError: (error, { kind, name, ctx }) => {
    exactly<unknown>()(error);
    exactly<
      | "tool"
      | "resource"
      | "prompt"
      | "completion"
      | "resource_list"
      | "request"
      | "notification"
      | "event"
      | "middleware"
      | "http_client"
      | "credential"
      | "route"
      | "sharing"
    >()(kind);
    exactly<string>()(name);
    exactly<AbortSignal>()(ctx.signal);
  },
});

server.route("/files/{name}/{*rest}", (request, { params, signal }) => {
  exactly<Request>()(request);
  exactly<Readonly<Record<"name" | "rest", string>>>()(params);
  exactly<AbortSignal>()(signal);
});
// @ts-expect-error a path without this variable
server.route("/files/{name}", { methods: ["POST"] }, (_, { params }) => params.other);

server.tool("zod", { input: z.object({ city: z.string(), days: z.int().default(1) }) }, ({ city, days }) => {
  exactly<string>()(city);
  exactly<number>()(days);
});

server.tool("zod transforms", { input: z.object({ when: z.string().transform((text) => new Date(text)) }) }, (args) => {
  exactly<Date>()(args.when);
});

server.tool(
  "valibot",
  { input: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number(), 1) })) },
  ({ city, days }) => {
    exactly<string>()(city);
    exactly<number>()(days);
  },
);

server.tool("arktype", { input: type({ city: "string", "days?": "number" }) }, ({ city, days }) => {
  exactly<string>()(city);
  exactly<number | undefined>()(days);
});

server.tool(
  "JSON Schema",
  {
    input: {
      type: "object",
      properties: { city: { type: "string" }, unit: { enum: ["C", "F"] }, days: { type: "integer" } },
      required: ["city", "unit"],
    },
  },
  ({ city, unit, days }) => {
    exactly<string>()(city);
    exactly<"C" | "F">()(unit);
    exactly<number | undefined>()(days);
  },
);

server.tool("output", { output: z.object({ sum: z.number() }) }, () => ({ sum: 1 }));
// @ts-expect-error -- the handler's result isn't what `output` says
server.tool("other output", { output: z.object({ sum: z.number() }) }, () => ({ sum: "one" }));

// What a handler returns is the schema's input: properties with a default may be missing.
server.tool("filled output", { output: z.object({ sum: z.number(), unit: z.string().default("m") }) }, () => ({
  sum: 1,
}));
server.tool("coerced", { input: z.object({ days: z.coerce.number() }) }, ({ days }) => {
  exactly<number>()(days);
});

server.tool(
  "shape",
  {
    input: { city: z.string(), days: z.int().default(1), note: z.string().optional() },
    output: { sum: z.number(), unit: z.string().default("m") },
  },
  (args) => {
    exactly<{ city: string; days: number; note?: string | undefined }>()(args);
    return { sum: args.days };
  },
);
// @ts-expect-error -- the handler's result isn't what the shape says
server.tool("other shape", { output: { sum: z.number() } }, () => ({ sum: "one" }));

server.tool("results", { output: z.object({ sum: z.number() }) }, (_, ctx) =>
  ctx.cancelled ? result({ content: "no sum", isError: true }) : result({ structuredContent: { sum: 1 } }),
);
server.tool("content", {}, async () => result({ content: ["one", text("two")], _meta: { "example.com/a": 1 } }));
server.tool("other results", { output: z.object({ sum: z.number() }) }, () =>
  // @ts-expect-error -- the structured content isn't what `output` says
  result({ structuredContent: { sum: "one" } }),
);

server.tool(
  "TypeBox",
  { input: Type.Object({ city: Type.String(), days: Type.Optional(Type.Number()) }) },
  ({ city, days }) => {
    exactly<string>()(city);
    exactly<number | undefined>()(days);
  },
);

// Schemas with a declared type, as of `JSONSchema7`.
interface DeclaredSchema {
  type?: "object" | "string";
  properties?: Record<string, DeclaredSchema>;
}
declare const declared: DeclaredSchema;
server.tool("declared", { input: declared, output: declared }, (args) => args);

// Literals in what a handler returns.
const unit = z.object({ unit: z.enum(["C", "F"]), list: z.array(z.enum(["a", "b"])) });
server.tool("literals", { output: unit }, () => ({ unit: "C", list: ["a"] }));
server.tool("literals or a failure", { output: unit }, async (_, ctx) => {
  if (ctx.cancelled) {
    return { content: [{ type: "text", text: "no unit" }], isError: true };
  }
  return { unit: "F", list: [] };
});
server.tool("other literals", { output: unit }, () => ({
  // @ts-expect-error -- there is no such unit
  unit: "K",
  list: [],
}));
server.tool("failure", {}, () => ({ content: [{ type: "text", text: "no" }], isError: true }));
server.tool("declared result", { output: unit }, async (): Promise<CallToolResult> => ({ content: [], isError: true }));

// Objects of interfaces, which have no index signature.
interface Row {
  id: number;
}
declare const row: Row;
server.tool("row", {}, () => row);
server.tool("rows", {}, async () => [row]);
server.tool("any object", { output: { type: "object" } }, () => row);
server.resource("test://row", { name: "row" }, () => row);
server.onRequest("acme/row", {}, () => row);

server.resource(
  "test://{city}/{+path*}{?day,hours*,year:4}",
  { name: "variables", complete: { city: (value) => [value.toUpperCase()] } },
  (variables) => {
    exactly<string>()(variables.city);
    exactly<string[]>()(variables.path);
    exactly<string | undefined>()(variables.day);
    exactly<string[] | undefined>()(variables.hours);
    exactly<string | undefined>()(variables.year);
    // @ts-expect-error -- there is no such variable
    return String(variables.country);
  },
);

server.prompt(
  "completions",
  {
    arguments: {
      city: { complete: (value) => [value.toUpperCase()] },
      day: { complete: async (_, ctx) => [ctx.revision] },
    },
  },
  ({ city }) => city,
);

server.tool("answers", {}, async (_, ctx) => {
  const answer = await ctx.elicit("Which city?", z.object({ city: z.string() }));
  if (answer.action === "accept") {
    exactly<string>()(answer.content.city);
  } else {
    exactly<"decline" | "cancel">()(answer.action);
  }
});

server.prompt(
  "plan",
  { arguments: { city: { description: "Where" }, style: { required: false } } },
  ({ city, style }) => {
    exactly<string>()(city);
    exactly<string | undefined>()(style);
    return `A ${style ?? "quiet"} day in ${city}`;
  },
);

server.onRequest("acme/zod", { params: z.object({ query: z.string(), limit: z.int().default(1) }) }, (params) => {
  exactly<string>()(params.query);
  exactly<number>()(params.limit);
  return { hits: [params.query] };
});

server.onRequest(
  "acme/JSON-Schema",
  { params: { type: "object", properties: { query: { type: "string" } }, required: ["query"] } },
  async ({ query }, ctx) => {
    exactly<string>()(query);
    ctx.notify("acme/searching", { query });
    ctx.notify("acme/searching");
    // @ts-expect-error -- params are an object
    ctx.notify("acme/searching", "tea");
    return Promise.resolve({ hits: [query] });
  },
);

server.onRequest("acme/any", {}, (params) => {
  exactly<Record<string, unknown>>()(params);
});
// @ts-expect-error -- a result is an object
server.onRequest("acme/text", {}, () => "text");
// @ts-expect-error -- there is no such option
server.onRequest("acme/options", { input: {} }, () => ({}));
exactly<boolean>()(server.removeRequestHandler("acme/any"));

server.onNotification("acme/note", { params: z.object({ number: z.int() }) }, async ({ number }, ctx) => {
  exactly<number>()(number);
  exactly<Record<string, unknown>>()(await ctx.sendRequest("acme/pick", { from: [number] }));
  // @ts-expect-error -- params are an object
  await ctx.sendRequest("acme/pick", "tea");
});
server.onNotification("acme/any", {}, (params) => {
  exactly<Record<string, unknown>>()(params);
});
exactly<boolean>()(server.removeNotificationHandler("acme/any"));

void Client.memory(server, {
  onRequest: { "acme/pick": ({ from }, { signal }) => ({ picked: signal.aborted ? undefined : from }) },
});
// @ts-expect-error -- a result is an object
void Client.memory(server, { onRequest: { "acme/pick": () => "text" } });

server.resource(
  "log://{day}",
  {
    name: "log",
    list: async (ctx) => {
      exactly<AbortSignal>()(ctx.signal);
      return ["log://monday", { uri: "log://tuesday", name: "tuesday" }];
    },
  },
  ({ day }) => {
    exactly<string>()(day);
    return day;
  },
);
// @ts-expect-error: a resource needs a URI
server.resource("log://{hour}", { name: "log", list: () => [{ name: "log" }] }, () => "");
// @ts-expect-error: only templates list resources
server.resource("log://today", { name: "log", list: () => [] }, () => "");
