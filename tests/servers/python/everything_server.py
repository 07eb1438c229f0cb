"""The everything-server in Python. Its specification is `tests/servers/README.md`."""

from __future__ import annotations

import argparse
import asyncio
import base64
import enum
import itertools
import json
import sys
import threading
from dataclasses import dataclass
from typing import Annotated, Any

from mcpline import (
    Annotations,
    AssistantMessage,
    AudioContent,
    Context,
    ElicitRequest,
    EmbeddedResource,
    ExtendedResult,
    Extension,
    RpcError,
    Header,
    Icon,
    Image,
    ImageContent,
    InputRequired,
    Message,
    ResourceContents,
    ResourceLink,
    RootsRequest,
    SampleRequest,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
    ToolResult,
    ToolResultContent,
    UrlElicitationRequired,
    UserMessage,
)
from mcpline.auth import Caller

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")

parser = argparse.ArgumentParser()
parser.add_argument("--http", type=int, metavar="PORT")
parser.add_argument("--channel", type=int, metavar="N")
parser.add_argument("--sharing", metavar="URL")
SETTINGS = ("page_size", "max_suspended_handlers")
HTTP_OPTIONS = ("max_sessions", "read_timeout", "write_timeout")
# Features that the server has in addition, or exclusively.
PARTS = ("extras", "blocking", "more", "extensions", "declared", "tools_only", "prompts_only")
# Flags that are shorter than the names of their settings.
FLAGS = {"max_suspended_handlers": "--max-suspended-handlers", "max_sessions": "--max-sessions"}
for name in (*SETTINGS, *HTTP_OPTIONS, *PARTS):
    parser.add_argument(FLAGS.get(name, f"--{name.replace('_', '-')}"), dest=name, type=int, metavar="N")
options = parser.parse_args()


def given(names: tuple[str, ...]) -> dict[str, Any]:
    """The options with these names in the command line."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def new_server(**settings: Any) -> Server:
    return Server(
        "mcpline-everything",
        "1.0.0",
        title="mcpline everything server",
        instructions="Fixture server of the mcpline tests.",
        **given((*SETTINGS, "sharing")),
        **settings,
    )


STAMPS = "com.example/stamps"
stamps = Extension(STAMPS, settings={"colors": 3})
receipts = Extension("com.example/receipts", result_types=["acme/receipt"])


@stamps.on_request("acme/issue")
async def acme_issue(color: str, ctx: Context) -> dict[str, Any]:
    return {"stamp": color, "for": ctx.client_extension(STAMPS)}


@stamps.on_notification("acme/used")
async def acme_used(name: str) -> None:
    gates.setdefault(name, asyncio.Event()).set()


@receipts.on_request("acme/redeem")
async def acme_redeem(token: str) -> dict[str, Any] | ExtendedResult:
    if token == "endless":
        return ExtendedResult("acme/receipt", {"token": token})
    return {"content": [{"type": "text", "text": f"redeemed {token}"}]}


server = new_server(extensions=[stamps, receipts] if options.extensions else [])


def compact(value: Any) -> str:
    """JSON without spaces, members in their order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# Tools: content


@server.tool
async def test_simple_text() -> str:
    """Returns a simple text."""
    return "This is a simple text response for testing."


@server.tool
async def test_image_content() -> Image:
    """Returns an image."""
    return Image(PNG)


@server.tool
async def test_audio_content() -> AudioContent:
    """Returns a recording."""
    return AudioContent(WAV, "audio/wav")


