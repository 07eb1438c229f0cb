/** CA certificates of `NODE_EXTRA_CA_CERTS`, which Node's own TLS trusts as well. */

import { readFileSync } from "node:fs";

import { errorText, warn } from "./client/host.js";

let extra: string | undefined;
let isRead = false;

/** Reads the file once, as Node does. */
function extraRoots(): string | undefined {
  const { NODE_EXTRA_CA_CERTS: path } = process.env;
  if (!isRead && path !== undefined && path !== "") {
    isRead = true;
    try {
      extra = readFileSync(path, "utf8");
    } catch (error) {
      warn("NODE_EXTRA_CA_CERTS is ignored: cannot read its file", errorText(error));
    }
  }
  return extra;
}

/** Options of outgoing TLS connections. */
interface TlsOptions {
  tlsRoots?: string;
  onlyTlsRoots?: boolean;
}

/** Returns the CA certificates to trust in addition to those of the system: the option, and `NODE_EXTRA_CA_CERTS`. */
export function trustedRoots({ tlsRoots, onlyTlsRoots }: TlsOptions): TlsOptions {
  const more = onlyTlsRoots === true ? undefined : extraRoots();
  if (more === undefined) {
    return {};
  }
  return { tlsRoots: tlsRoots === undefined ? more : `${tlsRoots}\n${more}` };
}
