/** Functions that create content blocks, and conversions of the return values of handlers. */

import { InvalidResponseError, UsageError } from "./errors.js";
import type {
  Annotations,
  AudioContent,
  CallToolResult,
  ContentBlock,
  CreateMessageResult,
  EmbeddedResource,
  ImageContent,
  Meta,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
  ResourceLink,
  SamplingMessage,
  TextContent,
} from "./protocol.js";

/** Options of a content block. */
export interface ContentOptions {
  annotations?: Annotations;
  _meta?: Meta;
}

/** Returns a text block. */
export function text(text: string, options?: ContentOptions): TextContent {
  return { type: "text", text, ...options };
}

/**
 * Returns an image block.
 *
 * @param data The image, as bytes or in base64.
 * @param mimeType Media type of the image.
 */
export function image(data: Uint8Array | string, mimeType: string, options?: ContentOptions): ImageContent {
  return { type: "image", data: base64(data), mimeType, ...options };
}

/**
 * Returns an audio block.
 *
 * @param data The audio, as bytes or in base64.
 * @param mimeType Media type of the audio.
 */
export function audio(data: Uint8Array | string, mimeType: string, options?: ContentOptions): AudioContent {
  return { type: "audio", data: base64(data), mimeType, ...options };
}

/** Returns a link to a resource. */
export function resourceLink(link: Omit<ResourceLink, "type">): ResourceLink {
  return { type: "resource_link", ...link };
}

/**
 * Returns a block with the contents of a resource.
 *
 * @param uri URI of the resource.
 * @param contents The contents, as text or bytes.
 * @param options `mimeType`: media type. Default: `text/plain` for text, `application/octet-stream` for bytes.
 */
export function embedded(
  uri: string,
  contents: string | Uint8Array,
  options?: ContentOptions & { mimeType?: string },
): EmbeddedResource {
  const { mimeType, ...rest } = options ?? {};
  return { type: "resource", resource: contentsOf(contents, uri, mimeType), ...rest };
}