@server.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Returns a resource, sent along."""
    return EmbeddedResource(
        ResourceContents(
            "test://embedded-resource", text="This is an embedded resource content.", mime_type="text/plain"
        )
    )


@server.tool
async def test_resource_link() -> ResourceLink:
    """Returns a link to a resource."""
    return ResourceLink(
        "test://static-text", "static-text", description="A link to the static text", mime_type="text/plain"
    )


@server.tool
async def test_multiple_content_types() -> list[Any]:
    """Returns text, an image and a resource."""
    data = compact({"test": "data", "value": 123})
    return [
        "Multiple content types test:",
        ImageContent(PNG, "image/png"),
        ResourceContents("test://mixed-content-resource", text=data, mime_type="application/json"),
    ]


@dataclass
class Weather:
    temperature: float
    conditions: str
    humidity: int


@server.tool
async def test_structured_content() -> Weather:
    """Returns structured content."""
    return Weather(22.5, "Partly cloudy", 65)


@server.tool(structured=True)
async def test_structured_list() -> list[int]:
    """Returns structured content that is no object."""
    return [1, 2, 3]


@server.tool(
    title="Annotated tool",
    annotations=ToolAnnotations(
        title="Annotated tool", read_only=True, destructive=False, idempotent=True, open_world=False
    ),
    icons=[Icon("https://example.com/icon.png", "image/png", ["48x48"])],
    meta={"example.com/fixture": "annotated"},
)
async def test_annotated_tool() -> ToolResult:
    """Has everything that a tool can say of itself."""
    text = TextContent("annotated", annotations=Annotations(audience=["user"], priority=0.5))
    return ToolResult(content=text, meta={"example.com/answer": 42})


@server.tool
async def test_echo(text: str) -> str:
    """Returns the text unchanged."""
    return text


@server.tool
async def test_large_result(size: int) -> str:
    """Returns a long text."""
    return "x" * size


@server.tool
async def test_add_numbers(a: float, b: float) -> str:
    """Adds two numbers."""
    total = a + b
    return str(int(total) if total.is_integer() else total)


JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(input_schema=JSON_SCHEMA)
async def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Has an input schema with keywords of JSON Schema 2020-12."""
    return f"JSON Schema 2020-12 tool called with: {compact(arguments)}"


@server.tool
async def test_custom_header(
    value: Annotated[str | None, Header("Value")] = None,
    count: Annotated[int | None, Header("Count")] = None,
    flag: Annotated[bool | None, Header("Flag")] = None,
) -> str:
    """Has arguments that clients repeat in HTTP headers."""

    def shown(item: object) -> object:
        return "none" if item is None else str(item).lower() if isinstance(item, bool) else item

    return f"value={shown(value)} count={shown(count)} flag={shown(flag)}"


# Tools: failures


@server.tool
async def test_error_handling() -> None:
    """Fails in a way that the model should read."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_exception() -> None:
    """Fails unexpectedly."""
    raise RuntimeError("secret-detail-7c1f")


@server.tool
async def test_protocol_error() -> None:
    """Answers with a JSON-RPC error."""
    raise RpcError(-31050, "deliberate protocol error", {"reason": "fixture"})


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Needs a client that can sample."""
    if "sampling" not in ctx.client_capabilities:
        raise RpcError(-32021, "the client must support sampling", {"requiredCapabilities": {"sampling": {}}})
    return "sampling is available"


@server.tool
def test_stray_output() -> str:
    """Prints to stdout and reads stdin."""
    print("stray output", flush=True)
    return f"read {len(sys.stdin.read())} bytes"


# Tools that report progress, wait and are cancelled


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs while it runs."""
    await ctx.info("Tool execution started")
    await asyncio.sleep(0.05)
    await ctx.info("Tool processing data")
    await asyncio.sleep(0.05)
    await ctx.info("Tool execution completed")
    return "Tool with logging executed successfully"


@server.tool
async def test_log_levels(ctx: Context) -> str:
    """Logs once at each level."""
    for level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"):
        await ctx.log(level, f"message at {level}", logger="fixture")
    return "logged"


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Logs once."""
    await ctx.info("Logging tool called")
    return "logged"


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress."""
    for step in (0, 50, 100):
        await ctx.progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0.05)
    return "progress done"


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Closes its stream and goes on."""
    ctx.close_stream()
    await asyncio.sleep(0.1)
    return "reconnected"


gates: dict[str, asyncio.Event] = {}
cancellations: dict[str, asyncio.Event] = {}


@server.tool
async def test_gate(name: str, ctx: Context) -> str:
    """Waits until a gate is open."""
    await ctx.progress(0, 1, "waiting")
    await gates.setdefault(name, asyncio.Event()).wait()
    return f"gate {name} passed"


@server.tool
async def test_open_gate(name: str) -> str:
    """Opens a gate for good."""
    gates.setdefault(name, asyncio.Event()).set()
    return f"gate {name} opened"


