// Types of middleware of clients. This file never runs: `types.test.mjs` compiles it.
import {
  type BuiltInClientMiddleware,
  circuitBreaker,
  Client,
  type ClientMiddleware,
  type ClientNext,
  type ClientRequest,
  retry,
  toolPolicy,
} from "mcpline";

const log: ClientMiddleware = async (request, next) => {
  const method: string = request.method;
  const name: string | undefined = request.name;
  console.log(method, name, request.arguments["city"]);
  // @ts-expect-error -- it cannot be changed
  request.method = "other";
  const result = await next(request.with({ arguments: { city: "Oslo" } }));
  return { ...result, _meta: {} };
};

function pass(request: ClientRequest, next: ClientNext) {
  return next(request);
}

const policy: BuiltInClientMiddleware = toolPolicy({
  allowed: ["get_*"],
  denied: ["get_secret"],
  pinFile: new URL("file:///pins.json"),
});
const options = {
  middleware: [log, pass, retry({ attempts: 5, tools: ["forecast"] }), circuitBreaker({ reset: 10_000 }), policy],
};
void Client.connect("http://localhost/mcp", options);
void Client.spawn("server", [], options);
void Client.connect("http://localhost/mcp", {
  // @ts-expect-error -- a middleware returns a result
  middleware: [async (request: ClientRequest, next: ClientNext) => void (await next(request))],
});
// @ts-expect-error -- an unknown option
retry({ attempt: 3 });
