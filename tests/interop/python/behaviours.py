"""Every kind of request that an official Python client can send, checked strictly against the everything-server."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Awaitable, Callable

import anyio

from matching import applies, differences
from peer import Peer, RpcError, eventually

EXPECTED = json.loads((Path(__file__).resolve().parents[1] / "expectations.json").read_text())

Behaviour = Callable[[Peer], Awaitable[None]]
BEHAVIOURS: list[tuple[str, Behaviour, Callable[[Peer], bool]]] = []
ENDINGS: list[tuple[str, Behaviour, Callable[[Peer], bool]]] = []
"""Behaviours that end the server."""


def behaviour(*, since: str = "", only: Callable[[Peer], bool] | None = None, ends: bool = False):
    """Registers a behaviour under its function's name; the bounds restrict where it applies."""

    def register(function: Behaviour) -> Behaviour:
        def holds(peer: Peer) -> bool:
            return peer.revision >= since and (only is None or only(peer))

        (ENDINGS if ends else BEHAVIOURS).append((function.__name__, function, holds))
        return function

    return register


def legacy(peer: Peer) -> bool:
    return not peer.modern


def modern(peer: Peer) -> bool:
    return peer.modern


def must_match(expected: object, seen: object) -> None:
    found = differences(expected, seen)
    assert not found, "; ".join(found)


def text_of(result: dict) -> str:
    """Returns the text of a result, which must be a single text item and no error."""
    must_match({"content": [{"type": "text"}], "isError": {"$falsy": True}}, result)
    return result["content"][0]["text"]


async def asking(peer: Peer, name: str, arguments: dict | None = None) -> tuple[str, list[tuple[str, dict]]]:
    """Calls a tool that sends input requests; returns its text and the input requests.

    Without those for roots: servers also send them when the roots have changed, outside of any call.
    """
    peer.callbacks.input_requests.clear()
    result = await peer.call_tool(name, arguments)
    return text_of(result), [asked for asked in peer.callbacks.input_requests if asked[0] != "roots/list"]


# --- Identity and lists -----------------------------------------------------------------------------------------


@behaviour()
async def the_server_introduces_itself(peer: Peer) -> None:
    hello, server = peer.hello(), EXPECTED["server"]
    must_match({"name": server["name"], "version": server["version"]}, hello["serverInfo"])
    if peer.revision >= "2025-06-18":
        must_match({"title": server["title"]}, hello["serverInfo"])
    assert hello["instructions"] == server["instructions"], hello["instructions"]
    must_match(EXPECTED["capabilities"], hello["capabilities"])
    assert ("completions" in hello["capabilities"]) == (peer.revision >= "2025-03-26"), hello["capabilities"]


@behaviour()
async def lists_are_complete_and_in_order(peer: Peer) -> None:
    for kind, expected in EXPECTED["lists"].items():
        key = {"resources": "uri", "templates": "uriTemplate"}.get(kind, "name")
        assert [item[key] for item in await peer.list(kind)] == expected, kind


@behaviour()
async def everything_listed_is_described(peer: Peer) -> None:
    for kind in EXPECTED["lists"]:
        for item in await peer.list(kind):
            must_match({"description": {"$string": True}}, item)
            if kind == "tools":
                must_match({"inputSchema": {"type": "object"}}, item)


@behaviour()
async def definitions_are_fit_for_the_revision(peer: Peer) -> None:
    for entry in EXPECTED["definitions"]:
        if applies(entry, peer.revision):
            key = {"resources": "uri", "templates": "uriTemplate"}.get(entry["list"], "name")
            items = {item[key]: item for item in await peer.list(entry["list"])}
            found = differences(entry["expect"], items[entry["item"]])
            assert not found, f"{entry['item']}: {found}"


@behaviour(only=legacy)
async def ping_is_answered_empty(peer: Peer) -> None:
    must_match({}, await peer.ping())


# --- Plain requests, from the shared table ----------------------------------------------------------------------


def plain_request(entry: dict) -> Behaviour:
    """Creates a behaviour from an entry of the table."""

    async def check(peer: Peer) -> None:
        method = entry["method"]
        try:
            if method == "tools/call":
                seen = await peer.call_tool(entry["name"], entry["arguments"])
            elif method == "prompts/get":
                seen = await peer.get_prompt(entry["name"], entry["arguments"])
            elif method == "resources/read":
                seen = await peer.read(entry["uri"])
            else:
                seen = await peer.complete(entry["ref"], entry["argument"], entry.get("context"))
        except RpcError as error:
            assert "error" in entry, f"unexpected error {error}"
            must_match(entry["error"], {"code": error.code, "message": error.message, "data": error.data})
        else:
            assert "error" not in entry, f"an error was expected, saw {seen}"
            must_match(entry["expect"], seen)

    return check