@server.tool
async def test_cancellation(label: str, ctx: Context) -> None:
    """Waits until it is cancelled."""
    await ctx.progress(0, 1, "waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancellations.setdefault(label, asyncio.Event()).set()
        raise


@server.tool
async def test_cancellation_status(label: str) -> str:
    """Waits until another tool was cancelled."""
    await cancellations.setdefault(label, asyncio.Event()).wait()
    return f"{label} was cancelled"


# Tools that send input requests from within the handler


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    answer = await ctx.sample(UserMessage(prompt), max_tokens=100, key="sample")
    return f"LLM response: {answer.text}"


GET_WEATHER = {
    "name": "get_weather",
    "description": "Weather of a city",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@server.tool
async def test_sampling_with_tools(ctx: Context) -> str:
    """Asks the client's model, which may use a tool."""
    answer = await ctx.sample(
        "What is the weather in Oslo?", max_tokens=100, tools=[GET_WEATHER], tool_choice={"mode": "auto"}, key="sample"
    )
    for use in answer.tool_uses:
        return f"tool_use {use.name} {compact(use.input)}"
    return f"text {answer.text}"


def form(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@dataclass
class User:
    username: str
    email: str


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user for a name and an address."""
    string = {"type": "string"}
    schema = {**form(username=string, email=string), "required": ["username", "email"]}
    answer = await ctx.elicit(message, schema, key="user")
    return f"User response: action={answer.action}, content={compact(answer.data if answer.accepted else {})}"


class Status(enum.Enum):
    ACTIVE = "active"
    INACTIVE = "inactive"
    PENDING = "pending"


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks the user with a form that has defaults."""
    schema = form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": [status.value for status in Status], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    answer = await ctx.elicit("Please provide user information", schema, key="user")
    return f"Elicitation result: action={answer.action}, content={compact(answer.data if answer.accepted else {})}"


def titled(**choices: str) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in choices.items()]


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks the user with a form that has choices."""
    schema = form(
        untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
        titledSingle={
            "type": "string",
            "oneOf": titled(value1="First Option", value2="Second Option", value3="Third Option"),
        },
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        titledMulti={
            "type": "array",
            "items": {"anyOf": titled(value1="First Choice", value2="Second Choice", value3="Third Choice")},
        },
    )
    answer = await ctx.elicit("Please select options", schema, key="user")
    return f"Elicitation completed: action={answer.action}, content={compact(answer.data if answer.accepted else {})}"


@server.tool
async def test_url_elicitation(ctx: Context) -> str:
    """Asks the user to visit a page."""
    answer = await ctx.elicit_url(
        "Please authorise access", "https://example.com/authorise", elicitation_id="fixture-1", key="user"
    )
    return f"URL elicitation: action={answer.action}"


@server.tool
async def test_roots(ctx: Context) -> str:
    """Lists the client's root directories."""
    roots = await ctx.list_roots(key="roots")
    return "\n".join(root.uri for root in roots) or "none"


@server.on_roots_changed
async def roots_changed(ctx: Context) -> None:
    roots = await ctx.list_roots()
    ctx.info("\n".join(root.uri for root in roots) or "none", logger="roots")


@dataclass
class Name:
    name: str


@dataclass
class Age:
    age: int


@server.tool
async def test_two_questions(ctx: Context) -> str:
    """Asks the user twice."""
    name = await ctx.elicit("What is your name?", Name, key="first")
    if not name.accepted:
        return "no name"
    age = await ctx.elicit(f"How old are you, {name.data.name}?", Age, key="second")
    if not age.accepted:
        return "no age"
    return f"{name.data.name} is {age.data.age}"


@dataclass
class Answer:
    answer: str


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Asks the user while a stream is open."""
    answer = await ctx.elicit("Streaming elicitation", Answer, key="user")
    return f"Streaming elicitation: action={answer.action}"


visited: set[str] = set()


@server.tool
async def test_url_elicitation_required(id: str, ctx: Context) -> str:
    """Needs a visit first."""
    answer = (ctx.input_responses or {}).get(id)
    if id not in visited and not (answer and answer["action"] == "accept"):
        url = f"https://example.com/authorise?visit={id}"
        raise UrlElicitationRequired(ElicitRequest("Please authorise access", url=url, elicitation_id=id))
    return f"authorised {id}"


@server.tool
async def test_complete_url_elicitation(id: str) -> str:
    """Completes a visit."""
    visited.add(id)
    server.notify_elicitation_complete(id)
    return f"completed {id}"


# Tools that return their input requests


@dataclass
class Confirmation:
    ok: bool


@dataclass
class Color:
    color: str


NAME_FORM = ElicitRequest("What is your name?", Name)
CONFIRM = ElicitRequest("Please confirm", Confirmation)


@server.tool
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequired:
    """Returns a question to the user."""
    answer = ctx.elicited("user_name", Name)
    if answer is None or not answer.accepted:
        return InputRequired({"user_name": NAME_FORM})
    return f"Hello, {answer.data.name}!"


@server.tool
async def test_input_required_result_sampling(ctx: Context) -> str | InputRequired:
    """Returns a question to the client's model."""
    answer = ctx.sampled("capital_question")
    if answer is None:
        request = SampleRequest(messages="What is the capital of France?", max_tokens=100)
        return InputRequired({"capital_question": request})
    return f"Model said: {answer.text}"


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequired:
    """Returns the question for root directories."""
    roots = ctx.listed_roots("client_roots")
    if roots is None:
        return InputRequired({"client_roots": RootsRequest()})
    return f"Client exposed {len(roots)} root(s)."


@server.tool
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequired:
    """Returns a question and a state."""
    answer = ctx.elicited("confirm", Confirmation)
    if answer is None or ctx.request_state != "request-state-nonce":
        return InputRequired({"confirm": CONFIRM}, "request-state-nonce")
    return "state-ok: confirmation received"


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequired:
    """Returns one question of each kind."""
    answered = (ctx.elicited("user_name", Name), ctx.sampled("greeting"), ctx.listed_roots("client_roots"))
    if None in answered:
        return InputRequired(
            {
                "user_name": NAME_FORM,
                "greeting": SampleRequest(messages="Generate a greeting", max_tokens=50),
                "client_roots": RootsRequest(),
            },
            "multiple-inputs",
        )
    return "All inputs received."


@server.tool
async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequired:
    """Returns questions in two rounds."""
    state = ctx.request_state or ""
    if state.startswith("round-2:"):
        name = state.removeprefix("round-2:")
        color = ctx.elicited("step2", Color)
        if color is not None and color.accepted:
            return f"{name} likes {color.data.color}."
    else:
        answer = ctx.elicited("step1", Name)
        if answer is None or not answer.accepted:
            return InputRequired({"step1": ElicitRequest("Step 1: What is your name?", Name)}, "round-1")
        name = answer.data.name
    return InputRequired({"step2": ElicitRequest("Step 2: What is your favorite color?", Color)}, f"round-2:{name}")


@server.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequired:
    """Returns a state that must come back as it was."""
    answer = ctx.elicited("confirm", Confirmation)
    if answer is None or ctx.request_state is None:
        return InputRequired({"confirm": CONFIRM}, "round-1")
    return f"state-ok: {ctx.request_state}"


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequired:
    """Returns the questions that the client can answer."""
    requests: dict[str, Any] = {}
    if "sampling" in ctx.client_capabilities and ctx.sampled("sample") is None:
        requests["sample"] = SampleRequest(messages="Say hello", max_tokens=50)
    if "elicitation" in ctx.client_capabilities and ctx.elicited("ask", Name) is None:
        requests["ask"] = NAME_FORM
    if requests:
        return InputRequired(requests, "capability-gated")
    return f"capabilities respected: {','.join(sorted(ctx.input_responses or {}))}"


# Tools: about the caller and the server


@dataclass
class RequestInfo:
    revision: str
    client: str
    capabilities: str
    header: str


@server.tool
async def test_request_info(ctx: Context) -> RequestInfo:
    """Tells what it knows of the request."""
    client = ctx.client
    return RequestInfo(
        revision=ctx.revision,
        client="none" if client is None else f"{client.name} {client.version}",
        capabilities=",".join(sorted(ctx.client_capabilities)),
        header=ctx.headers.get("x-fixture", "none"),
    )


watched_version = 1


@server.tool
async def test_update_resource() -> str:
    """Changes the watched resource."""
    global watched_version
    watched_version += 1
    server.notify_resource_updated("test://watched-resource")
    return f"version {watched_version}"


async def dynamic_tool() -> str:
    """A tool that comes and goes."""
    return "dynamic"


async def dynamic_prompt() -> str:
    """A prompt that comes and goes."""
    return "dynamic"


async def dynamic_resource() -> str:
    """A resource that comes and goes."""
    return "dynamic"


@server.tool
async def test_trigger_tool_change() -> str:
    """Adds a tool, or removes it."""
    if server.remove_tool("test_dynamic_tool"):
        return "removed"
    server.add_tool(dynamic_tool, name="test_dynamic_tool")
    return "added"


@server.tool
async def test_trigger_prompt_change() -> str:
    """Adds a prompt, or removes it."""
    if server.remove_prompt("test_dynamic_prompt"):
        return "removed"
    server.add_prompt(dynamic_prompt, name="test_dynamic_prompt")
    return "added"


@server.tool
async def test_trigger_resource_change() -> str:
    """Adds a resource, or removes it."""
    if server.remove_resource("test://dynamic-resource"):
        return "removed"
    server.add_resource("test://dynamic-resource", dynamic_resource, name="dynamic-resource")
    return "added"


# Custom requests


@server.on_request("acme/echo")
async def acme_echo(text: str, ctx: Context) -> dict[str, str]:
    await ctx.progress(1, 2)
    await ctx.notify("acme/echoing", {"text": text})
    return {"text": text}


@server.on_request("acme/params", params_schema={"type": "object"})
async def acme_params(params: dict[str, Any]) -> dict[str, Any]:
    return {"params": params}


@server.on_request("acme/ask")
async def acme_ask(ctx: Context) -> dict[str, str]:
    answer = await ctx.elicit("Who?", Name, key="user")
    return {"name": answer.data.name} if answer.accepted else {}


@server.on_request("acme/wait")
async def acme_wait(label: str, ctx: Context) -> None:
    await test_cancellation(label, ctx)


@server.on_request("acme/fail")
async def acme_fail() -> None:
    await test_protocol_error()


@server.on_request("acme/exception")
async def acme_exception() -> None:
    await test_exception()


@server.on_request("acme/list")
async def acme_list() -> list[int]:
    return [1]


@server.on_request("acme/choose")
async def acme_choose(ctx: Context) -> dict[str, Any]:
    result = await ctx.send_request("acme/pick", {"from": [1, 2, 3]}, key="pick")
    return {"picked": result["picked"]}


@server.on_notification("acme/note")
async def acme_note(name: str) -> None:
    gates.setdefault(name, asyncio.Event()).set()


@server.on_request("acme/publish", scopes=["acme:write"])
async def acme_publish() -> dict[str, Any]:
    return {"published": True}


@server.on_notification("acme/published", scopes=["acme:write"])
async def acme_published(name: str) -> None:
    gates.setdefault(name, asyncio.Event()).set()


# Prompts


@server.prompt
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: First test argument
        arg2: Second test argument
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
async def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, "URI of the resource to embed"],  # noqa: N803 - the name on the wire
) -> list[Any]:
    """A prompt that embeds a resource."""
    contents = ResourceContents(resourceUri, text="Embedded resource content for testing.", mime_type="text/plain")
    return [EmbeddedResource(contents), "Please process the embedded resource above."]


