// A protected server under a prefix of an Express application; Express is loaded from the given folder.
import assert from "node:assert/strict";
import { createSign, generateKeyPairSync } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";

import { Client, Server } from "mcpline";

const express = createRequire(join(process.argv[2], "package.json"))("express");
const ISSUER = "https://auth.example.com";
const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwks = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256" }] };

const app = express();
const listening = await new Promise((resolve) => {
  const server = app.listen(0, "127.0.0.1", () => resolve(server));
});
const origin = `http://127.0.0.1:${listening.address().port}`;
const resource = `${origin}/api/tools/mcp`;

const server = new Server({ name: "guarded", version: "1" });
server.tool("whoami", {}, (_, ctx) => ctx.auth.subject);
const mcp = server.httpApp({ auth: { resource, issuers: [ISSUER], jwks } });
const api = express.Router();
api.all("/tools/mcp", mcp.handler);
app.use("/api", api);
app.get(mcp.wellKnown.path, mcp.metadata);

const refused = await fetch(resource, {
  method: "POST",
  headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
});
assert.equal(refused.status, 401);
const [, place] = refused.headers.get("www-authenticate").match(/resource_metadata="([^"]+)"/);
assert.equal(place, `${origin}/.well-known/oauth-protected-resource/api/tools/mcp`);
const document = await (await fetch(place)).json();
assert.deepEqual([document.resource, document.authorization_servers], [resource, [ISSUER]]);

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const exp = Math.floor(Date.now() / 1000) + 600;
const text = `${part({ alg: "ES256", kid: "k1" })}.${part({ iss: ISSUER, aud: resource, sub: "alice", exp })}`;
const signature = createSign("sha256").update(text).sign({ key: privateKey, dsaEncoding: "ieee-p1363" });
const client = await Client.connect(resource, { auth: `${text}.${signature.toString("base64url")}` });
assert.equal((await client.callTool("whoami")).content[0].text, "alice");
await client.close();
await server.close();
listening.close();
