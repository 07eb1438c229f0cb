// The command line of both servers.
import { parseArgs } from "node:util";

const NUMBER = { type: "string" };
/** Features that a server has in addition, or exclusively. */
const PARTS = ["extras", "more", "extensions", "declared", "tools-only", "prompts-only"];

function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/**
 * Parses the command line: the port, the number of the custom transport, the server's settings, those of HTTP, the
 * parts, and other arguments.
 */
export function readOptions() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      http: NUMBER,
      channel: NUMBER,
      "page-size": NUMBER,
      "max-suspended-handlers": NUMBER,
      sharing: { type: "string" },
      "max-total-client-bytes": NUMBER,
      "max-sessions": NUMBER,
      "read-timeout": NUMBER,
      "write-timeout": NUMBER,
      ...Object.fromEntries(PARTS.map((part) => [part, NUMBER])),
    },
  });
  const number = (name, unit = 1) => (values[name] === undefined ? undefined : Number(values[name]) * unit);
  return {
    port: number("http"),
    channel: number("channel"),
    settings: given({
      pageSize: number("page-size"),
      maxSuspendedHandlers: number("max-suspended-handlers"),
      sharing: values.sharing,
      maxTotalClientBytes: number("max-total-client-bytes"),
    }),
    http: given({
      maxSessions: number("max-sessions"),
      readTimeout: number("read-timeout", 1000),
      writeTimeout: number("write-timeout", 1000),
    }),
    parts: PARTS.filter((part) => number(part) === 1),
    positionals,
  };
}
