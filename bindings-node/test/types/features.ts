// Types of resources, prompts, completions and the values of a program. This file never runs: `types.test.mjs` compiles it.
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { Client, type Context, Extension, type HttpApp, Server, type TransportError } from "mcpline";
import * as v from "valibot";
import * as z from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only if `T` is exactly `Expected`. */
function exactly<Expected>() {
  return <T>(_value: T, ..._proof: Equal<T, Expected> extends true ? [] : [never]) => undefined;
}

// Without types of its own, a server has values of unknown type.

const server = new Server({ name: "typed", version: "1" });
exactly<Server>()(server);
exactly<unknown>()(server.state);

// Resources

server.resource("note://all", { name: "all", size: 4 }, (variables, ctx) => {
  exactly<AbortSignal>()(ctx.signal);
  // @ts-expect-error -- a resource has no variables
  return String(variables.id);
});
server.resource("note://{id}", { name: "note", complete: { id: ["a"] } }, ({ id }) => {
  exactly<string>()(id);
  return id;
});
server.resource("file:///{+path*}{?version}", { name: "file", uncheckedVariables: ["path"] }, (variables) => {
  exactly<string[]>()(variables.path);
  exactly<string | undefined>()(variables.version);
  // @ts-expect-error -- there is no such variable
  return String(variables.name);
});
server.resource(
  "city://{country}/{city}",
  {
    name: "city",
    complete: {
      city: (value, ctx, params) => {
        exactly<string>()(value);
        exactly<AbortSignal>()(ctx.signal);
        exactly<"country" | "city">()(params.argument.name);
        exactly<string | undefined>()(params.context?.arguments?.country);
        // @ts-expect-error -- there is no such variable
        return [String(params.context?.arguments?.street)];
      },
    },
  },
  ({ city }) => city,
);
// @ts-expect-error -- there is no such variable
server.resource("note://{id}", { name: "note", complete: { name: [] } }, () => "");
// @ts-expect-error -- there is no such variable
server.resource("note://{id}", { name: "note", uncheckedVariables: ["name"] }, () => "");
// @ts-expect-error -- only templates have completions
server.resource("note://all", { name: "all", complete: {} }, () => "");
// @ts-expect-error -- a template has no size
server.resource("note://{id}", { name: "note", size: 1 }, () => "");
// @ts-expect-error -- a resource has a name
server.resource("note://all", {}, () => "");

// URIs that are not known when the program is compiled.
declare const uri: string;
server.resource(uri, { name: "any" }, (variables) => {
  exactly<string | string[] | undefined>()(variables["id"]);
  return "";
});
server.resource(`note://${uri}`, { name: "any", size: 1 }, () => "");

// Prompts

server.prompt(
  "schema",
  {
    arguments: z.object({ city: z.string(), days: z.coerce.number().default(1) }),
    complete: {
      city: (value, ctx, { context }) => {
        exactly<string>()(value);
        exactly<AbortSignal>()(ctx.signal);
        exactly<string | undefined>()(context?.arguments?.days);
        return [value];
      },
      days: ["1"],
    },
  },
  ({ city, days }, ctx) => {
    exactly<string>()(city);
    exactly<number>()(days);
    exactly<AbortSignal>()(ctx.signal);
    return city;
  },
);
server.prompt("shape", { arguments: { city: z.string(), style: z.string().optional() } }, (args) => {
  exactly<{ city: string; style?: string | undefined }>()(args);
  return args.city;
});
server.prompt("valibot", { arguments: toStandardJsonSchema(v.object({ city: v.string() })) }, ({ city }) => {
  exactly<string>()(city);
  return city;
});
server.prompt("arktype", { arguments: type({ city: "string", "style?": "'quiet' | 'busy'" }) }, ({ style }) => {
  exactly<"quiet" | "busy" | undefined>()(style);
  return "";
});
server.prompt("options", { arguments: { city: {}, style: { required: false } }, complete: { city: [] } }, (args) => {
  exactly<string>()(args.city);
  exactly<string | undefined>()(args.style);
  return args.city;
});
server.prompt("none", {}, (args) => {
  // @ts-expect-error -- the prompt has no arguments
  return String(args.city);
});
server.prompt("schema", { arguments: z.object({ city: z.string() }) }, (args) => {
  // @ts-expect-error -- there is no such argument
  return String(args.town);
});
// @ts-expect-error -- there is no such argument
server.prompt("unknown completion", { arguments: { city: z.string() }, complete: { town: [] } }, () => "");
// @ts-expect-error -- there is no such option
server.prompt("unknown option", { arguments: { city: { type: "string" } } }, () => "");

