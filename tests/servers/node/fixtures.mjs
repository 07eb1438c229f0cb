// What several families share: the image, the recording, and short ways to write schemas.

export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
export const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/** Of a property: any text. */
export const string = { type: "string" };

/** An object that must have these properties. */
export function object(properties) {
  return { type: "object", properties, required: Object.keys(properties) };
}

/** An object that may have these properties. */
export function optional(properties) {
  return { type: "object", properties };
}
