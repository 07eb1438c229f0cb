// Custom requests and notifications, which no revision of the protocol defines.
import { RpcError } from "mcpline";

import { object, string } from "./fixtures.mjs";
import { gates, untilCancelled } from "./running.mjs";

export function addCustomRequests(server) {
  server.onRequest("acme/echo", { params: object({ text: string }) }, ({ text }, ctx) => {
    ctx.progress(1, 2);
    ctx.notify("acme/echoing", { text });
    return { text };
  });

  server.onRequest("acme/params", {}, (params) => ({ params }));

  server.onRequest("acme/ask", {}, async (_, ctx) => {
    const answer = await ctx.elicit("Who?", object({ name: string }), { key: "user" });
    return answer.action === "accept" ? { name: answer.content.name } : {};
  });

  server.onRequest("acme/wait", { params: object({ label: string }) }, untilCancelled);

  server.onRequest("acme/fail", {}, () => {
    throw new RpcError(-31050, "deliberate protocol error", { reason: "fixture" });
  });

  server.onRequest("acme/exception", {}, async () => {
    throw new TypeError("secret-detail-7c1f");
  });

  server.onRequest("acme/list", {}, () => [1]);

  server.onRequest("acme/choose", {}, async (_, ctx) => {
    const { picked } = await ctx.sendRequest("acme/pick", { from: [1, 2, 3] }, { key: "pick" });
    return { picked };
  });

  server.onNotification("acme/note", { params: object({ name: string }) }, ({ name }) => {
    gates.open(name);
  });

  const scopes = ["acme:write"];
  server.onRequest("acme/publish", { scopes }, () => ({ published: true }));
  server.onNotification("acme/published", { params: object({ name: string }), scopes }, ({ name }) => {
    gates.open(name);
  });
}