for _entry in EXPECTED["calls"]:
    _subject = _entry.get("name") or _entry.get("uri") or f"{_entry['argument']['name']}={_entry['argument']['value']!r}"
    _arguments = json.dumps(_entry.get("arguments") or {}, ensure_ascii=True)[:60]
    BEHAVIOURS.append((
        f"{_entry['method']} {_subject} {_arguments}",
        plain_request(_entry),
        lambda peer, entry=_entry: applies(entry, peer.revision),
    ))


@behaviour()
async def large_payloads_pass_in_both_directions(peer: Peer) -> None:
    text = "Größe " * 100_000
    assert text_of(await peer.call_tool("test_echo", {"text": text})) == text
    assert text_of(await peer.call_tool("test_large_result", {"size": 1_000_000})) == "x" * 1_000_000


@behaviour(only=lambda peer: peer.transport == "stdio")
async def stray_output_of_a_handler_does_not_disturb_the_stream(peer: Peer) -> None:
    assert text_of(await peer.call_tool("test_stray_output")) == "read 0 bytes"
    assert text_of(await peer.call_tool("test_echo", {"text": "still here"})) == "still here"


@behaviour()
async def the_handler_sees_who_is_calling(peer: Peer) -> None:
    info = json.loads(text_of(await peer.call_tool("test_request_info")))
    must_match({"revision": peer.revision, "client": "interop 1.2.3"}, info)
    capabilities = set(info["capabilities"].split(","))
    expected = {"roots", "sampling"} | ({"elicitation"} if peer.revision >= "2025-06-18" else set())
    assert expected <= capabilities, capabilities
    assert info["header"] == ("none" if peer.transport == "stdio" else "interop"), info


# --- While a handler runs ---------------------------------------------------------------------------------------


@behaviour()
async def progress_arrives_in_order_before_the_result(peer: Peer) -> None:
    seen: list[tuple] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    assert text_of(await peer.call_tool("test_tool_with_progress", on_progress=on_progress)) == "progress done"
    await eventually("three progress notifications", lambda: len(seen) >= 3)
    knows_message = peer.revision >= "2025-03-26"
    expected = [(n, 100, f"Completed step {n} of 100" if knows_message else None) for n in (0, 50, 100)]
    assert seen == expected, seen


@behaviour(only=legacy)
async def log_messages_arrive_from_the_chosen_level_up(peer: Peer) -> None:
    await peer.set_level("info")
    peer.callbacks.logged.clear()
    await peer.call_tool("test_tool_with_logging")
    await eventually("three log messages", lambda: len(peer.callbacks.logged) >= 3)
    assert [(entry["level"], entry["data"]) for entry in peer.callbacks.logged] == [
        ("info", "Tool execution started"),
        ("info", "Tool processing data"),
        ("info", "Tool execution completed"),
    ], peer.callbacks.logged
    await peer.set_level("warning")
    peer.callbacks.logged.clear()
    await peer.call_tool("test_log_levels")
    await eventually("the last log message", lambda: len(peer.callbacks.logged) >= 5)
    await peer.ping()
    assert peer.callbacks.logged == [
        {"level": level, "logger": "fixture", "data": f"message at {level}"}
        for level in ("warning", "error", "critical", "alert", "emergency")
    ], peer.callbacks.logged
    await peer.set_level("debug")


@behaviour(only=modern)
async def log_messages_arrive_only_for_requests_that_name_a_level(peer: Peer) -> None:
    peer.callbacks.logged.clear()
    await peer.call_tool("test_log_levels")
    await peer.call_tool("test_log_levels", log_level="error")
    await eventually("four log messages", lambda: len(peer.callbacks.logged) >= 4)
    assert [entry["level"] for entry in peer.callbacks.logged] == ["error", "critical", "alert", "emergency"]


