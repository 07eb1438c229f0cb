// Receives spans with `@elastic/mockotlpserver`. Prints the URL, then each span as a line of JSON, and `null` for each line that it
// reads: all spans of requests that were answered before are printed before it.
import { createInterface } from "node:readline";

import { MockOtlpServer, normalizeTrace } from "@elastic/mockotlpserver";

function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

const sink = new MockOtlpServer({
  logLevel: "warn",
  services: ["http"],
  httpHostname: "127.0.0.1",
  httpPort: 0,
  onTrace(request) {
    for (const { resource, scopeSpans } of normalizeTrace(request).resourceSpans) {
      for (const { scope, spans } of scopeSpans) {
        for (const span of spans) {
          print({ ...span, service: resource.attributes["service.name"], scope: scope.name });
        }
      }
    }
  },
});
await sink.start();
print(sink.httpUrl.href);
for await (const _ of createInterface({ input: process.stdin })) {
  print(null);
}
await sink.close();