/** Encodes bytes in base64. Strings are assumed to be base64 already. */
export function base64(data: Uint8Array | string): string {
  if (typeof data === "string") {
    return data;
  }
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

/**
 * Returns the bytes of an image, an audio recording, or the contents of a resource. Blocks and contents have them in
 * base64, as `data` or `blob`. The text of a resource is encoded in UTF-8.
 *
 * @throws InvalidResponseError if they are not valid base64.
 * @throws UsageError if the value has no bytes, such as a text block.
 */
export function bytesOf(content: ImageContent | AudioContent | EmbeddedResource | ResourceContents): Uint8Array {
  const { data, resource } = content as { data?: unknown; resource?: unknown };
  const { blob, text } = (resource ?? content) as { blob?: unknown; text?: unknown };
  const encoded = data ?? blob;
  if (typeof encoded === "string") {
    const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(encoded);
    const padding = encoded.endsWith("==") ? 2 : encoded.endsWith("=") ? 1 : 0;
    if (!isBase64 || (encoded.length - padding) % 4 === 1) {
      throw new InvalidResponseError("invalid response from server: content is not valid base64");
    }
    return new Uint8Array(Buffer.from(encoded, "base64"));
  }
  const isResource = resource !== undefined || !("type" in content);
  if (isResource && typeof text === "string") {
    return new TextEncoder().encode(text);
  }
  throw new UsageError("`bytesOf` takes an image, an audio recording or the contents of a resource");
}

/**
 * Returns the text of a result or a message: of all text blocks of a tool's result or all parts of a resource, joined by
 * newlines, or of all text blocks of a message, concatenated. It is empty if there is no text.
 *
 * ```ts
 * const forecast = textOf(await client.callTool("forecast", { city: "Oslo" }));
 * ```
 */
export function textOf(
  from: CallToolResult | ReadResourceResult | PromptMessage | SamplingMessage | CreateMessageResult,
): string {
  if ("contents" in from) {
    return from.contents.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n");
  }
  // A tool's result that requests input has none.
  const content = "content" in from ? [from.content].flat() : [];
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.join("role" in from ? "" : "\n");
}

/** Members of content blocks that must be strings, and further members, by type. */
const BLOCKS: ReadonlyMap<unknown, { readonly strings: readonly string[]; readonly others: readonly string[] }> =
  new Map(
    Object.entries({
      text: { strings: ["text"], others: [] },
      image: { strings: ["data", "mimeType"], others: [] },
      audio: { strings: ["data", "mimeType"], others: [] },
      resource_link: {
        strings: ["uri", "name"],
        others: ["title", "description", "mimeType", "size", "icons"],
      },
      resource: { strings: [], others: ["resource"] },
    }),
  );
const BLOCK_MEMBERS = ["type", "annotations", "_meta"];

/**
 * Whether a value is a content block: it has the members of its type, and no others. Data of a program may have a `type`
 * too.
 */
export function isBlock(value: unknown): value is ContentBlock {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const members = value as Record<string, unknown>;
  const block = BLOCKS.get(members["type"]);
  if (block?.strings.every((name) => typeof members[name] === "string") !== true) {
    return false;
  }
  const { strings, others } = block;
  return (
    hasOnly(members, BLOCK_MEMBERS, strings, others) &&
    (members["type"] !== "resource" || isEmbeddable(members["resource"]))
  );
}

function isEmbeddable(resource: unknown): boolean {
  return isContents(resource) && typeof resource.uri === "string";
}

/** Whether an object has no other members than these. */
export function hasOnly(value: object, ...names: readonly (readonly string[])[]): boolean {
  return Object.keys(value).every((name) => names.some((list) => list.includes(name)));
}

/** Converts a string, a block or an array of these to content blocks; `undefined` for any other value. */
export function blocksOf(value: unknown): ContentBlock[] | undefined {
  if (value === undefined || value === null) {
    return [];
  }
  if (typeof value === "string") {
    return [text(value)];
  }
  if (Array.isArray(value)) {
    const blocks: ContentBlock[] = [];
    for (const item of value as unknown[]) {
      const block = typeof item === "string" ? text(item) : item;
      if (!isBlock(block)) {
        return undefined;
      }
      blocks.push(block);
    }
    return blocks;
  }
  return isBlock(value) ? [value] : undefined;
}

/**
 * Converts what a tool returns to content blocks: data is JSON text. An array with media in it has a block for each item.
 *
 * @throws UsageError if the value has no JSON representation.
 */
export function contentBlocksOf(value: unknown): ContentBlock[] {
  return blocksOf(value) ?? (hasMedia(value) ? mixedBlocks(value) : [text(jsonOf(value))]);
}

/** Whether a value is an array with a block in it that is not text. Data of programs may look like a text block. */
function hasMedia(value: unknown): value is unknown[] {
  return (
    Array.isArray(value) && value.some((item: unknown) => hasMedia(item) || (isBlock(item) && item.type !== "text"))
  );
}

function mixedBlocks(items: readonly unknown[]): ContentBlock[] {
  return items.flatMap((item) =>
    Array.isArray(item) && !hasMedia(item) ? [text(jsonOf(item))] : contentBlocksOf(item),
  );
}

/** Converts text, bytes or, as JSON, any other value to the contents of a resource. */
export function contentsOf(value: unknown, uri: string, mimeType: string | undefined): ResourceContents {
  if (typeof value === "string") {
    return { uri, mimeType: mimeType ?? "text/plain", text: value };
  }
  if (value instanceof Uint8Array) {
    return { uri, mimeType: mimeType ?? "application/octet-stream", blob: base64(value) };
  }
  if (isContents(value) && isMarked(value)) {
    return completed(value, uri, mimeType);
  }
  return { uri, mimeType: mimeType ?? "application/json", text: jsonOf(value) };
}

/** Fills in the missing members of contents. */
export function completed(value: PartialContents, uri: string, mimeType: string | undefined): ResourceContents {
  const given = value.mimeType ?? mimeType;
  const blob = value.blob;
  return {
    ...value,
    uri: value.uri ?? uri,
    ...(given === undefined ? {} : { mimeType: given }),
    ...(blob === undefined ? {} : { blob: base64(blob) }),
  } as ResourceContents;
}

/**
 * Contents of a resource, as a handler may return them. Missing members are filled in.
 *
 * An object with text alone is data, and is written as JSON: set `uri` or `mimeType` as well.
 */
export interface PartialContents {
  /** URI. Default: that of the resource. */
  uri?: string;
  /** Media type. Default: that of the resource. */
  mimeType?: string;
  /** Contents as text. */
  text?: string;
  /** Contents as bytes, or in base64. */
  blob?: string | Uint8Array;
  _meta?: Meta;
}

const CONTENTS_MEMBERS = ["uri", "mimeType", "text", "blob", "_meta"];

/** Whether a value can be contents of a resource, possibly with missing members. */
export function isContents(value: unknown): value is PartialContents {
  if (typeof value !== "object" || value === null || !hasOnly(value, CONTENTS_MEMBERS)) {
    return false;
  }
  const { text, blob } = value as PartialContents;
  return typeof text === "string" || typeof blob === "string" || blob instanceof Uint8Array;
}

/** Whether contents have a member that tells them from data with a text. */
export function isMarked({ uri, mimeType, blob }: PartialContents): boolean {
  return typeof uri === "string" || typeof mimeType === "string" || blob instanceof Uint8Array;
}

/**
 * Encodes a value as JSON.
 *
 * @throws UsageError if the value has no JSON representation.
 */
export function jsonOf(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) {
    throw new UsageError(`a value of type ${typeof value} cannot be written as JSON`);
  }
  return json;
}