@server.prompt
async def test_prompt_with_image() -> list[Any]:
    """A prompt with an image."""
    return [Image(PNG), "Please analyze the image above."]


@server.prompt
async def test_prompt_conversation() -> list[Message]:
    """A prompt with messages of both sides."""
    return [UserMessage("What is 2 + 2?"), AssistantMessage("4")]


@dataclass
class PromptContext:
    context: str


@server.prompt
async def test_input_required_result_prompt(ctx: Context) -> str | InputRequired:
    """A prompt that returns a question."""
    answer = ctx.elicited("user_context", PromptContext)
    if answer is None or not answer.accepted:
        request = ElicitRequest("What context should the prompt use?", PromptContext)
        return InputRequired({"user_context": request})
    return f"Use this context: {answer.data.context}"


# Resources


@server.resource("test://static-text", name="static-text", title="Static text", mime_type="text/plain")
async def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", name="static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """An image."""
    return PNG


@server.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text that changes."""
    return f"Watched resource, version {watched_version}"


@server.resource("test://template/{id}/data", name="template-data", mime_type="application/json")
async def template_data(id: str) -> dict[str, Any]:
    """Data for any id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# Completion


def beginning(value: str, *candidates: str) -> list[str]:
    return [candidate for candidate in candidates if candidate.startswith(value)]


