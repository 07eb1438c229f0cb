// Prompts, and the completion of their arguments.
import { InputRequired, elicitForm, embedded, image, text } from "mcpline";

import { PNG, object, string } from "./fixtures.mjs";
import { accepted } from "./returned_input_requests.mjs";

export function addPrompts(server) {
  server.prompt(
    "test_simple_prompt",
    { description: "A prompt without arguments" },
    () => "This is a simple prompt for testing.",
  );

  server.prompt(
    "test_prompt_with_arguments",
    {
      description: "A prompt with arguments",
      arguments: {
        arg1: { description: "First test argument", complete: ["test alpha", "test beta", "paris"] },
        arg2: { description: "Second test argument" },
      },
    },
    ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  );

  // For arguments without a completer of their own: `arg2`, which depends on `arg1`.
  server.completion(({ ref, argument, context }) => {
    const first = context?.arguments?.arg1;
    if (ref.name !== "test_prompt_with_arguments" || argument.name !== "arg2" || first === undefined) {
      return [];
    }
    return [`${first} one`, `${first} two`].filter((candidate) => candidate.startsWith(argument.value));
  });

  server.prompt(
    "test_prompt_with_embedded_resource",
    {
      description: "A prompt that embeds a resource",
      arguments: { resourceUri: { description: "URI of the resource to embed" } },
    },
    ({ resourceUri }) => [
      {
        role: "user",
        content: embedded(resourceUri, "Embedded resource content for testing.", { mimeType: "text/plain" }),
      },
      { role: "user", content: text("Please process the embedded resource above.") },
    ],
  );

  server.prompt("test_prompt_with_image", { description: "A prompt with an image" }, () => [
    { role: "user", content: image(PNG, "image/png") },
    { role: "user", content: "Please analyze the image above." },
  ]);

  server.prompt("test_prompt_conversation", { description: "A prompt with messages of both sides" }, () => [
    { role: "user", content: "What is 2 + 2?" },
    { role: "assistant", content: "4" },
  ]);

  server.prompt("test_input_required_result_prompt", { description: "A prompt that returns a question" }, (_, ctx) => {
    const context = accepted(ctx, "user_context", "context");
    if (context === undefined) {
      const elicitation = elicitForm("What context should the prompt use?", object({ context: string }));
      return new InputRequired({ user_context: elicitation });
    }
    return `Use this context: ${context}`;
  });
}
