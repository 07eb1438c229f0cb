// Types of middleware. This file never runs: `types.test.mjs` compiles it.
import {
  auditLog,
  type BuiltInMiddleware,
  type CallToolResult,
  type InputRequiredResult,
  concurrencyLimit,
  type LimitKey,
  type Middleware,
  type MiddlewareRequest,
  type Next,
  rateLimit,
  redaction,
  responseCache,
  responseSizeLimit,
  result,
  Server,
  serverToolPolicy,
  text,
  type Tool,
} from "mcpline";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles only if `T` is exactly `Expected`. */
function exactly<Expected>() {
  return <T>(_value: T, ..._proof: Equal<T, Expected> extends true ? [] : [never]) => undefined;
}

const server = new Server({ name: "typed", version: "1", state: { salt: 1 }, createContext: () => ({ user: "ada" }) });

server.use(async (request, next) => {
  exactly<string>()(request.method);
  exactly<string | undefined>()(request.name);
  exactly<Readonly<Record<string, unknown>>>()(request.arguments);
  exactly<{ user: string }>()(request.context.context);
  exactly<{ salt: number }>()(request.context.state);
  const answer = await next(request);
  exactly<Record<string, unknown>>()(answer);
  return answer;
});
server.use((_, next) => next());
server.use(() => "text");

server.use({ methods: ["tools/call"], names: ["a"], tags: ["b"], kinds: ["tool"] }, async (request, next) => {
  exactly<"tools/call">()(request.method);
  exactly<string>()(request.params.name);
  // @ts-expect-error -- a request cannot be changed in place
  request.params.name = "b";
  const answer = await next(request.with({ arguments: { a: 1 } }));
  exactly<(CallToolResult & { resultType?: "complete" }) | InputRequiredResult>()(answer);
  if (answer.resultType === "input_required") {
    return answer;
  }
  answer.content.push(text("more"));
  return { ...answer, content: [text("other")] };
});
server.use({ methods: ["tools/call"] }, (_, next) => (Math.random() > 1 ? next() : [text("a"), "b"]));
server.use({ methods: ["tools/call"] }, () => result({ content: "no", isError: true }));

server.use({ methods: ["tools/list"] }, async (request, next) => {
  const { tools } = await next(request);
  exactly<Tool[]>()(tools);
  return { tools };
});
server.use({ methods: ["acme/search"] }, async (request, next) => {
  exactly<"acme/search">()(request.method);
  exactly<Record<string, unknown>>()(await next());
  return { hits: [] };
});

const methods: string[] = [];
server.use({ methods }, (request, next) => next(request));
server.use({ tags: ["admin"] }, (request, next) => next(request));

// @ts-expect-error -- the result is missing
server.use(async (request, next) => {
  await next(request);
});
interface Found {
  hits: string[];
}
server.use({ methods: ["acme/search"] }, (): Found => ({ hits: [] }));
server.use((): Found => ({ hits: [] }));
// @ts-expect-error -- the result is missing
server.use({ methods: ["tools/call", "acme/search"] }, async (request, next) => {
  await next(request);
});
// @ts-expect-error -- only tools return text
server.use({ methods: ["tools/list"] }, () => "text");
// @ts-expect-error -- there is no such criterion
server.use({ tools: ["a"] }, (request, next) => next(request));
// @ts-expect-error -- there is no such kind
server.use({ kinds: ["tools"] }, (request, next) => next(request));
// @ts-expect-error -- `next` takes a request
server.use((_, next) => next({ arguments: {} }));

// In a module of its own
const log: Middleware = async (request, next) => {
  exactly<MiddlewareRequest>()(request);
  exactly<Next>()(next);
  return next(request);
};
server.use(log).use({ methods: ["tools/call"] }, log);
const calls: Middleware<"tools/call", { user: string }> = (request, next) => {
  exactly<string>()(request.context.context.user);
  return next(request);
};
server.use({ methods: ["tools/call"] }, calls);

// The middleware that the library provides
const keys: readonly LimitKey[] = ["client", "target"];
const limit: BuiltInMiddleware = rateLimit({ requests: 60, period: 60_000, burst: 10, per: keys, shared: "calls" });
server.use(limit).use({ methods: ["tools/call"] }, limit);
server.use({ tags: ["slow"] }, concurrencyLimit({ maxRunning: 2, maxWaiting: 20, per: ["session"] }));
server.use(responseCache({ ttl: 60_000, tools: ["search"], maxBytes: 1_000_000 }));
server.use(responseSizeLimit({ maxBytes: 100_000 }));
server.use(
  auditLog({ path: "audit.jsonl", maxBytes: 0, maxFiles: 3, arguments: true, redact: ["iban"], required: false }),
);
server.use(redaction({ members: ["iban"], patterns: ["[0-9]+"], replacement: "", arguments: true }));
server.use(serverToolPolicy({ allowed: ["a*"], denied: ["b"], approval: ["c"], exemptScopes: ["admin"] }));
// @ts-expect-error -- only policies of clients have pins
serverToolPolicy({ pin: true });
// @ts-expect-error -- the path is missing
auditLog({ results: true });
// @ts-expect-error -- patterns are strings
redaction({ patterns: [/a/] });
// @ts-expect-error -- there is no such key
rateLimit({ requests: 1, per: ["ip"] });
// @ts-expect-error -- the number of requests is missing
rateLimit({ period: 60_000 });
// @ts-expect-error -- there is no such option
responseSizeLimit({ max_bytes: 1 });
// @ts-expect-error -- it is not callable
limit();
// @ts-expect-error -- only the library makes them
server.use({ definition: "{}" });