@server.completion(prompt="test_prompt_with_arguments", argument="arg1")
async def complete_arg1(value: str) -> list[str]:
    return beginning(value, "test alpha", "test beta", "paris")


@server.completion(prompt="test_prompt_with_arguments", argument="arg2")
async def complete_arg2(value: str, arguments: dict[str, str]) -> list[str]:
    if "arg1" not in arguments:
        return []
    return beginning(value, f"{arguments['arg1']} one", f"{arguments['arg1']} two")


@server.completion(resource="test://template/{id}/data", argument="id")
async def complete_id(value: str) -> list[str]:
    return beginning(value, "1", "12", "123", "2")


# Extensions

if options.extensions:

    @server.tool
    async def test_extension(ctx: Context) -> str:
        """Needs an extension that the client declares."""
        ctx.require_extension(STAMPS)
        return "stamps declared"

    @server.tool
    async def test_receipt() -> ExtendedResult:
        """Returns a receipt."""
        return ExtendedResult("acme/receipt", {"token": "t-1"})

    @server.tool
    async def test_stray_type() -> ExtendedResult:
        """Returns a result of a type that no extension has."""
        return ExtendedResult("acme/none", {"token": "t-1"})

    @server.prompt
    async def test_receipt_prompt() -> ExtendedResult:
        """Returns a receipt."""
        return ExtendedResult("acme/receipt", {"token": "t-1"})

    @server.resource("test://receipt", name="receipt")
    async def receipt_resource() -> ExtendedResult:
        """Returns a receipt."""
        return ExtendedResult("acme/receipt", {"token": "t-1"})


