// Features of `--more 1`, which most tests do not need.
import { InputRequired, elicitForm, resourceLink, text } from "mcpline";

import { GET_WEATHER, blocks, said, user } from "./input_requests.mjs";
import { PNG, WAV, object, string } from "./fixtures.mjs";
import { accepted } from "./returned_input_requests.mjs";

const SECRET = "secret-detail-7c1f";
const ICONS = [{ src: "https://example.com/icon.png", mimeType: "image/png", sizes: ["48x48"] }];

/** Returns the result of a use of `get_weather`, with the metadata of the use. */
function weatherResult({ id, input, _meta }) {
  const result = { type: "tool_result", toolUseId: id, content: [text(`${input.city} is sunny`)] };
  return _meta === undefined ? result : { ...result, _meta };
}

function addTools(server) {
  server.tool(
    "test_sampling_with_media",
    { description: "Asks the client's model with an image and a recording" },
    async (_, ctx) => {
      const answer = await ctx.sample(
        {
          messages: [
            { role: "user", content: { type: "image", data: PNG, mimeType: "image/png" } },
            { role: "user", content: { type: "audio", data: WAV, mimeType: "audio/wav" } },
          ],
          maxTokens: 100,
        },
        { key: "sample" },
      );
      const [block] = blocks(answer);
      return `${block.type} ${block.text ?? block.data}, stopped by ${answer.stopReason ?? "none"}`;
    },
  );

  server.tool(
    "test_sampling_in_rounds",
    { description: "Asks the client's model until it uses no tool" },
    async (_, ctx) => {
      const messages = [user("What is the weather in Oslo and Rome?")];
      for (let round = 1; ; round += 1) {
        const answer = await ctx.sample(
          { messages, maxTokens: 100, tools: [GET_WEATHER], toolChoice: { mode: "auto" } },
          { key: `sample${round}` },
        );
        const content = blocks(answer);
        const uses = content.filter((block) => block.type === "tool_use");
        if (uses.length === 0) {
          return `LLM response: ${said(answer)}`;
        }
        messages.push({ role: "assistant", content }, { role: "user", content: uses.map(weatherResult) });
      }
    },
  );
}

function addPrompts(server) {
  server.prompt(
    "test_described_prompt",
    {
      title: "Described prompt",
      description: "A prompt with everything a definition can have",
      icons: ICONS,
      arguments: {
        many: {
          description: "Has many candidates",
          required: false,
          complete: () => Array.from({ length: 150 }, (_, index) => `c${index + 1}`),
        },
        broken: {
          description: "Fails to complete",
          required: false,
          complete: () => {
            throw new TypeError(SECRET);
          },
        },
      },
    },
    () => [
      { role: "user", content: text("described", { annotations: { audience: ["assistant"], priority: 0.5 } }) },
      {
        role: "user",
        content: resourceLink({
          uri: "test://static-text",
          name: "static-text",
          description: "A link to the static text",
          mimeType: "text/plain",
        }),
      },
    ],
  );

  server.prompt("test_failing_prompt", { description: "Fails unexpectedly" }, () => {
    throw new TypeError(SECRET);
  });
}

function addResources(server) {
  server.resource(
    "test://described-resource",
    {
      name: "described-resource",
      title: "Described resource",
      description: "A text with its size and an icon",
      mimeType: "text/plain",
      size: 9,
      icons: ICONS,
    },
    () => "described",
  );

  server.resource(
    "test://asking-resource",
    { name: "asking-resource", description: "Asks the user in mid-call", mimeType: "text/plain" },
    async (_, ctx) => {
      const answer = await ctx.elicit("Which version?", object({ version: string }), { key: "user" });
      return `Version ${answer.action === "accept" ? answer.content.version : "none"}`;
    },
  );

  server.resource(
    "test://failing-resource",
    { name: "failing-resource", description: "Fails unexpectedly", mimeType: "text/plain" },
    () => {
      throw new TypeError(SECRET);
    },
  );

  server.resource(
    "test://asking/{id}",
    {
      name: "asking-template",
      title: "Asking template",
      description: "Returns a question to the user",
      mimeType: "text/plain",
      icons: ICONS,
    },
    ({ id }, ctx) => {
      const reason = accepted(ctx, "user", "reason");
      return reason === undefined
        ? new InputRequired({ user: elicitForm(`Why ${id}?`, object({ reason: string })) })
        : `${id}: ${reason}`;
    },
  );
}

export function addMore(server) {
  addTools(server);
  addPrompts(server);
  addResources(server);
}
