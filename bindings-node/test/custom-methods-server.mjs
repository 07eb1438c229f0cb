// A server of custom requests for `custom-methods.test.mjs`, which is imported or run on stdio.

import { fileURLToPath } from "node:url";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { InputRequired, RpcError, Server, ToolError, elicitForm } from "mcpline";
import * as v from "valibot";
import * as z from "zod";

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };

/** The same `params` in each: `query` is required, `limit` an integer with the default 1. */
const SEARCHES = {
  zod: z.object({ query: z.string(), limit: z.int().default(1) }),
  valibot: toStandardJsonSchema(v.object({ query: v.string(), limit: v.optional(v.pipe(v.number(), v.integer()), 1) })),
  arktype: type({ query: "string", limit: "number.integer = 1" }),
};
export const LIBRARIES = Object.keys(SEARCHES);

export function makeServer() {
  const server = new Server({ name: "acme", version: "1" });
  for (const [library, params] of Object.entries(SEARCHES)) {
    server.onRequest(`acme/search-${library}`, { params }, async ({ query, limit }, ctx) => {
      ctx.progress(1, 2);
      ctx.notify("acme/searching", { query });
      if (query === "") {
        throw new RpcError(-1, "empty", { place: "query" });
      }
      return { hits: Array(limit).fill(query) };
    });
  }
  const raw = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
  server.onRequest("acme/raw", { params: raw }, (params) => params);
  server.onRequest("acme/any", {}, (params) => params);
  const even = z.object({ count: z.int().refine(async (count) => count % 2 === 0, "even wanted") });
  server.onRequest("acme/even", { params: even }, ({ count }) => ({ half: count / 2 }));
  server.onRequest("acme/nothing", {}, () => undefined);
  server.onRequest("acme/list", {}, () => [1]);
  server.onRequest("acme/text", {}, () => "{}");
  server.onRequest("acme/function", {}, () => () => ({}));
  server.onRequest("acme/throw", {}, () => {
    throw new Error("secret-detail");
  });
  server.onRequest("acme/readable", {}, () => Promise.reject(new ToolError("no such index")));
  server.onRequest("acme/ask", {}, async (_, ctx) => {
    const { content } = await ctx.elicit("Who?", NAME);
    return { name: content.name };
  });
  server.onRequest("acme/returned", {}, (_, ctx) => {
    const answer = ctx.inputResponses?.who;
    return answer === undefined ? new InputRequired({ who: elicitForm("Who?", NAME) }) : { name: answer.content.name };
  });
  let cancel;
  const cancelled = new Promise((resolve) => (cancel = resolve));
  server.onRequest("acme/wait", {}, (_, ctx) => {
    ctx.signal.addEventListener("abort", () => cancel());
    ctx.progress(0);
    return new Promise(() => {});
  });
  server.onRequest("acme/cancelled", {}, async () => {
    await cancelled;
    return { cancelled: true };
  });
  return server;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await makeServer().run();
}
