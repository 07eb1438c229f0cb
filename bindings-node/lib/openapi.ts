/** HTTP APIs that OpenAPI documents describe, as tools and resources. */

import type { Context } from "./context.js";
import { attempt, UsageError } from "./errors.js";
import type { Awaitable } from "./feature_options.js";
import type { FeatureRegistry } from "./feature_registry.js";
import type { RegisteredHandler } from "./handlers.js";
import { headerPairs } from "./headers.js";
import { finish, hub, ResultKind } from "./hub.js";
import { type NativeHttpRequest, native, type NativeServer } from "./native.js";
import {
  BOOLEAN,
  checkHandler,
  checkOptions,
  checkValues,
  type Expected,
  isObject,
  NUMBER,
  OBJECT,
  STRING,
  typeName,
} from "./option_checks.js";
import { optionNames, snakeCase } from "./option_names.js";
import { finishResponse, isResponse } from "./routes.js";
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

/** An API key or a token, or user name and password for a `basic` scheme. */
export type ApiCredential = string | BasicCredential;

/** Options of {@link Server.addOpenApi}. Durations are in milliseconds. */
export interface OpenApiOptions {
  /** Says what an operation becomes: `"tool"` or `true`, `"resource"`, or nothing. Default: every one becomes a tool. */
  select?: (operation: OpenApiOperation) => "tool" | "resource" | boolean | null | undefined;
  /**
   * URL that the paths of the document are appended to. It may have any address. Default: the first server in the
   * document, which has to be at a public address.
   */
  baseUrl?: string;
  /** Headers of every request. Tools have no arguments for parameters with these names. Default: none. */
  headers?: Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
  /**
   * Credentials by the names of security schemes in the document: an API key or a token, or user name and password for a
   * `basic` scheme. Or functions that return them, or promises of them: they are called for each request that uses the scheme.
   * Arguments never contain them. Default: none.
   */
  credentials?: Readonly<Record<string, ApiCredential | ((ctx: Context) => Awaitable<ApiCredential>)>>;
  /**
   * Sends the requests, in place of the built-in HTTP client: `fetch` of Node or of a package, or a function that calls it. It
   * needs `baseUrl`, or `allowPrivateAddresses`. The signal of the request is aborted when the call is cancelled or takes too
   * long. Its `redirect` is `manual`: to follow redirects, pass `(request) => fetch(request, { redirect: "follow" })`. Default:
   * the built-in client.
   */
  fetch?: (request: Request) => Promise<Response>;
  /**
   * Names of tools and resources, by operation id or by method and path (`GET /pets/{id}`). Default: the operation ids,
   * with only letters, digits, `_` and `-`.
   */
  names?: Readonly<Record<string, string>>;
  /** Scheme of the URIs of resources. Default: `api`, as in `api://pets/{id}`. */
  resourceScheme?: string;
  /** Maximum time of a request, from the first function for a credential to the end of the response. Default: 30,000. */
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
   * URL of the proxy of the built-in client: `http://`, `socks5://` or `socks5h://`, with credentials if needed; `direct` for none. Default:
   * the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
   */
  proxy?: string;
  /** CA certificates in PEM that are trusted in addition to those of the system. Default: none. */
  tlsRoots?: string;
  /** Trust only `tlsRoots`, not the CA certificates of the system. Default: `false`. */
  onlyTlsRoots?: boolean;
  /** Maximum time to reach the API: name resolution, connection, proxy and TLS together. Default: 10,000. */
  connectTimeout?: number;
}

const NAMES = optionNames<OpenApiOptions>({
  select: true,
  baseUrl: true,
  headers: true,
  credentials: true,
  fetch: true,
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
  onlyTlsRoots: true,
  connectTimeout: true,
});

const BYTES: Expected = ["a whole number of bytes", (value) => Number.isSafeInteger(value) && (value as number) >= 0];
const TEXTS: Expected = [
  "an object of strings",
  (value) => isObject(value) && Object.values(value).every((text) => typeof text === "string"),
];

/** What the values of options must be. `headers` and the values of `credentials` are checked as they are converted. */
const VALUES = {
  baseUrl: STRING,
  credentials: OBJECT,
  names: TEXTS,
  resourceScheme: STRING,
  timeout: NUMBER,
  maxResponseBytes: BYTES,
  maxSchemaBytes: BYTES,
  outputSchemas: BOOLEAN,
  allowPrivateAddresses: BOOLEAN,
  documentUrl: STRING,
  externalDocuments: OBJECT,
  proxy: STRING,
  tlsRoots: STRING,
  onlyTlsRoots: BOOLEAN,
  connectTimeout: NUMBER,
} satisfies Partial<Record<keyof OpenApiOptions, Expected>>;

/** Options that configure the built-in HTTP client. */
const BUILT_IN = ["proxy", "tlsRoots", "onlyTlsRoots", "connectTimeout"] as const;

