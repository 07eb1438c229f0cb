// Return values and errors of handlers, as clients receive them.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  audio,
  embedded,
  image,
  InputRequired,
  elicitForm,
  resourceLink,
  result as toolResult,
  RpcError,
  Server,
  text,
  ToolError,
} from "mcpline";

import { called, messageOf, posted } from "./peer.mjs";

const server = new Server({ name: "results", version: "1" });
/** The name of the tool of a case: names of tools have no spaces. */
const toolName = (name) => name.replaceAll(" ", "_");
const returning = (name, value, options = {}) => server.tool(toolName(name), options, () => value);
const result = async (name, args, options) => {
  const { content, structuredContent, isError, _meta } = await called(server.fetch, toolName(name), args, options);
  const { "io.modelcontextprotocol/serverInfo": _, ...meta } = _meta;
  return Object.fromEntries(
    Object.entries({ content, structuredContent, isError, meta }).filter(
      ([name, value]) => value !== undefined && (name !== "meta" || Object.keys(meta).length > 0),
    ),
  );
};
const ask = async (method, params, options) =>
  messageOf(await server.fetch(new Request("http://localhost/mcp", posted(method, params, options))));

const said = (text) => ({ type: "text", text });

test("text, content and nothing become content", async () => {
  returning("text", "hello");
  returning("block", text("a block"));
  returning("several", ["one", said("two")]);
  returning("nothing", undefined);
  returning("null", null);
  returning("number", 4.5);
  returning("object", { answer: 42 });
  assert.deepEqual(await result("text"), { content: [said("hello")] });
  assert.deepEqual(await result("block"), { content: [said("a block")] });
  assert.deepEqual(await result("several"), { content: [said("one"), said("two")] });
  assert.deepEqual(await result("nothing"), { content: [] });
  assert.deepEqual(await result("null"), { content: [] });
  assert.deepEqual(await result("number"), { content: [said("4.5")] });
  assert.deepEqual(await result("object"), { content: [said('{"answer":42}')] });
});

/** Data of programs that has members of results, blocks or contents. */
const DATA = {
  "a content of strings": { title: "News", content: ["first", "second"] },
  "a content of strings alone": { content: ["first", "second"] },
  "a content of blocks, and more": { title: "News", content: [said("first")] },
  "an empty content": { content: [] },
  "isError alone": { isError: true },
  "structured content, and more": { structuredContent: { a: 1 }, id: 7 },
  "a type of blocks": { type: "image", url: "https://example.com/a.png" },
  "a block, and more": { ...said("first"), author: "Ada" },
  "contents of a resource": { type: "resource", resource: { id: 5 } },
  "an array of such": [{ type: "text", text: "a", author: "Ada" }, said("b")],
};

for (const [form, value] of Object.entries(DATA)) {
  test(`data is not taken for a result: ${form}`, async () => {
    returning("data", value);
    assert.deepEqual(await result("data"), { content: [said(JSON.stringify(value))] });
    server.removeTool("data");
  });
}

const PICTURE = image(new Uint8Array([1, 2, 3]), "image/png");
/** Arrays of tools, and the content that they become. */
const ARRAYS = {
  "a text, data and an image": [
    ["a", { b: 1 }, PICTURE],
    [said("a"), said('{"b":1}'), PICTURE],
  ],
  "data of every form, and a link": [
    [1, null, [2, "b"], undefined, true, resourceLink({ uri: "test://x", name: "x" })],
    [said("1"), said('[2,"b"]'), said("true"), { type: "resource_link", uri: "test://x", name: "x" }],
  ],
  "an array with an image, and data": [
    [["a", PICTURE], { b: 1 }],
    [said("a"), PICTURE, said('{"b":1}')],
  ],
  texts: [
    ["a", "b"],
    [said("a"), said("b")],
  ],
  "texts and data": [["a", { b: 1 }], [said('["a",{"b":1}]')]],
};

for (const [form, [value, content]] of Object.entries(ARRAYS)) {
  test(`an array is content if it has media, or nothing but texts: ${form}`, async () => {
    returning("array", value);
    returning("complete", toolResult({ content: value }));
    assert.deepEqual(await result("array"), { content });
    assert.deepEqual(await result("complete"), { content });
    server.removeTool("array");
    server.removeTool("complete");
  });
}

