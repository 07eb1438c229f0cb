// Resources, the template, and the completion of its variable.
import { Buffer } from "node:buffer";

import { PNG } from "./fixtures.mjs";

const IDS = ["1", "12", "123", "2"];

/** The resource that `test_update_resource` changes. */
export const watched = { uri: "test://watched-resource", version: 1 };

export function addResources(server) {
  server.resource(
    "test://static-text",
    {
      name: "static-text",
      title: "Static text",
      description: "A text that never changes",
      mimeType: "text/plain",
    },
    () => "This is the content of the static text resource.",
  );

  server.resource(
    "test://static-binary",
    { name: "static-binary", description: "An image", mimeType: "image/png" },
    async () => Buffer.from(PNG, "base64"),
  );

  server.resource(
    watched.uri,
    { name: "watched-resource", description: "A text that changes", mimeType: "text/plain" },
    () => `Watched resource, version ${watched.version}`,
  );

  server.resource(
    "test://template/{id}/data",
    {
      name: "template-data",
      description: "Data for any id",
      mimeType: "application/json",
      complete: { id: (value) => IDS.filter((id) => id.startsWith(value)) },
    },
    ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  );
}
