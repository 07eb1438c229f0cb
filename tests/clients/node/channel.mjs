// A custom transport: a program that this transport starts, with one message per line on its stdin and stdout.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export function programTransport([program, ...args]) {
  return {
    async open(incoming) {
      const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
      await once(child, "spawn");
      // The program may end while a message is sent to it.
      child.stdin.on("error", incoming.closed);
      void receive(child.stdout, incoming);
      return {
        send: (message) => (child.stdin.write(`${message}\n`) ? undefined : once(child.stdin, "drain")),
        close: () => child.stdin.end(),
      };
    },
  };
}

async function receive(output, incoming) {
  for await (const line of createInterface({ input: output })) {
    if (!incoming.message(line)) {
      await incoming.ready();
    }
  }
  incoming.closed();
}