const ARTICLE = { type: "object", properties: { title: { type: "string" }, content: { type: "array" } } };
const ARTICLES = {
  "with strings": { title: "News", content: ["first"] },
  "with blocks": { content: [said("first")] },
  "without any": { content: [] },
};

for (const [form, value] of Object.entries(ARTICLES)) {
  test(`with an output schema, data with a content is structured content: ${form}`, async () => {
    returning("article", value, { output: ARTICLE });
    const expected = { content: [said(JSON.stringify(value))], structuredContent: value };
    assert.deepEqual(await result("article"), expected);
    server.removeTool("article");
  });
}

test("a complete result is recognised by the function that creates it, or by all of its members", async () => {
  const meta = { "example.com/a": 1 };
  const image = { type: "image", data: "AQID", mimeType: "image/png" };
  returning("created", toolResult({ content: ["one", image], _meta: meta }));
  returning("created failure", toolResult({ content: "no", isError: true }));
  returning("created empty", toolResult({ content: [] }));
  returning("written", { content: [said("one"), image], _meta: meta });
  returning("written failure", { content: [said("no")], isError: true });
  returning("written with data", { content: [], structuredContent: { a: 1 } });
  assert.deepEqual(await result("created"), { content: [said("one"), image], meta });
  assert.deepEqual(await result("created failure"), { content: [said("no")], isError: true });
  assert.deepEqual(await result("created empty"), { content: [] });
  assert.deepEqual(await result("written"), { content: [said("one"), image], meta });
  assert.deepEqual(await result("written failure"), { content: [said("no")], isError: true });
  assert.deepEqual(await result("written with data"), { content: [said('{"a":1}')], structuredContent: { a: 1 } });
});

test("with an output schema, a complete result has structured content, or is a failure", async () => {
  const output = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };
  returning("sum", toolResult({ content: "three", structuredContent: { sum: 3 } }), { output });
  returning("no sum", toolResult({ content: "cannot add", isError: true }), { output });
  returning("written no sum", { content: [said("cannot add")], isError: true }, { output });
  assert.deepEqual(await result("sum"), { content: [said("three")], structuredContent: { sum: 3 } });
  assert.deepEqual(await result("no sum"), { content: [said("cannot add")], isError: true });
  assert.deepEqual(await result("written no sum"), { content: [said("cannot add")], isError: true });
});

test("bytes are written as base64", async () => {
  const bytes = new Uint8Array([1, 2, 3]);
  returning("image", image(bytes, "image/png"));
  returning("audio", audio("AQID", "audio/wav"));
  returning("embedded", embedded("test://x", bytes));
  returning("link", resourceLink({ uri: "test://x", name: "x" }));
  assert.deepEqual(await result("image"), { content: [{ type: "image", data: "AQID", mimeType: "image/png" }] });
  assert.deepEqual(await result("audio"), { content: [{ type: "audio", data: "AQID", mimeType: "audio/wav" }] });
  const resource = { uri: "test://x", mimeType: "application/octet-stream", blob: "AQID" };
  assert.deepEqual(await result("embedded"), { content: [{ type: "resource", resource }] });
  assert.deepEqual(await result("link"), { content: [{ type: "resource_link", uri: "test://x", name: "x" }] });
});

test("with an output schema the value is the structured content, and text for those who read only that", async () => {
  const output = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };
  returning("structured", { sum: 3 }, { output });
  returning("list", [1, 2], { output: { type: "array" } });
  returning("explicit", { content: [said("three")], structuredContent: { sum: 3 } }, { output });
  assert.deepEqual(await result("structured"), { content: [said('{"sum":3}')], structuredContent: { sum: 3 } });
  assert.deepEqual(await result("list"), { content: [said("[1,2]")], structuredContent: [1, 2] });
  assert.deepEqual(await result("explicit"), { content: [said("three")], structuredContent: { sum: 3 } });
});

test("a complete result is sent unchanged", async () => {
  returning("whole", { content: [said("no")], isError: true, _meta: { "example.com/a": 1 } });
  assert.deepEqual(await result("whole"), { content: [said("no")], isError: true, meta: { "example.com/a": 1 } });
});