// @ts-expect-error -- there is no such option
server.prompt("another option", { arguments: { city: { description: "Where", default: "Oslo" } } }, () => "");

// The context and the state of a program

interface Services {
  user: string;
}

const services = new Server({
  name: "services",
  version: "1",
  state: { pool: 4 },
  createContext: (ctx): Services => {
    exactly<{ pool: number }>()(ctx.state);
    exactly<undefined>()(ctx.context);
    return { user: ctx.auth?.subject ?? "nobody" };
  },
  onError: (_, { ctx }) => exactly<Services>()(ctx.context),
});
exactly<Server<Services, { pool: number }>>()(services);
services.tool("who", { input: z.object({ city: z.string() }) }, ({ city }, ctx) => {
  exactly<string>()(city);
  exactly<Context<Services, { pool: number }>>()(ctx);
  exactly<Services>()(ctx.context);
  exactly<number>()(ctx.state.pool);
  exactly<{ pool: number }>()(ctx.server.state);
  return ctx.context.user;
});
services.resource("user://{id}", { name: "user", complete: { id: (_, ctx) => [ctx.context.user] } }, (_, ctx) => {
  exactly<Services>()(ctx.context);
  return "";
});
services.prompt("p", {}, (_, ctx) => ctx.context.user);
services.onRequest("acme/who", {}, (_, ctx) => ctx.context);
services.onNotification("acme/note", {}, (_, ctx) => {
  exactly<Services>()(ctx.context);
});
services.completion((_, ctx) => [ctx.context.user]);
services.tool("unknown", {}, (_, ctx) => {
  // @ts-expect-error -- the context has no such member
  return String(ctx.context.password);
});
void services.fetch(new Request("http://localhost"), { context: { user: "ada" } });
// @ts-expect-error -- the context has another type
void services.fetch(new Request("http://localhost"), { context: { name: "ada" } });
const app: HttpApp<Services> = services.httpApp();
// @ts-expect-error -- the context has another type
void app.fetch(new Request("http://localhost"), { context: "ada" });

// Types that are given, not inferred.
new Server<Services>({ name: "s", version: "1", createContext: () => ({ user: "ada" }) });
new Server<Services | undefined>({ name: "s", version: "1" }).tool("t", {}, (_, ctx) => ctx.context?.user);
// @ts-expect-error -- calls over stdio would have no context
new Server<Services>({ name: "s", version: "1" });
// @ts-expect-error -- the context has another type
new Server<Services>({ name: "s", version: "1", createContext: () => ({ name: "ada" }) });
// @ts-expect-error -- there would be no state
new Server<unknown, Services>({ name: "s", version: "1" });

// A context that is created asynchronously.
new Server({ name: "s", version: "1", createContext: async () => ({ user: "ada" }) }).tool("t", {}, async (_, ctx) => {
  const { user } = await ctx.context;
  exactly<string>()(user);
});

// A typed server is a server.
function register(server: Server): void {
  server.tool("t", {}, (_, ctx) => {
    exactly<unknown>()(ctx.context);
  });
}
register(services);
void Client.memory(services);
new Extension("com.example/e").register((server) => server.tool("t", {}, () => ""));
new Server({ name: "s", version: "1", createContext: () => 1, extensions: [new Extension("com.example/e")] });

/** A handler of another module names the server's types. */
const handler = (_: unknown, ctx: Context<Services>) => ctx.context.user;
services.tool("elsewhere", {}, handler);
// @ts-expect-error -- the server has no such context
server.tool("elsewhere", {}, handler);

// HTTP APIs.
exactly<string[]>()(
  server.addOpenApi(
    {},
    {
      select: (operation) => {
        exactly<string | null>()(operation.id);
        return operation.deprecated ? null : "tool";
      },
      credentials: { key: "secret", login: { username: "ada", password: "secret" } },
    },
  ),
);
server.addOpenApi("{}", {
  fetch,
  credentials: {
    key: async (ctx) => ctx.auth?.subject ?? "anonymous",
    login: () => ({ username: "ada", password: "p" }),
  },
});
// @ts-expect-error -- a client returns a response
server.addOpenApi("{}", { fetch: async (request: Request) => request.url });
// @ts-expect-error -- a function returns a credential
server.addOpenApi("{}", { credentials: { key: () => 7 } });
// @ts-expect-error -- operations become tools or resources
server.addOpenApi("{}", { select: () => "prompt" });
// @ts-expect-error -- an API key has no user name alone
server.addOpenApi("{}", { credentials: { login: { username: "ada" } } });

// Errors

export function isPortTaken(error: TransportError): boolean {
  exactly<string | undefined>()(error.code);
  return error.code === "EADDRINUSE";
}
