// A server and a client with custom requests and notifications: `node custom-methods.mjs` serves stdio, with `--http
// 8000` HTTP. With `--client PROGRAM [ARGUMENT …]` or `--client URL` it is a client of such a server, for example `node
// custom-methods.mjs --client node custom-methods.mjs`.
import { Client, Server } from "mcpline";
import { z } from "zod";

const text = z.object({ text: z.string() });

function makeServer() {
  const server = new Server({ name: "custom-methods", version: "1.0.0" });
  const notes = [];
  const waiting = [];

  server.onRequest("acme/echo", { params: text }, ({ text }, ctx) => {
    ctx.progress(1, 2);
    ctx.notify("acme/echoing", { text });
    return { text };
  });

  server.onNotification("acme/note", { params: text }, ({ text }) => {
    const take = waiting.shift() ?? ((note) => notes.push(note));
    take(text);
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

async function call([address, ...args]) {
  let echoing;
  const echoed = new Promise((received) => (echoing = received));
  const options = {
    onRequest: { "acme/pick": ({ from }) => ({ picked: from[0] }) },
    onNotification: ({ method, params }) => method === "acme/echoing" && echoing(params.text),
  };
  const client = await (address.startsWith("http")
    ? Client.connect(address, options)
    : Client.spawn(address, args, options));
  try {
    const { text } = await client.request("acme/echo", { text: "hello" });
    console.log("echoing:", await echoed);
    console.log("echoed:", text);
    await client.notify("acme/note", { text: "a note" });
    console.log("took:", (await client.request("acme/take")).text);
    console.log("picked:", (await client.request("acme/choose")).tea);
  } finally {
    await client.close();
  }
}

const [mode, ...rest] = process.argv.slice(2);
if (mode === "--client") {
  await call(rest);
} else if (mode === "--http") {
  const server = makeServer();
  server.closeOnSignals();
  const { url } = await server.listen({ port: Number(rest[0]) });
  console.error(`listening on ${url}`);
} else {
  await makeServer().run();
}