test("every character survives, and lone surrogates are replaced wherever they stand", async () => {
  server.tool("echo", { input: { type: "object" } }, ({ text }) => text);
  server.tool("wrap", { input: { type: "object" }, output: { type: "object" } }, (args) => args);
  const wild = 'é漢字🎉"\\\u0000\u2028 \\ud83d';
  assert.deepEqual(await result("echo", { text: wild }), { content: [said(wild)] });
  assert.deepEqual((await result("wrap", { text: wild })).structuredContent, { text: wild });
  returning("lone", "a\ud800b");
  returning("lone object", { text: "a\udfffb", path: "C:\\ud800" }, { output: { type: "object" } });
  assert.deepEqual(await result("lone"), { content: [said("a\ufffdb")] });
  assert.deepEqual((await result("lone object")).structuredContent, { text: "a\ufffdb", path: "C:\\ud800" });
});

test("large results arrive whole", async () => {
  server.tool("large", { input: { type: "object" } }, ({ size, unit }) => unit.repeat(size));
  for (const unit of ["x", "é", "🎉"]) {
    for (const size of [4_090, 4_095, 4_096, 300_000]) {
      const { content } = await result("large", { size, unit });
      assert.equal(content[0].text, unit.repeat(size));
    }
  }
});

test("a ToolError is for the model, an RpcError for the client, and nothing else is shown", async () => {
  const throwing = (name, error) =>
    server.tool(toolName(name), {}, () => {
      throw error;
    });
  throwing("tool error", new ToolError("try a city"));
  throwing("rpc error", new RpcError(-31050, "no such thing", { why: "test" }));
  throwing("secret", new Error("the password is 1234"));
  throwing("not an error", "the password is 1234");
  server.tool("later", {}, async () => Promise.reject(new ToolError("later")));
  server.tool("unsayable", { output: { type: "object" } }, () => ({ big: 1n }));
  assert.deepEqual(await result("tool error"), { content: [said("try a city")], isError: true });
  assert.deepEqual(await result("later"), { content: [said("later")], isError: true });
  await assert.rejects(result("rpc error"), { code: -31050, message: "no such thing", data: { why: "test" } });
  const warned = [];
  const onWarning = (warning) => warned.push(warning);
  process.on("warning", onWarning);
  for (const name of ["secret", "not an error", "unsayable"]) {
    assert.deepEqual(await result(name), { content: [said(`Error executing tool ${toolName(name)}`)], isError: true });
  }
  await new Promise(setImmediate);
  process.off("warning", onWarning);
  assert.equal(warned.filter(({ message }) => message.includes("the password is 1234")).length, 2);
});

test("resources are text, bytes, JSON, contents or a complete result", async () => {
  const contents = async (value, options = {}) => {
    server.removeResource("test://r");
    server.resource("test://r", { name: "r", ...options }, () => value);
    const answer = await ask("resources/read", { uri: "test://r" });
    return answer.result.contents;
  };
  const uri = "test://r";
  assert.deepEqual(await contents("text"), [{ uri, mimeType: "text/plain", text: "text" }]);
  assert.deepEqual(await contents("# x", { mimeType: "text/markdown" }), [
    { uri, mimeType: "text/markdown", text: "# x" },
  ]);
  const blob = new Uint8Array([1, 2, 3]);
  assert.deepEqual(await contents(blob), [{ uri, mimeType: "application/octet-stream", blob: "AQID" }]);
  assert.deepEqual(await contents({ a: 1 }), [{ uri, mimeType: "application/json", text: '{"a":1}' }]);
  const data = [
    { text: "a" },
    { text: "a", author: "Ada", uri: "test://c" },
    { contents: [{ text: "a" }] },
    { contents: [] },
  ];
  for (const value of [...data, [{ text: "a" }]]) {
    const text = JSON.stringify(value);
    assert.deepEqual(await contents(value), [{ uri, mimeType: "application/json", text }]);
  }
  assert.deepEqual(await contents([{ text: "a" }, { uri: "test://b", blob }]), [
    { uri, text: "a" },
    { uri: "test://b", blob: "AQID" },
  ]);
  assert.deepEqual(await contents({ contents: [{ uri, text: "a" }] }), [{ uri, text: "a" }]);
});