type Fetch = NonNullable<OpenApiOptions["fetch"]>;
type CredentialFunction = (ctx: Context) => Awaitable<ApiCredential>;

/** Adds the operations of an API to a server. Returns names of tools, and URIs or templates of resources. */
export function addOpenApi(
  server: NativeServer,
  features: FeatureRegistry,
  document: unknown,
  options: OpenApiOptions,
): string[] {
  checkOptions("`addOpenApi`", options, NAMES);
  checkValues("`addOpenApi`", options, VALUES);
  const { select, fetch, credentials = {} } = options;
  if (select !== undefined) {
    checkHandler("`select`", select);
  }
  if (fetch !== undefined) {
    checkHandler("`fetch`", fetch);
    const unused = BUILT_IN.find((name) => options[name] !== undefined);
    if (unused !== undefined) {
      throw new UsageError(
        `\`addOpenApi\`: \`${unused}\` is an option of the built-in HTTP client: configure \`fetch\``,
      );
    }
  }
  const [text, settings] = [documentJson(document), optionsJson(options)];
  const functions = Object.entries(credentials).filter(([, credential]) => typeof credential === "function");
  const handlers = functions.map(([scheme, call]) => credentialHandler(scheme, call as CredentialFunction));
  if (fetch !== undefined) {
    handlers.push(fetchHandler(fetch));
  }
  return features.withHandlers(handlers, (numbers) => {
    const schemes = functions.map(([scheme]) => scheme);
    const client = numbers[schemes.length];
    const api = attempt(
      () => new native.OpenApi(server, text, settings, client, schemes, numbers.slice(0, schemes.length)),
    );
    const operations = JSON.parse(attempt(() => api.operations())) as OpenApiOperation[];
    const selected = operations.map((operation) => (select === undefined ? "tool" : word(select(operation))));
    return attempt(() => api.add(server, selected));
  });
}

/** Returns the handler that calls a function for the credential of a security scheme. */
function credentialHandler(scheme: string, call: CredentialFunction): RegisteredHandler {
  return {
    kind: "credential",
    name: scheme,
    run: (ctx) => call(ctx),
    finish: (number, value) => {
      finish(number, ResultKind.Result, JSON.stringify(credentialJson(scheme, value)));
    },
  };
}

interface RequestHead {
  method: string;
  url: string;
  headers: [name: string, value: string][];
  max_body_bytes: number;
  max_error_body_bytes: number;
}

/** A response with the number of bytes of its body that are of use. */
interface Fetched {
  response: Response;
  limit: number;
}

/** Returns the handler that sends requests by a function. */
function fetchHandler(fetch: Fetch): RegisteredHandler {
  return {
    kind: "http_client",
    name: "fetch",
    run: (ctx) => send(ctx, fetch),
    finish: (number, value) => {
      // `undefined`: the call has ended.
      const fetched = value as Fetched | undefined;
      return fetched === undefined ? undefined : finishResponse(number, fetched.response, fetched.limit);
    },
  };
}

async function send(ctx: Context, fetch: Fetch): Promise<Fetched | undefined> {
  const received: NativeHttpRequest | null = hub.callApiRequest(ctx.call);
  if (received === null) {
    return undefined;
  }
  const head = JSON.parse(received.head) as RequestHead;
  const request = new Request(head.url, {
    method: head.method,
    headers: head.headers,
    redirect: "manual",
    signal: ctx.signal,
    ...(received.body.byteLength > 0 && { body: received.body }),
  });
  const response: unknown = await fetch(request);
  if (!isResponse(response)) {
    throw new UsageError(`\`fetch\` must return a response, not ${typeName(response)}`);
  }
  return { response, limit: response.ok ? head.max_body_bytes : head.max_error_body_bytes };
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
    if (value !== undefined && name !== "select" && name !== "fetch") {
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
        Object.entries(value as Record<string, unknown>)
          .filter(([, credential]) => credential !== undefined && typeof credential !== "function")
          .map(([scheme, credential]) => [scheme, credentialJson(scheme, credential)]),
      );
    default:
      return value;
  }
}

/**
 * Returns the JSON of a credential.
 *
 * @throws UsageError if it is none. The message does not contain it, because it is secret.
 */
function credentialJson(scheme: string, credential: unknown): string | [string, string] {
  if (typeof credential === "string") {
    return credential;
  }
  const { username, password } = (isObject(credential) ? credential : {}) as Partial<BasicCredential>;
  if (typeof username === "string" && typeof password === "string") {
    return [username, password];
  }
  const given = isObject(credential) ? "another object" : typeName(credential);
  throw new UsageError(
    `the credential \`${scheme}\` must be a string, or an object with \`username\` and \`password\`, not ${given}`,
  );
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