# Features that most tests do not need

ICONS = [Icon("https://example.com/icon.png", "image/png", ["48x48"])]
SECRET = "secret-detail-7c1f"

if options.more:

    @server.tool
    async def test_sampling_with_media(ctx: Context) -> str:
        """Asks the client's model with an image and a recording."""
        messages = [UserMessage(ImageContent(PNG, "image/png")), UserMessage(AudioContent(WAV, "audio/wav"))]
        answer = await ctx.sample(messages, max_tokens=100, key="sample")
        block = answer.content[0]
        kind = {TextContent: "text", ImageContent: "image", AudioContent: "audio"}[type(block)]
        data = block.text if isinstance(block, TextContent) else base64.b64encode(block.data).decode()
        return f"{kind} {data}, stopped by {answer.stop_reason or 'none'}"

    @server.tool
    async def test_sampling_in_rounds(ctx: Context) -> str:
        """Asks the client's model until it uses no tool."""
        messages: list[Any] = [UserMessage("What is the weather in Oslo and Rome?")]
        while True:
            answer = await ctx.sample(
                messages,
                max_tokens=100,
                tools=[GET_WEATHER],
                tool_choice={"mode": "auto"},
                key=f"sample{len(messages) // 2 + 1}",
            )
            if not answer.tool_uses:
                return f"LLM response: {answer.text}"
            results = [
                ToolResultContent(use.id, [TextContent(f"{use.input['city']} is sunny")], meta=use.meta)
                for use in answer.tool_uses
            ]
            messages += [
                {"role": "assistant", "content": answer.content},
                {"role": "user", "content": results},
            ]

    @server.prompt(title="Described prompt", icons=ICONS)
    async def test_described_prompt(many: str = "", broken: str = "") -> list[Any]:
        """A prompt with everything a definition can have.

        Args:
            many: Has many candidates
            broken: Fails to complete
        """
        return [
            TextContent("described", annotations=Annotations(audience=["assistant"], priority=0.5)),
            await test_resource_link(),
        ]

    @server.completion(prompt="test_described_prompt", argument="many")
    async def complete_many() -> list[str]:
        return [f"c{number}" for number in range(1, 151)]

    @server.completion(prompt="test_described_prompt", argument="broken")
    async def complete_broken() -> list[str]:
        raise RuntimeError(SECRET)

    @server.prompt
    async def test_failing_prompt() -> str:
        """Fails unexpectedly."""
        raise RuntimeError(SECRET)

    @server.resource(
        "test://described-resource",
        name="described-resource",
        title="Described resource",
        mime_type="text/plain",
        size=9,
        icons=ICONS,
    )
    async def described_resource() -> str:
        """A text with its size and an icon."""
        return "described"

    @dataclass
    class Version:
        version: str

    @server.resource("test://asking-resource", name="asking-resource", mime_type="text/plain")
    async def requesting_resource(ctx: Context) -> str:
        """Asks the user in mid-call."""
        answer = await ctx.elicit("Which version?", Version, key="user")
        return f"Version {answer.data.version if answer.accepted else 'none'}"

    @server.resource("test://failing-resource", name="failing-resource", mime_type="text/plain")
    async def failing_resource() -> str:
        """Fails unexpectedly."""
        raise RuntimeError(SECRET)

    @dataclass
    class Reason:
        reason: str

    @server.resource(
        "test://asking/{id}", name="asking-template", title="Asking template", mime_type="text/plain", icons=ICONS
    )
    async def requesting_template(id: str, ctx: Context) -> str | InputRequired:
        """Returns a question to the user."""
        answer = ctx.elicited("user", Reason)
        if answer is None or not answer.accepted:
            return InputRequired({"user": ElicitRequest(f"Why {id}?", Reason)})
        return f"{id}: {answer.data.reason}"


