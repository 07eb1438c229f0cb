// The everything-server in JavaScript. Its specification is ../README.md.
import { serveChannel } from "./channel.mjs";
import { everything } from "./everything.mjs";
import { readOptions } from "./options.mjs";

const { port, channel, settings, http, parts } = readOptions();
const server = everything(settings, parts);

if (channel !== undefined) {
  await serveChannel(server, channel);
} else if (port === undefined) {
  await server.run();
} else {
  await server.listen({ ...http, port });
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => void server.close());
  }
}
