// Tools that send input requests from within the handler.
import { object, optional, string } from "./fixtures.mjs";

/** The tool that the model may use. */
export const GET_WEATHER = {
  name: "get_weather",
  description: "Weather of a city",
  inputSchema: object({ city: string }),
};

const DEFAULTS = optional({
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
});

function titled(choices) {
  return Object.entries(choices).map(([value, title]) => ({ const: value, title }));
}

const OPTIONS = ["option1", "option2", "option3"];
const ENUMS = optional({
  untitledSingle: { type: "string", enum: OPTIONS },
  titledSingle: {
    type: "string",
    oneOf: titled({ value1: "First Option", value2: "Second Option", value3: "Third Option" }),
  },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: { type: "array", items: { type: "string", enum: OPTIONS } },
  titledMulti: {
    type: "array",
    items: { anyOf: titled({ value1: "First Choice", value2: "Second Choice", value3: "Third Choice" }) },
  },
});

/** Returns a user message for the model. */
export function user(text) {
  return { role: "user", content: { type: "text", text } };
}

/** Returns the blocks of a model's answer, which are a single block or an array. */
export function blocks(answer) {
  return [answer.content].flat();
}

/** Returns the text of a model's answer. */
export function said(answer) {
  return blocks(answer)
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("");
}

function shown(answer) {
  return `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
}

export function addInputRequestTools(server) {
  server.tool(
    "test_sampling",
    { description: "Asks the client's model", input: object({ prompt: string }) },
    async ({ prompt }, ctx) => {
      const answer = await ctx.sample({ messages: [user(prompt)], maxTokens: 100 }, { key: "sample" });
      return `LLM response: ${said(answer)}`;
    },
  );

  server.tool(
    "test_sampling_with_tools",
    { description: "Asks the client's model, which may use a tool" },
    async (_, ctx) => {
      const answer = await ctx.sample(
        {
          messages: [user("What is the weather in Oslo?")],
          maxTokens: 100,
          tools: [GET_WEATHER],
          toolChoice: { mode: "auto" },
        },
        { key: "sample" },
      );
      const use = blocks(answer).find((block) => block.type === "tool_use");
      return use === undefined ? `text ${said(answer)}` : `tool_use ${use.name} ${JSON.stringify(use.input)}`;
    },
  );

  server.tool(
    "test_elicitation",
    { description: "Asks the user for a name and an address", input: object({ message: string }) },
    async ({ message }, ctx) => {
      const answer = await ctx.elicit(message, object({ username: string, email: string }), { key: "user" });
      return `User response: ${shown(answer)}`;
    },
  );

  server.tool(
    "test_elicitation_sep1034_defaults",
    { description: "Asks the user with a form that has defaults" },
    async (_, ctx) => {
      const answer = await ctx.elicit("Please provide user information", DEFAULTS, { key: "user" });
      return `Elicitation result: ${shown(answer)}`;
    },
  );

  server.tool(
    "test_elicitation_sep1330_enums",
    { description: "Asks the user with a form that has choices" },
    async (_, ctx) => {
      const answer = await ctx.elicit("Please select options", ENUMS, { key: "user" });
      return `Elicitation completed: ${shown(answer)}`;
    },
  );

  server.tool("test_url_elicitation", { description: "Asks the user to visit a page" }, async (_, ctx) => {
    const answer = await ctx.elicitUrl("Please authorise access", "https://example.com/authorise", {
      elicitationId: "fixture-1",
      key: "user",
    });
    return `URL elicitation: action=${answer.action}`;
  });

  server.tool("test_roots", { description: "Lists the client's root directories" }, async (_, ctx) => {
    const roots = await ctx.listRoots({ key: "roots" });
    return roots.map((root) => root.uri).join("\n") || "none";
  });

  server.onRootsChanged(async (ctx) => {
    const roots = await ctx.listRoots();
    ctx.info(roots.map((root) => root.uri).join("\n") || "none", "roots");
  });

  server.tool("test_two_questions", { description: "Asks the user twice" }, async (_, ctx) => {
    const first = await ctx.elicit("What is your name?", object({ name: string }), { key: "first" });
    if (first.action !== "accept") {
      return "no name";
    }
    const { name } = first.content;
    const second = await ctx.elicit(`How old are you, ${name}?`, object({ age: { type: "integer" } }), {
      key: "second",
    });
    return second.action === "accept" ? `${name} is ${second.content.age}` : "no age";
  });

  server.tool("test_streaming_elicitation", { description: "Asks the user while a stream is open" }, async (_, ctx) => {
    const answer = await ctx.elicit("Streaming elicitation", object({ answer: string }), { key: "user" });
    return `Streaming elicitation: action=${answer.action}`;
  });
}
