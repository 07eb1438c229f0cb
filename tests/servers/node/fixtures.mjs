// Shared by several families: the image, the audio, and short functions to write schemas.

export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
export const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/** A property with any text. */
export const string = { type: "string" };

/** An object with these required properties. */
export function object(properties) {
  return { type: "object", properties, required: Object.keys(properties) };
}

/** An object with these optional properties. */
export function optional(properties) {
  return { type: "object", properties };
}