@behaviour()
async def a_waiting_call_does_not_hold_up_others(peer: Peer) -> None:
    name = f"{peer.transport}-{peer.revision}-{id(peer)}"
    results: list[str] = []

    async def wait_at_gate() -> None:
        results.append(text_of(await peer.call_tool("test_gate", {"name": name})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_at_gate)
        assert text_of(await peer.call_tool("test_echo", {"text": "meanwhile"})) == "meanwhile"
        assert results == []
        assert text_of(await peer.call_tool("test_open_gate", {"name": name})) == f"gate {name} opened"
    assert results == [f"gate {name} passed"]


@behaviour()
async def fifty_calls_at_once_each_get_their_own_answer(peer: Peer) -> None:
    answers: dict[int, str] = {}

    async def call(number: int) -> None:
        answers[number] = text_of(await peer.call_tool("test_echo", {"text": f"call {number}"}))

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(call, number)
    assert answers == {number: f"call {number}" for number in range(50)}


@behaviour()
async def a_cancelled_call_is_seen_by_its_handler_and_not_answered(peer: Peer) -> None:
    label = f"{peer.transport}-{peer.revision}-{id(peer)}"
    await peer.cancelled_call("test_cancellation", {"label": label})
    assert text_of(await peer.call_tool("test_cancellation_status", {"label": label})) == f"{label} was cancelled"


@behaviour(only=lambda peer: peer.revision >= "2025-11-25" and legacy(peer) and peer.transport == "http")
async def a_result_is_fetched_after_the_server_closed_the_stream(peer: Peer) -> None:
    assert text_of(await peer.call_tool("test_reconnection")) == "reconnected"


# --- Input requests ---------------------------------------------------------------------------------------------


@behaviour()
async def sampling_reaches_the_client(peer: Peer) -> None:
    text, requests = await asking(peer, "test_sampling", {"prompt": "Hello"})
    assert text == "LLM response: answer to Hello"
    (method, params), = requests
    assert method == "sampling/createMessage"
    must_match({"maxTokens": 100}, params)
    content = params["messages"][0]["content"]
    must_match({"type": "text", "text": "Hello"}, content[0] if isinstance(content, list) else content)


@behaviour(since="2025-11-25")
async def sampling_with_tools_carries_tools_and_tool_use(peer: Peer) -> None:
    text, requests = await asking(peer, "test_sampling_with_tools")
    prefix = "tool_use get_weather "
    assert text.startswith(prefix) and json.loads(text.removeprefix(prefix)) == {"city": "Oslo"}, text
    tool = {"name": "get_weather", "description": "Weather of a city",
            "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
    must_match({"tools": [tool], "toolChoice": {"mode": "auto"}}, requests[0][1])


@behaviour()
async def roots_are_listed_anew_for_each_question(peer: Peer) -> None:
    peer.callbacks.roots = [{"uri": "file:///workspace/one"}, {"uri": "file:///workspace/two", "name": "Two"}]
    assert (await asking(peer, "test_roots"))[0] == "file:///workspace/one\nfile:///workspace/two"
    peer.callbacks.roots = [{"uri": "file:///workspace/three"}]
    if legacy(peer):
        await peer.roots_changed()
    assert (await asking(peer, "test_roots"))[0] == "file:///workspace/three"


@behaviour(since="2025-06-18")
async def elicitation_answers_reach_the_handler(peer: Peer) -> None:
    content = {"username": "alice", "email": "alice@example.com"}
    for answer, seen in [
        ({"action": "accept", "content": content}, content),
        ({"action": "decline"}, {}),
        ({"action": "cancel"}, {}),
    ]:
        peer.callbacks.elicitations = {"Who are you?": answer}
        text, requests = await asking(peer, "test_elicitation", {"message": "Who are you?"})
        prefix = f"User response: action={answer['action']}, content="
        assert text.startswith(prefix) and json.loads(text.removeprefix(prefix)) == seen, text
        must_match({
            "message": "Who are you?",
            "requestedSchema": {
                "type": "object",
                "properties": {"username": {"type": "string"}, "email": {"type": "string"}},
                "required": {"$sorted": ["email", "username"]},
            },
        }, requests[0][1])


@behaviour(since="2025-06-18")
async def elicitation_schemas_keep_defaults_and_enums(peer: Peer) -> None:
    content = {"name": "Jane", "age": 31, "score": 1.5, "status": "pending", "verified": False}
    peer.callbacks.elicitations = {
        "Please provide user information": {"action": "accept", "content": content},
        "Please select options": {"action": "cancel"},
    }
    text, requests = await asking(peer, "test_elicitation_sep1034_defaults")
    assert json.loads(text.removeprefix("Elicitation result: action=accept, content=")) == content, text
    if peer.revision >= "2025-11-25":
        must_match({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        }, requests[0][1]["requestedSchema"]["properties"])
        text, requests = await asking(peer, "test_elicitation_sep1330_enums")
        assert text == "Elicitation completed: action=cancel, content={}", text
        must_match({
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ]},
            "legacyEnum": {"enum": ["opt1", "opt2", "opt3"],
                           "enumNames": ["Option One", "Option Two", "Option Three"]},
            "untitledMulti": {"type": "array",
                              "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
            "titledMulti": {"type": "array", "items": {"anyOf": [
                {"const": "value1", "title": "First Choice"},
                {"const": "value2", "title": "Second Choice"},
                {"const": "value3", "title": "Third Choice"},
            ]}},
        }, requests[0][1]["requestedSchema"]["properties"])


@behaviour(since="2025-11-25")
async def url_elicitation_reaches_the_client(peer: Peer) -> None:
    peer.callbacks.elicitations = {"Please authorise access": {"action": "accept"}}
    text, requests = await asking(peer, "test_url_elicitation")
    assert text == "URL elicitation: action=accept"
    must_match({"mode": "url", "url": "https://example.com/authorise"}, requests[0][1])


@behaviour(since="2025-11-25")
async def a_required_visit_is_made_and_its_end_told(peer: Peer) -> None:
    tool, id_ = "test_url_elicitation_required", f"visit-{uuid.uuid4().hex}"
    if peer.modern:
        peer.callbacks.elicitations = {"Please authorise access": {"action": "accept"}}
        text, requests = await asking(peer, tool, {"id": id_})
        assert text == f"authorised {id_}"
        must_match({"mode": "url", "url": f"https://example.com/authorise?visit={id_}"}, requests[0][1])
        return
    await standalone_stream(peer)
    try:
        raise AssertionError(f"a visit is required, saw {await peer.call_tool(tool, {'id': id_})}")
    except RpcError as error:
        assert error.code == -32042, error
        must_match({"elicitations": [
            {"mode": "url", "url": f"https://example.com/authorise?visit={id_}", "elicitationId": id_},
        ]}, error.data)
    assert text_of(await peer.call_tool("test_complete_url_elicitation", {"id": id_})) == f"completed {id_}"
    method = "notifications/elicitation/complete"
    await eventually(method, lambda: peer.callbacks.notices(method) == [{"elicitationId": id_}])
    assert text_of(await peer.call_tool(tool, {"id": id_})) == f"authorised {id_}"


@behaviour(since="2025-06-18")
async def one_handler_can_ask_twice(peer: Peer) -> None:
    peer.callbacks.elicitations = {
        "What is your name?": {"action": "accept", "content": {"name": "Ada"}},
        "How old are you, Ada?": {"action": "accept", "content": {"age": 36}},
    }
    assert (await asking(peer, "test_two_questions"))[0] == "Ada is 36"
    del peer.callbacks.elicitations["How old are you, Ada?"]
    assert (await asking(peer, "test_two_questions"))[0] == "no age"


@behaviour(since="2025-06-18")
async def returned_questions_are_asked_and_answered(peer: Peer) -> None:
    def accept(**content: object) -> dict:
        return {"action": "accept", "content": content}

    peer.callbacks.roots = [{"uri": "file:///a"}, {"uri": "file:///b"}]
    peer.callbacks.elicitations = {
        "What is your name?": accept(name="Ada"),
        "Please confirm": accept(ok=True),
        "Step 1: What is your name?": accept(name="Ada"),
        "Step 2: What is your favorite color?": accept(color="green"),
        "What context should the prompt use?": accept(context="tea"),
    }
    prefix = "test_input_required_result_"
    for name, expected in {
        "elicitation": "Hello, Ada!",
        "sampling": "Model said: Paris",
        "list_roots": "Client exposed 2 root(s).",
        "request_state": "state-ok: confirmation received",
        "multiple_inputs": "All inputs received.",
        "multi_round": "Ada likes green.",
        "tampered_state": "state-ok: round-1",
        "capabilities": "capabilities respected: ask,sample",
    }.items():
        text, _asked = await asking(peer, prefix + name)
        assert text == expected, f"{name}: {text}"
    prompt = await peer.get_prompt(prefix + "prompt", {})
    must_match([{"role": "user", "content": {"type": "text", "text": "Use this context: tea"}}], prompt["messages"])


# --- Notifications of changes -----------------------------------------------------------------------------------

CHANGES = {
    "tools": ("test_trigger_tool_change", "test_dynamic_tool", "name"),
    "prompts": ("test_trigger_prompt_change", "test_dynamic_prompt", "name"),
    "resources": ("test_trigger_resource_change", "test://dynamic-resource", "uri"),
}


@behaviour(only=legacy)
async def list_changes_are_announced(peer: Peer) -> None:
    await standalone_stream(peer)
    for kind, (trigger, item, key) in CHANGES.items():
        method = f"notifications/{kind}/list_changed"
        for expected in ("added", "removed"):
            peer.callbacks.notified.clear()
            assert text_of(await peer.call_tool(trigger)) == expected
            await eventually(method, lambda: peer.callbacks.notices(method) != [])
            names = [entry[key] for entry in await peer.list(kind)]
            assert (item in names) == (expected == "added"), names


@behaviour(only=legacy)
async def resource_updates_reach_subscribers_only(peer: Peer) -> None:
    await standalone_stream(peer)
    uri, method = "test://watched-resource", "notifications/resources/updated"
    peer.callbacks.notified.clear()
    must_match({}, await peer.subscribe(uri))
    version = text_of(await peer.call_tool("test_update_resource")).removeprefix("version ")
    await eventually(method, lambda: peer.callbacks.notices(method) != [])
    must_match([{"uri": uri}], peer.callbacks.notices(method))
    must_match({"contents": [{"text": f"Watched resource, version {version}"}]}, await peer.read(uri))
    must_match({}, await peer.unsubscribe(uri))
    peer.callbacks.notified.clear()
    await peer.call_tool("test_update_resource")
    await peer.call_tool("test_trigger_tool_change")
    await eventually("the later notification", lambda: peer.callbacks.notices("notifications/tools/list_changed") != [])
    await peer.call_tool("test_trigger_tool_change")
    assert peer.callbacks.notices(method) == []


async def standalone_stream(peer: Peer) -> None:
    """Waits until the client's GET stream is open; the client opens it some time after the handshake."""
    if peer.transport != "http":
        return
    peer.callbacks.notified.clear()

    async def change_until_told() -> None:
        while not peer.callbacks.notified:
            await peer.call_tool("test_trigger_tool_change")
            with anyio.move_on_after(0.2):
                await eventually("a notification", lambda: bool(peer.callbacks.notified))

    with anyio.fail_after(15):
        await change_until_told()
    if "test_dynamic_tool" in [tool["name"] for tool in await peer.list("tools")]:
        await peer.call_tool("test_trigger_tool_change")
    count = -1
    while count != len(peer.callbacks.notified):
        count = len(peer.callbacks.notified)
        await peer.ping()


@behaviour(only=modern)
async def listening_streams_tell_what_they_asked_for_and_no_more(peer: Peer) -> None:
    uri = "test://watched-resource"
    async with peer.listen(tools=True, resources=True) as lists, peer.listen(uris=[uri]) as updates:
        await peer.call_tool("test_update_resource")
        must_match({"method": "notifications/resources/updated", "params": {"uri": uri}}, await updates())
        await peer.call_tool("test_trigger_prompt_change")
        await peer.call_tool("test_trigger_prompt_change")
        for kind in ("tools", "resources"):
            trigger, item, key = CHANGES[kind]
            for expected in ("added", "removed"):
                assert text_of(await peer.call_tool(trigger)) == expected
                must_match({"method": f"notifications/{kind}/list_changed"}, await lists())
                names = [entry[key] for entry in await peer.list(kind)]
                assert (item in names) == (expected == "added"), names


@behaviour(only=modern)
async def prompt_changes_are_told_to_who_listens_for_them(peer: Peer) -> None:
    async with peer.listen(prompts=True) as prompts:
        for expected in ("added", "removed"):
            assert text_of(await peer.call_tool("test_trigger_prompt_change")) == expected
            must_match({"method": "notifications/prompts/list_changed"}, await prompts())


@behaviour(only=modern)
async def a_stream_that_the_client_leaves_tells_nothing_more(peer: Peer) -> None:
    async with peer.listen(tools=True) as tools:
        assert text_of(await peer.call_tool("test_trigger_tool_change")) == "added"
        must_match({"method": "notifications/tools/list_changed"}, await tools())
    peer.callbacks.notified.clear()
    async with peer.listen(tools=True) as tools:
        assert text_of(await peer.call_tool("test_trigger_tool_change")) == "removed"
        must_match({"method": "notifications/tools/list_changed"}, await tools())
    # Notifications to the closed stream would have arrived before this.
    assert [notice for notice in peer.callbacks.notified if "list_changed" not in notice["method"]] == []


@behaviour(only=modern, ends=True)
async def a_server_that_ends_ends_its_streams_gracefully(peer: Peer) -> None:
    uri = "test://watched-resource"
    async with peer.listen(tools=True) as tools, peer.listen(uris=[uri]) as updates:
        assert text_of(await peer.call_tool("test_trigger_tool_change")) == "added"
        must_match({"method": "notifications/tools/list_changed"}, await tools())
        await anyio.run_process(peer.stop)
        assert await tools() is None
        assert await updates() is None
    assert [notice for notice in peer.callbacks.notified if notice["method"] == "broken message"] == []
