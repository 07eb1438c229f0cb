// Tools that return their input requests and are called again with the answers.
import { InputRequired, elicitForm, listRoots, sample } from "mcpline";

import { said, user } from "./input_requests.mjs";
import { object, string } from "./fixtures.mjs";

const NAME_FORM = elicitForm("What is your name?", object({ name: string }));
const CONFIRM = elicitForm("Please confirm", object({ ok: { type: "boolean" } }));

/** Returns the client's answer to a form, or undefined. */
function answered(ctx, key) {
  const answer = ctx.inputResponses?.[key];
  return typeof answer?.action === "string" ? answer : undefined;
}

/** Returns the user's text for a member of a form, or undefined. */
export function accepted(ctx, key, member) {
  const answer = answered(ctx, key);
  const value = answer?.action === "accept" ? answer.content?.[member] : undefined;
  return typeof value === "string" ? value : undefined;
}

/** Returns the model's answer, or undefined. */
function sampled(ctx, key) {
  const answer = ctx.inputResponses?.[key];
  return answer?.content === undefined || answer.role === undefined ? undefined : answer;
}

/** Returns the client's roots, or undefined. */
function listed(ctx, key) {
  const roots = ctx.inputResponses?.[key]?.roots;
  return Array.isArray(roots) ? roots : undefined;
}

function sampleText(text, maxTokens) {
  return sample({ messages: [user(text)], maxTokens });
}

export function addReturningTools(server) {
  server.tool("test_input_required_result_elicitation", { description: "Returns a question to the user" }, (_, ctx) => {
    const name = accepted(ctx, "user_name", "name");
    return name === undefined ? new InputRequired({ user_name: NAME_FORM }) : `Hello, ${name}!`;
  });

  server.tool(
    "test_input_required_result_sampling",
    { description: "Returns a question to the client's model" },
    (_, ctx) => {
      const answer = sampled(ctx, "capital_question");
      return answer === undefined
        ? new InputRequired({ capital_question: sampleText("What is the capital of France?", 100) })
        : `Model said: ${said(answer)}`;
    },
  );

  server.tool(
    "test_input_required_result_list_roots",
    { description: "Returns the question for root directories" },
    (_, ctx) => {
      const roots = listed(ctx, "client_roots");
      return roots === undefined
        ? new InputRequired({ client_roots: listRoots() })
        : `Client exposed ${roots.length} root(s).`;
    },
  );

  server.tool(
    "test_input_required_result_request_state",
    { description: "Returns a question and a state" },
    (_, ctx) => {
      if (answered(ctx, "confirm") === undefined || ctx.requestState !== "request-state-nonce") {
        return new InputRequired({ confirm: CONFIRM }, "request-state-nonce");
      }
      return "state-ok: confirmation received";
    },
  );

  server.tool(
    "test_input_required_result_multiple_inputs",
    { description: "Returns one question of each kind" },
    (_, ctx) => {
      const answers = [answered(ctx, "user_name"), sampled(ctx, "greeting"), listed(ctx, "client_roots")];
      if (answers.includes(undefined)) {
        return new InputRequired(
          { user_name: NAME_FORM, greeting: sampleText("Generate a greeting", 50), client_roots: listRoots() },
          "multiple-inputs",
        );
      }
      return "All inputs received.";
    },
  );

  server.tool(
    "test_input_required_result_multi_round",
    { description: "Returns questions in two rounds" },
    (_, ctx) => {
      let name;
      if (ctx.requestState?.startsWith("round-2:")) {
        name = ctx.requestState.slice("round-2:".length);
        const color = accepted(ctx, "step2", "color");
        if (color !== undefined) {
          return `${name} likes ${color}.`;
        }
      } else {
        name = accepted(ctx, "step1", "name");
        if (name === undefined) {
          const step1 = elicitForm("Step 1: What is your name?", object({ name: string }));
          return new InputRequired({ step1 }, "round-1");
        }
      }
      const step2 = elicitForm("Step 2: What is your favorite color?", object({ color: string }));
      return new InputRequired({ step2 }, `round-2:${name}`);
    },
  );

  server.tool(
    "test_input_required_result_tampered_state",
    { description: "Returns a state that must come back as it was" },
    (_, ctx) => {
      if (answered(ctx, "confirm") === undefined || ctx.requestState === undefined) {
        return new InputRequired({ confirm: CONFIRM }, "round-1");
      }
      return `state-ok: ${ctx.requestState}`;
    },
  );

  server.tool(
    "test_input_required_result_capabilities",
    { description: "Returns the questions that the client can answer" },
    (_, ctx) => {
      const requests = {};
      if ("sampling" in ctx.clientCapabilities && sampled(ctx, "sample") === undefined) {
        requests.sample = sampleText("Say hello", 50);
      }
      if ("elicitation" in ctx.clientCapabilities && answered(ctx, "ask") === undefined) {
        requests.ask = NAME_FORM;
      }
      if (Object.keys(requests).length > 0) {
        return new InputRequired(requests, "capability-gated");
      }
      return `capabilities respected: ${Object.keys(ctx.inputResponses ?? {})
        .sort()
        .join(",")}`;
    },
  );
}
