// The everything-server in JavaScript. Its specification is ../README.md.
import { parseArgs } from "node:util";

import { everything } from "./everything.mjs";

const { values: options } = parseArgs({ options: { http: { type: "string" }, "page-size": { type: "string" } } });
const server = everything(options["page-size"] === undefined ? {} : { pageSize: Number(options["page-size"]) });

if (options.http === undefined) {
  await server.run();
} else {
  await server.listen({ port: Number(options.http) });
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => void server.close());
  }
}