# Features of `--extras 1`, for tests/hostile and some vectors

if options.extras:

    @server.tool
    async def test_flood(count: int, size: int, ctx: Context) -> str:
        """Logs a number of messages of a size."""
        for _ in range(count):
            ctx.info("x" * size)
            # Yields like a handler that does other work, so that the stream opens and a client can read it.
            await asyncio.sleep(0)
        return "flooded"

    @server.tool
    async def test_mistake(kind: str, ctx: Context) -> str:
        """Does what its author must not."""
        key = "wrong"
        if kind == "reserved code":
            raise RpcError(-32050, "secret-detail-7c1f")
        if kind == "nested form":
            await ctx.elicit("Where?", form(address={"type": "object", "properties": {}}), key=key)
        elif kind == "bad url":
            await ctx.elicit_url("Go", "not a url", key=key)
        elif kind == "lonely result":
            result = {"type": "tool_result", "toolUseId": "a", "content": []}
            await ctx.sample([{"role": "user", "content": [result]}], max_tokens=1, key=key)
        elif kind == "priority":
            await ctx.sample("hi", max_tokens=1, model_preferences={"costPriority": 2}, key=key)
        elif kind == "context":
            await ctx.sample("hi", max_tokens=1, include_context="thisServer", key=key)
        else:
            raise RpcError(-32602, f"no mistake: {kind}")
        return "answered"

    def extra_files() -> list[Any]:
        two = {"uri": "file:///extras/two", "name": "two", "description": "The second file"}
        return ["file:///extras/one", two, "file:///other/three"]

    @server.resource("file:///extras/{name}", name="extras", mime_type="application/json", list=extra_files)
    async def extras(name: str) -> dict[str, Any]:
        """Files by their names."""
        return {"name": name}

    @server.resource("log://{host}-{day}-{name}", name="logs", mime_type="application/json")
    async def logs(host: str, day: str, name: str) -> dict[str, Any]:
        """Logs of a host."""
        return {"host": host, "day": day, "name": name}


if options.blocking:
    # Number of handlers that run on threads at once.
    WORKERS = 64
    holding = threading.Lock()
    held = 0
    releases = threading.Semaphore(0)
    tickets = itertools.count(1)

    @server.tool
    def test_hold() -> str:
        """Holds a worker thread until it is released."""
        global held
        with holding:
            held += 1
        releases.acquire()
        return "released"

    @server.tool
    async def test_held() -> str:
        """Says how many worker threads are held."""
        return f"{held} of {WORKERS}"

    @server.tool
    async def test_release_one() -> str:
        """Releases one worker thread."""
        releases.release()
        return "released"

    @server.tool
    async def test_release() -> str:
        """Releases the worker threads."""
        releases.release(WORKERS)
        return "released"

    @server.tool
    def test_ticket() -> str:
        """Says which call of this tool it is."""
        return str(next(tickets))


# Servers with a single feature, or with capabilities but no features, instead of the one above

if options.declared:
    server = new_server(declare=["tools", "prompts", "resources"])
elif options.tools_only:
    server = new_server()
    server.add_tool(test_simple_text)
elif options.prompts_only:
    server = new_server()
    server.add_prompt(test_simple_prompt)


# A custom transport

PRINCIPALS = {1: None, 2: Caller(subject="alice"), 3: Caller(subject="alice", scopes=("acme:write",))}


class StdioChannel:
    """Carries messages over stdin and stdout."""

    async def send(self, message: bytes) -> None:
        sys.stdout.buffer.write(message + b"\n")
        sys.stdout.buffer.flush()

    async def receive(self) -> bytes | None:
        return await asyncio.to_thread(sys.stdin.buffer.readline) or None

    async def close(self) -> None: ...


if __name__ == "__main__":
    if options.channel is not None:
        asyncio.run(server.serve_channel(StdioChannel(), principal=PRINCIPALS[options.channel]))
    elif options.http is None:
        server.run()
    else:
        server.run("http", port=options.http, **given(HTTP_OPTIONS))
