// Features of `--extensions 1`: two extensions of the protocol with their methods, tools, prompt and resource.
import { ExtendedResult, Extension } from "mcpline";

import { object, string } from "./fixtures.mjs";
import { gates } from "./running.mjs";

const STAMPS = "com.example/stamps";

/** Creates the extensions that the server declares, with their methods. */
export function makeExtensions() {
  const stamps = new Extension(STAMPS, { settings: { colors: 3 } })
    .onRequest("acme/issue", { params: object({ color: string }) }, ({ color }, ctx) => ({
      stamp: color,
      for: ctx.clientExtension(STAMPS),
    }))
    .onNotification("acme/used", { params: object({ name: string }) }, ({ name }) => {
      gates.open(name);
    });
  const receipts = new Extension("com.example/receipts", { resultTypes: ["acme/receipt"] }).onRequest(
    "acme/redeem",
    { params: object({ token: string }) },
    ({ token }) =>
      token === "endless"
        ? new ExtendedResult("acme/receipt", { token })
        : { content: [{ type: "text", text: `redeemed ${token}` }] },
  );
  return [stamps, receipts];
}

/** Adds the tools, the prompt and the resource. */
export function addExtensions(server) {
  const receipt = () => new ExtendedResult("acme/receipt", { token: "t-1" });
  server.tool("test_extension", { description: "Needs an extension that the client declares" }, (_, ctx) => {
    ctx.requireExtension(STAMPS);
    return "stamps declared";
  });
  server.tool("test_receipt", { description: "Returns a receipt" }, receipt);
  server.tool(
    "test_stray_type",
    { description: "Returns a result of a type that no extension has" },
    () => new ExtendedResult("acme/none", { token: "t-1" }),
  );
  server.prompt("test_receipt_prompt", { description: "Returns a receipt" }, receipt);
  server.resource("test://receipt", { name: "receipt", description: "Returns a receipt" }, receipt);
}
