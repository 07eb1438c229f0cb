/** HTTP APIs that OpenAPI documents describe, as tools and resources. */

import { attempt, UsageError } from "./errors.js";
import { headerPairs } from "./headers.js";
import { native, type NativeServer } from "./native.js";
import { checkHandler, checkOptions, checkValues, OBJECT, typeName } from "./option_checks.js";
import { optionNames, snakeCase } from "./option_names.js";
import { secondsFromMs } from "./settings.js";

/** An operation of an OpenAPI document. */
export interface OpenApiOperation {
  /** `operationId`; `null` without one. */
  readonly id: string | null;
  /** The HTTP method, such as `GET`. */
  readonly method: string;
  /** The path, such as `/pets/{id}`. */
  readonly path: string;
  /**
   * The name that a tool or resource gets: the operation id, or else method and path, with only letters, digits, `_` and
   * `-`. No two operations of a document have the same one.
   */
  readonly name: string;
  /** A short summary. */
  readonly summary: string | null;
  /** Summary and description of the document together. */
  readonly description: string | null;
  /** The tags. */
  readonly tags: readonly string[];
  /** Whether the document calls it deprecated. */
  readonly deprecated: boolean;
}

/** User name and password for a security scheme of type `http` with the scheme `basic`. */
export interface BasicCredential {
  username: string;
  password: string;
}

/** Options of {@link Server.addOpenApi}. Durations are in milliseconds. */
export interface OpenApiOptions {
  /** Says what an operation becomes: `"tool"` or `true`, `"resource"`, or nothing. Default: every one becomes a tool. */
  select?: (operation: OpenApiOperation) => "tool" | "resource" | boolean | null | undefined;
  /**
   * URL that the paths of the document are appended to. It may have any address. Default: the first server in the
   * document, which has to be at a public address.
   */
  baseUrl?: string;
  /** Headers of every request. Parameters with these names are no arguments of tools. Default: none. */
  headers?: Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
  /**
   * Credentials by the names of security schemes in the document: an API key or a token, or user name and password for a
   * `basic` scheme. Arguments never contain them. Default: none.
   */
  credentials?: Readonly<Record<string, string | BasicCredential>>;
  /**
   * Names of tools and resources, by operation id or by method and path (`GET /pets/{id}`). Default: the operation ids,
   * with only letters, digits, `_` and `-`.
   */
  names?: Readonly<Record<string, string>>;
  /** Scheme of the URIs of resources. Default: `api`, as in `api://pets/{id}`. */
  resourceScheme?: string;
  /** Maximum time of a request, from connecting to the end of the response. Default: 30,000. */
  timeout?: number;
  /** Maximum size of a response, in bytes. A call with a longer one fails. Default: 1 MiB. */
  maxResponseBytes?: number;
  /**
   * Maximum size of each schema of arguments or results, in bytes of JSON. Parts of larger ones are replaced by their
   * types, the deepest first. Default: 32 KiB.
   */
  maxSchemaBytes?: number;
  /**
   * Give tools output schemas. Default: `true`. A response that does not match its schema is an error for the model, with
   * the response in it.
   */
  outputSchemas?: boolean;
  /**
   * Allow private addresses for servers that the document names, and requests to these servers through a proxy. Default:
   * `false`.
   */
  allowPrivateAddresses?: boolean;
  /**
   * URL of the document, which relative references and server URLs are resolved against. It is not fetched. Default:
   * none.
   */
  documentUrl?: string;
  /**
   * Other documents that the document refers to, by the URI in its references, without the fragment. Nothing is fetched.
   * Default: none.
   */
  externalDocuments?: Readonly<Record<string, unknown>>;
  /**
   * URL of the proxy: `http://`, `socks5://` or `socks5h://`, with credentials if needed; `direct` for none. Default:
   * the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
   */
  proxy?: string;
  /** CA certificates in PEM that are trusted in addition to those of the system. Default: none. */
  tlsRoots?: string;
  /** Trust only `tlsRoots`, not the CA certificates of the system. Default: `false`. */
  onlyTheseRoots?: boolean;
  /** Maximum time to reach the API: name resolution, connection, proxy and TLS together. Default: 10,000. */
  connectTimeout?: number;
}

const NAMES = optionNames<OpenApiOptions>({
  select: true,
  baseUrl: true,
  headers: true,
  credentials: true,
  names: true,
  resourceScheme: true,
  timeout: true,
  maxResponseBytes: true,
  maxSchemaBytes: true,
  outputSchemas: true,
  allowPrivateAddresses: true,
  documentUrl: true,
  externalDocuments: true,
  proxy: true,
  tlsRoots: true,
  onlyTheseRoots: true,
  connectTimeout: true,
});

/** Adds the operations of an API to a server. Returns names of tools, and URIs or templates of resources. */
export function addOpenApi(server: NativeServer, document: unknown, options: OpenApiOptions): string[] {
  checkOptions("`addOpenApi`", options, NAMES);
  checkValues("`addOpenApi`", options, { credentials: OBJECT });
  const { select } = options;
  if (select !== undefined) {
    checkHandler("`select`", select);
  }
  const [text, settings] = [documentJson(document), optionsJson(options)];
  const api = attempt(() => new native.OpenApi(text, settings));
  const operations = JSON.parse(attempt(() => api.operations())) as OpenApiOperation[];
  const selected = operations.map((operation) => (select === undefined ? "tool" : word(select(operation))));
  return attempt(() => api.add(server, selected));
}

function documentJson(document: unknown): string {
  if (typeof document === "string") {
    return document;
  }
  if (typeof document !== "object" || document === null) {
    throw new UsageError(`an OpenAPI document is an object, or JSON as a string, not ${typeName(document)}`);
  }
  return json("the OpenAPI document", document);
}

function json(what: string, value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new UsageError(`${what} can't be written as JSON: ${String(error)}`, { cause: error });
  }
}

function optionsJson(options: OpenApiOptions): string {
  const converted: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && name !== "select") {
      converted[snakeCase(name)] = option(name, value);
    }
  }
  return json("the options of `addOpenApi`", converted);
}

function option(name: string, value: unknown): unknown {
  switch (name) {
    case "timeout":
    case "connectTimeout":
      return secondsFromMs(name, value);
    case "headers":
      return headerPairs("`addOpenApi`", value);
    case "credentials":
      return Object.fromEntries(
        Object.entries(value as Record<string, string | BasicCredential>).map(([scheme, credential]) => [
          scheme,
          typeof credential === "string" ? credential : [credential.username, credential.password],
        ]),
      );
    default:
      return value;
  }
}

function word(choice: unknown): string {
  switch (choice) {
    case true:
    case "tool":
      return "tool";
    case "resource":
      return "resource";
    case false:
    case null:
    case undefined:
      return "nothing";
    default:
      throw new UsageError(
        `\`select\` must return "tool", "resource", a boolean, null or undefined, not ${
          typeof choice === "string" ? JSON.stringify(choice) : typeName(choice)
        }`,
      );
  }
}
