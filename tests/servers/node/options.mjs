// The command line of both servers.
import { parseArgs } from "node:util";

const NUMBER = { type: "string" };

function given(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** What the command line says: the port, the server's settings, those of HTTP, and what else there is. */
export function readOptions() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      http: NUMBER,
      "page-size": NUMBER,
      suspended: NUMBER,
      "peer-bytes": NUMBER,
      sessions: NUMBER,
      "read-timeout": NUMBER,
      "write-timeout": NUMBER,
      extras: NUMBER,
    },
  });
  const number = (name, unit = 1) => (values[name] === undefined ? undefined : Number(values[name]) * unit);
  return {
    port: number("http"),
    settings: given({
      pageSize: number("page-size"),
      suspended: number("suspended"),
      maxPeerBytes: number("peer-bytes"),
    }),
    http: given({
      sessions: number("sessions"),
      readTimeout: number("read-timeout", 1000),
      writeTimeout: number("write-timeout", 1000),
    }),
    hasExtras: number("extras") === 1,
    positionals,
  };
}
