/** Builders of content blocks, and the conversions of whatever may be content. */

import { UsageError } from "./errors.js";
import type {
  Annotations,
  AudioContent,
  ContentBlock,
  EmbeddedResource,
  ImageContent,
  Meta,
  ResourceContents,
  ResourceLink,
  TextContent,
} from "./protocol.js";

/** What every piece of content may have. */
export interface ContentOptions {
  annotations?: Annotations;
  _meta?: Meta;
}

/** Text, as content. */
export function text(text: string, options?: ContentOptions): TextContent {
  return { type: "text", text, ...options };
}

/** A picture, as content: bytes, or base64. */
export function image(data: Uint8Array | string, mimeType: string, options?: ContentOptions): ImageContent {
  return { type: "image", data: base64(data), mimeType, ...options };
}

/** Sound, as content: bytes, or base64. */
export function audio(data: Uint8Array | string, mimeType: string, options?: ContentOptions): AudioContent {
  return { type: "audio", data: base64(data), mimeType, ...options };
}

/** A reference to a resource, as content. */
export function resourceLink(link: Omit<ResourceLink, "type">): ResourceLink {
  return { type: "resource_link", ...link };
}

/** A resource's contents, as content: text, bytes, or what is on the wire. */
export function embedded(
  uri: string,
  contents: string | Uint8Array,
  options?: ContentOptions & { mimeType?: string },
): EmbeddedResource {
  const { mimeType, ...rest } = options ?? {};
  return { type: "resource", resource: contentsOf(contents, uri, mimeType), ...rest };
}

/** Base64 of bytes; what is a string is taken to be base64 already. */
export function base64(data: Uint8Array | string): string {
  if (typeof data === "string") {
    return data;
  }
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

const BLOCKS = new Set(["text", "image", "audio", "resource_link", "resource"]);

/** Whether a value is a content block. */
export function isBlock(value: unknown): value is ContentBlock {
  return typeof value === "object" && value !== null && "type" in value && BLOCKS.has(value.type as string);
}

/** The content blocks of a value: a string, a block or an array of these; `undefined` if it is none. */
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

/** Contents of a resource of text, bytes, or anything that JSON can say. */
export function contentsOf(value: unknown, uri: string, mimeType: string | undefined): ResourceContents {
  if (typeof value === "string") {
    return { uri, mimeType: mimeType ?? "text/plain", text: value };
  }
  if (value instanceof Uint8Array) {
    return { uri, mimeType: mimeType ?? "application/octet-stream", blob: base64(value) };
  }
  if (isContents(value)) {
    const given = value.mimeType ?? mimeType;
    const blob = value.blob;
    return {
      ...value,
      uri: value.uri ?? uri,
      ...(given === undefined ? {} : { mimeType: given }),
      ...(blob === undefined ? {} : { blob: base64(blob) }),
    } as ResourceContents;
  }
  return { uri, mimeType: mimeType ?? "application/json", text: jsonOf(value) };
}

/** Contents of a resource as a handler may return them: what is absent is filled in. */
export interface PartialContents {
  uri?: string;
  mimeType?: string;
  text?: string;
  blob?: string | Uint8Array;
  _meta?: Meta;
}

/** Whether a value is contents of a resource, perhaps without what can be filled in. */
export function isContents(value: unknown): value is PartialContents {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const { text, blob } = value as PartialContents;
  return typeof text === "string" || typeof blob === "string" || blob instanceof Uint8Array;
}

/**
 * A value as JSON.
 *
 * @throws UsageError if JSON can't say it.
 */
export function jsonOf(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) {
    throw new UsageError(`${typeof value} is no value of JSON`);
  }
  return json;
}