test("a template's handler receives its variables, and completes them", async () => {
  const complete = { city: ["Oslo", "Osaka", "Rome"], day: (value) => [`${value}1`, `${value}2`] };
  server.resource("weather://{city}/{day}", { name: "w", complete }, ({ city, day }) => `${city} on ${day}`);
  const answer = await ask("resources/read", { uri: "weather://Oslo/monday" });
  assert.deepEqual(answer.result.contents, [
    { uri: "weather://Oslo/monday", mimeType: "text/plain", text: "Oslo on monday" },
  ]);
  const values = async (name, value) => {
    const ref = { type: "ref/resource", uri: "weather://{city}/{day}" };
    return (await ask("completion/complete", { ref, argument: { name, value } })).result.completion.values;
  };
  assert.deepEqual(await values("city", "Os"), ["Oslo", "Osaka"]);
  assert.deepEqual(await values("day", "m"), ["m1", "m2"]);
});

test("an unsafe path in a variable is refused, unless it is excepted", async () => {
  server.resource("path://{name}", { name: "p" }, ({ name }) => name);
  server.resource("any://{name}", { name: "a", uncheckedVariables: ["name"] }, ({ name }) => name);
  for (const name of ["..%2Fx", "%2Fetc", "a%00"]) {
    const { error } = await ask("resources/read", { uri: `path://${name}` });
    assert.equal(error.code, -32602);
    assert.match(error.message, /the variable `name` must not/);
    const { result } = await ask("resources/read", { uri: `any://${name}` });
    assert.equal(result.contents[0].text, decodeURIComponent(name));
  }
  const invalid = [
    [["naem"], /`uncheckedVariables` names no variable of the template: `naem`; it has name$/],
    ["name", /`uncheckedVariables` must be an array of names of variables, not string$/],
    [null, /`uncheckedVariables` must be an array of names of variables, not null$/],
    [[1], /`uncheckedVariables` must be an array of names of variables; one is number$/],
  ];
  for (const [uncheckedVariables, message] of invalid) {
    assert.throws(() => server.resource("other://{name}", { name: "o", uncheckedVariables }, () => ""), {
      name: "UsageError",
      message,
    });
  }
});

test("prompts are text of the user, messages or a complete result", async () => {
  const messages = async (value) => {
    server.removePrompt("p");
    server.prompt("p", { arguments: { city: { description: "where" }, day: { required: false } } }, (args) =>
      typeof value === "function" ? value(args) : value,
    );
    return (await ask("prompts/get", { name: "p", arguments: { city: "Oslo" } })).result;
  };
  const user = (text) => ({ role: "user", content: said(text) });
  assert.deepEqual((await messages(({ city, day }) => `${city} ${day}`)).messages, [user("Oslo undefined")]);
  assert.deepEqual((await messages(["a", { role: "assistant", content: "b" }])).messages, [
    user("a"),
    { role: "assistant", content: said("b") },
  ]);
  const whole = await messages({ description: "d", messages: [user("c")] });
  assert.deepEqual([whole.description, whole.messages], ["d", [user("c")]]);
});

test("returned input requests are sent, and the handler is called again with the answers", async () => {
  server.tool("greet", {}, (_, ctx) => {
    const answer = ctx.inputResponses?.name;
    return answer === undefined
      ? new InputRequired(
          { name: elicitForm("Who?", { type: "object", properties: { name: { type: "string" } } }) },
          "s",
        )
      : `${ctx.requestState}: ${answer.content.name}`;
  });
  const capabilities = { elicitation: {} };
  const first = await called(server.fetch, "greet", {}, { capabilities });
  assert.equal(first.resultType, "input_required");
  assert.equal(first.inputRequests.name.params.message, "Who?");
  const params = {
    inputResponses: { name: { action: "accept", content: { name: "Ada" } } },
    requestState: first.requestState,
  };
  assert.deepEqual((await called(server.fetch, "greet", {}, { capabilities, params })).content, [said("s: Ada")]);
});
