// A custom transport: messages over stdin and stdout.
import { once } from "node:events";
import { createInterface } from "node:readline";

/** The principals of `--channel N`. */
const PRINCIPALS = {
  1: undefined,
  2: { subject: "alice" },
  3: { subject: "alice", scopes: ["acme:write"] },
};

/** Serves one client, until stdin ends. */
export async function serveChannel(server, number) {
  const open = (incoming) => {
    void receive(incoming);
    return { send: (message) => (process.stdout.write(`${message}\n`) ? undefined : once(process.stdout, "drain")) };
  };
  const served = await server.serveChannel(open, { principal: PRINCIPALS[number] });
  await served.closed;
}

async function receive(incoming) {
  for await (const line of createInterface({ input: process.stdin })) {
    if (!incoming.message(line)) {
      await incoming.ready();
    }
  }
  incoming.closed();
}
