// Tools that return content of every kind.
import { audio, embedded, image, resourceLink, text } from "mcpline";

import { PNG, WAV, object, string } from "./fixtures.mjs";

export function addContentTools(server) {
  server.tool(
    "test_simple_text",
    { description: "Returns a simple text" },
    () => "This is a simple text response for testing.",
  );

  server.tool("test_image_content", { description: "Returns an image" }, () => image(PNG, "image/png"));

  server.tool("test_audio_content", { description: "Returns a recording" }, () => audio(WAV, "audio/wav"));

  server.tool("test_embedded_resource", { description: "Returns a resource, sent along" }, () =>
    embedded("test://embedded-resource", "This is an embedded resource content."),
  );

  server.tool("test_resource_link", { description: "Returns a link to a resource" }, () =>
    resourceLink({
      uri: "test://static-text",
      name: "static-text",
      mimeType: "text/plain",
      description: "A link to the static text",
    }),
  );

  server.tool("test_multiple_content_types", { description: "Returns text, an image and a resource" }, () => [
    text("Multiple content types test:"),
    image(PNG, "image/png"),
    embedded("test://mixed-content-resource", JSON.stringify({ test: "data", value: 123 }), {
      mimeType: "application/json",
    }),
  ]);

  server.tool(
    "test_structured_content",
    {
      description: "Returns structured content",
      output: object({ temperature: { type: "number" }, conditions: string, humidity: { type: "integer" } }),
    },
    async () => ({ temperature: 22.5, conditions: "Partly cloudy", humidity: 65 }),
  );

  server.tool(
    "test_structured_list",
    {
      description: "Returns structured content that is no object",
      output: { type: "array", items: { type: "integer" } },
    },
    () => [1, 2, 3],
  );

  server.tool(
    "test_annotated_tool",
    {
      title: "Annotated tool",
      description: "Has everything that a tool can say of itself",
      annotations: {
        title: "Annotated tool",
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false,
      },
      icons: [{ src: "https://example.com/icon.png", mimeType: "image/png", sizes: ["48x48"] }],
      meta: { "example.com/fixture": "annotated" },
    },
    () => ({
      content: [text("annotated", { annotations: { audience: ["user"], priority: 0.5 } })],
      _meta: { "example.com/answer": 42 },
    }),
  );

  server.tool(
    "test_echo",
    { description: "Returns the text unchanged", input: object({ text: string }) },
    async ({ text }) => text,
  );

  server.tool(
    "test_large_result",
    { description: "Returns a long text", input: object({ size: { type: "integer" } }) },
    ({ size }) => "x".repeat(size),
  );

  server.tool(
    "test_add_numbers",
    { description: "Adds two numbers", input: object({ a: { type: "number" }, b: { type: "number" } }) },
    ({ a, b }) => String(a + b),
  );
}
