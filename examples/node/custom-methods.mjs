// A server and a client with custom requests and notifications: `node custom-methods.mjs` serves stdio, with `--http
// 8000` HTTP. With `--client PROGRAM [ARGUMENT …]` or `--client URL` it is a client of such a server, for example `node
// custom-methods.mjs --client node custom-methods.mjs`.
import { Client, Server } from "mcpline";
import { z } from "zod";

const text = z.object({ text: z.string() });

function makeServer() {
  const server = new Server({ name: "custom-methods", version: "1.0.0" });
  /** @type {string[]} */
  const notes = [];
  /** @type {((note: string) => void)[]} */
  const waiting = [];

  server.onRequest("acme/echo", { params: text }, ({ text }, ctx) => {
    ctx.progress(1, 2);
    ctx.notify("acme/echoing", { text });
    return { text };
  });

  server.onNotification("acme/note", { params: text }, ({ text }) => {
    const take = waiting.shift();
    if (take === undefined) {
      notes.push(text);
    } else {
      take(text);
    }
  });

  // Returns the next note, or waits for one.
  server.onRequest("acme/take", {}, async () => ({
    text: notes.shift() ?? (await new Promise((take) => waiting.push(take))),
  }));

  server.onRequest("acme/choose", {}, async (_, ctx) => {
    const { picked } = await ctx.sendRequest("acme/pick", { from: ["green", "black"] });
    return { tea: picked };
  });
  return server;
}

/**
 * @param {string} address
 * @param {string[]} args
 */
async function call(address, args) {
  /** @type {(text: unknown) => void} */
  let echoing = () => {};
  const echoed = new Promise((received) => (echoing = received));
  /** @type {import("mcpline").ClientOptions} */
  const options = {
    onRequest: { "acme/pick": ({ from }) => ({ picked: Array.isArray(from) ? from[0] : undefined }) },
    onNotification: ({ method, params }) => method === "acme/echoing" && echoing(params?.text),
  };
  const client = await (address.startsWith("http")
    ? Client.connect(address, options)
    : Client.spawn(address, args, options));
  try {
    /** @type {{ text: string }} */
    const echo = await client.request("acme/echo", { text: "hello" });
    console.log("echoing:", await echoed);
    console.log("echoed:", echo.text);
    await client.notify("acme/note", { text: "a note" });
    /** @type {{ text: string }} */
    const taken = await client.request("acme/take");
    console.log("took:", taken.text);
    /** @type {{ tea: string }} */
    const chosen = await client.request("acme/choose");
    console.log("picked:", chosen.tea);
  } finally {
    await client.close();
  }
}

const [mode, address = "", ...rest] = process.argv.slice(2);
if (mode === "--client") {
  await call(address, rest);
} else if (mode === "--http") {
  const server = makeServer();
  server.closeOnSignals();
  const { url } = await server.listen({ port: Number(address) });
  console.error(`listening on ${url}`);
} else {
  await makeServer().run();
}
