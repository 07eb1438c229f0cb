/** The certificate and the private key of a server. */

import { UsageError } from "./errors.js";
import { checkOptions, typeName } from "./option_checks.js";
import { optionNames } from "./option_names.js";

/**
 * The certificate and the private key of a server. The server speaks TLS 1.2 and 1.3.
 *
 * If both are files, they are read again when clients connect, at most every ten seconds: a renewed certificate is used
 * without a restart. If the new files cannot be used, the old certificate stays, and a warning is emitted.
 */
export interface Tls {
  /**
   * Path of a PEM file, or PEM as text or bytes: the server's certificate, followed by the intermediate certificates up to
   * the authority.
   */
  certificate: string | Uint8Array;
  /** Path of a PEM file, or PEM as text or bytes: the private key (PKCS #8, PKCS #1 or SEC 1), not encrypted. */
  key: string | Uint8Array;
}

const NAMES = optionNames<Tls>({ certificate: true, key: true });

/** Converts the options of TLS to the core's JSON, which distinguishes PEM from a path by its first line. */
export function tlsOptions(tls: Tls): string {
  checkOptions("`tls`", tls, NAMES);
  const text = (name: "certificate" | "key") => {
    const value: unknown = tls[name];
    if (typeof value === "string") {
      return value;
    }
    if (!(value instanceof Uint8Array)) {
      throw new UsageError(`\`tls.${name}\` must be a path, or PEM as text or bytes, not ${typeName(value)}`);
    }
    const pem = new TextDecoder().decode(value);
    if (!pem.includes("-----BEGIN ")) {
      throw new UsageError(`\`tls.${name}\`: the bytes contain no PEM (\`-----BEGIN …-----\`)`);
    }
    return pem;
  };
  return JSON.stringify({ certificate: text("certificate"), key: text("key") });
}
