"""The servers: their commands, and the steps of the client."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import environment, programs  # noqa: E402

LAST = "2025-11-25"
MODERN = "2026-07-28"


@dataclass(frozen=True)
class Ask:
    """A step of the driver, and a text that must occur in the JSON of its result."""

    step: dict
    says: str = ""
    progress: int = 0
    """Minimum number of progress reports."""


@dataclass(frozen=True)
class Real:
    """A server over stdio or HTTP. Over HTTP, `--http PORT` is appended to the command."""

    name: str
    command: Callable[[Path], list[str]]
    """Prepares the given folder for the server, and returns its command."""
    revision: str
    asks: Callable[[Path], list[Ask]]
    transports: dict[str, str] = field(default_factory=lambda: {"stdio": "", "http": "/mcp"})
    """The transport: stdio, or this path of its URL."""
    answers: bool = False
    """Whether the client declares handlers for input requests."""


def _python(name: str, requirements: str) -> str:
    return str(environment.venv(f"realservers-{name}", HERE / "python" / f"requirements-{requirements}.txt"))


def _small_python(script: str, requirements: str) -> Callable[[Path], list[str]]:
    return lambda _: [_python(requirements, requirements), str(HERE / "python" / f"{script}.py")]


def _module(module: str, *arguments: str) -> Callable[[Path], list[str]]:
    return lambda _: [_python("servers", "servers"), "-m", module, *arguments]


def _node(script: str, *arguments: str) -> Callable[[Path], list[str]]:
    def command(_: Path) -> list[str]:
        environment.node_modules(HERE / "node")
        return [environment.node(), str(HERE / "node" / script), *arguments]

    return command


def _filesystem(folder: Path) -> list[str]:
    package = environment.node_modules(HERE / "node") / "@modelcontextprotocol/server-filesystem"
    (folder / "file.txt").write_text("what it holds")
    return [environment.node(), str(package / "dist/index.js"), str(folder)]


def _git(folder: Path) -> list[str]:
    environment.checked(["git", "init", "--quiet", str(folder)], "git init")
    (folder / "file.txt").write_text("new")
    return _module("mcp_server_git", "--repository", str(folder))(folder)


def _rmcp(*arguments: str) -> Callable[[Path], list[str]]:
    manifest = environment.ROOT / "benches" / "Cargo.toml"
    return lambda _: [str(environment.cargo_binary("bench-server-rmcp", manifest=manifest)), *arguments]


def _call(tool: str, says: str, progress: int = 0, **arguments: object) -> Ask:
    return Ask({"do": "call_tool", "name": tool, "arguments": arguments}, says, progress)


def _complete(reference: dict, argument: str, value: str, says: str) -> Ask:
    params = {"ref": reference, "argument": {"name": argument, "value": value}}
    return Ask({"do": "complete", "params": params}, says)


LONG = {"duration": 60, "steps": 600}
PING = Ask({"do": "ping"})
TOOLS = Ask({"do": "list_tools"}, "inputSchema")


def _small(completes: bool) -> Callable[[Path], list[Ask]]:
    """The steps of the small servers."""
    asks = [
        TOOLS,
        Ask({"do": "list_resources"}, "demo://greeting"),
        Ask({"do": "list_resource_templates"}, "demo://item/{id}"),
        Ask({"do": "list_prompts"}, "greet"),
        _call("echo", "hé\\n", text="hé\n"),
        _call("steps", "done", progress=3),
        Ask({"do": "read_resource", "uri": "demo://greeting"}, "hello"),
        Ask({"do": "read_resource", "uri": "demo://item/7"}, "item 7"),
        Ask({"do": "get_prompt", "name": "greet", "arguments": {"name": "Ada"}}, "Greet Ada."),
        *([_complete({"type": "ref/prompt", "name": "greet"}, "name", "A", "Alan")] if completes else []),
        Ask({"do": "cancel_tool", "name": "wait"}, "cancelled"),
        _call("was_cancelled", "true"),
        PING,
    ]
    return lambda _: asks


def _everything(_: Path) -> list[Ask]:
    return [
        TOOLS,
        Ask({"do": "list_resources"}, "demo://resource/static"),
        Ask({"do": "list_resource_templates"}, "demo://resource/dynamic/text/{resourceId}"),
        Ask({"do": "list_prompts"}, "completable-prompt"),
        _call("echo", "Echo: hé", message="hé"),
        _call("get-sum", "5", a=2, b=3),
        _call("get-structured-content", "temperature", location="Chicago"),
        _call("get-tiny-image", "image/png"),
        _call("trigger-long-running-operation", "completed", progress=3, duration=0.3, steps=3),
        _call("trigger-sampling-request", "sampled", prompt="say something", maxTokens=10),
        _call("trigger-elicitation-request", "declined"),
        _call("get-roots-list", "file:///"),
        Ask({"do": "read_resource", "uri": "demo://resource/dynamic/text/1"}, "Resource 1"),
        Ask({"do": "subscribe", "uri": "demo://resource/dynamic/text/1"}),
        Ask({"do": "unsubscribe", "uri": "demo://resource/dynamic/text/1"}),
        Ask({"do": "get_prompt", "name": "args-prompt", "arguments": {"city": "Oslo"}}, "Oslo"),
        _complete({"type": "ref/prompt", "name": "completable-prompt"}, "department", "E", "Engineering"),
        Ask({"do": "set_log_level", "level": "warning"}),
        Ask({"do": "cancel_tool", "name": "trigger-long-running-operation", "arguments": LONG}, "cancelled"),
        PING,
    ]


def _files(folder: Path) -> list[Ask]:
    return [
        TOOLS,
        _call("list_directory", "file.txt", path=str(folder)),
        _call("read_text_file", "what it holds", path=str(folder / "file.txt")),
        _call("write_file", "", path=str(folder / "new.txt"), content="hé"),
        _call("read_text_file", "hé", path=str(folder / "new.txt")),
        _call("read_text_file", "isError", path="/etc/passwd"),
        PING,
    ]


def _time(_: Path) -> list[Ask]:
    return [
        TOOLS,
        _call("get_current_time", "Europe/Oslo", timezone="Europe/Oslo"),
        _call("convert_time", "Asia/Tokyo", source_timezone="Europe/Oslo", time="12:00", target_timezone="Asia/Tokyo"),
        PING,
    ]


def _repository(folder: Path) -> list[Ask]:
    return [
        TOOLS,
        _call("git_status", "file.txt", repo_path=str(folder)),
        _call("git_add", "", repo_path=str(folder), files=["file.txt"]),
        _call("git_diff_staged", "new", repo_path=str(folder)),
        PING,
    ]


def _fetched(folder: Path) -> list[Ask]:
    url = (folder / "url").read_text()
    return [TOOLS, Ask({"do": "list_prompts"}, "fetch"), _call("fetch", "It has a paragraph", url=url), PING]


def _echo(_: Path) -> list[Ask]:
    return [TOOLS, _call("echo", "hé", text="hé"), PING]


def _own(_: Path) -> list[Ask]:
    """The steps of our everything-servers, in every language (`../servers/README.md`)."""
    return [
        TOOLS,
        Ask({"do": "list_resources"}, "test://static-text"),
        Ask({"do": "list_resource_templates"}, "test://template/{id}/data"),
        Ask({"do": "list_prompts"}, "test_prompt_with_arguments"),
        _call("test_echo", "hé\\n", text="hé\n"),
        _call("test_large_result", "x" * 1000, size=1_000_000),
        _call("test_structured_content", "Partly cloudy"),
        _call("test_error_handling", "isError"),
        _call("test_tool_with_progress", "progress done", progress=3),
        _call("test_sampling", "LLM response: sampled", prompt="say something"),
        _call("test_elicitation", "action=decline, content={}", message="Who is there?"),
        _call("test_roots", "file:///"),
        Ask({"do": "read_resource", "uri": "test://static-binary"}, "image/png"),
        Ask({"do": "read_resource", "uri": "test://template/7/data"}, "Data for ID: 7"),
        Ask({"do": "get_prompt", "name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}}, "arg2='b'"),
        _complete({"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "arg1", "test", "test beta"),
        Ask({"do": "cancel_tool", "name": "test_cancellation", "arguments": {"label": "own"}}, "cancelled"),
        _call("test_cancellation_status", "own was cancelled", label="own"),
        PING,
    ]


def _everything_server(language: str) -> Callable[[Path], list[str]]:
    return lambda _: programs.SERVERS[language].command()


PIPE = {"stdio": ""}
WEB = {"http": "/mcp"}
SSE = {"sse": "/sse"}
# The page is served by this machine.
FETCHING = ("--ignore-robots-txt", "--allow-private-ips")
SERVERS = [
    *(
        Real("server-everything", _node("everything.mjs", mode), LAST, _everything, transports, answers=True)
        for mode, transports in (("stdio", PIPE), ("streamableHttp", WEB), ("sse", {"sse": "/sse"}))
    ),
    Real("server-filesystem", _filesystem, LAST, _files, PIPE),
    Real("mcp-server-time", _module("mcp_server_time"), MODERN, _time, PIPE),
    Real("mcp-server-git", _git, MODERN, _repository, PIPE),
    Real("mcp-server-fetch", _module("mcp_server_fetch", *FETCHING), MODERN, _fetched, PIPE),
    Real("mcp 1.x", _small_python("small_mcp1", "mcp1"), LAST, _small(completes=True)),
    Real("mcp 2.x", _small_python("small_mcp2", "servers"), MODERN, _small(completes=True)),
    Real("fastmcp", _small_python("small_fastmcp", "fastmcp"), MODERN, _small(completes=False)),
    Real("sdk 1.x", _node("small_sdk1.mjs"), LAST, _small(completes=True)),
    Real("server 2.x", _node("small_server2.mjs"), MODERN, _small(completes=True)),
    Real("rmcp", _rmcp(), MODERN, _echo),
    Real("rmcp with sessions", _rmcp("--sessions"), MODERN, _echo, WEB),
    *(
        Real(f"mcpline {language}", _everything_server(language), revision, _own, transports, answers=True)
        for language, subject in programs.SERVERS.items() if subject.exists()
        for revision, transports in ((MODERN, {**PIPE, **WEB}), (LAST, SSE))
    ),
]
