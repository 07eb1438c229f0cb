"""A host in Node, a proxy in Rust, a server in Python and two in C: each call is one trace."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import commands
from spans import HANDSHAKE, Span

REVISIONS = ("2024-11-05", "2025-11-25", "2026-07-28")

# Parts of traces: the program, the kind and the name of each span, indented below its parent.
_WORKING = """\
relay SERVER tools/call relay
  relay INTERNAL working
    relay CLIENT tools/call trace_context
"""
# What the server in C adds that exports its spans.
_FORWARDING = """\
forward SERVER tools/call trace_context
  forward CLIENT tools/call trace_context
"""
_WITH_ELICITATION = """\
relay SERVER tools/call relay
  relay INTERNAL working
    relay CLIENT elicitation/create{answered}
    relay CLIENT tools/call trace_context
"""
# The proxy answers by itself.
_ANSWERED_BY_PROXY = """
      proxy SERVER elicitation/create"""
_ANSWERED_BY_HOST = """
      host SERVER elicitation/create
        host INTERNAL answering"""
# On 2026-07-28 the call is sent a second time, with the answer. The handler belongs to the first one.
_AGAIN = "relay SERVER tools/call relay\n"
_RELAYING = """\
proxy SERVER tools/call relay
  proxy INTERNAL relaying
    proxy CLIENT tools/call relay
"""
_PLANNING = """\
host INTERNAL {span}
  host CLIENT tools/call relay
"""


def _indented(text: str, depth: int) -> str:
    return "".join(f"{'  ' * depth}{line}\n" for line in text.splitlines())


@dataclass
class Chain:
    """A host, and the servers that its calls go through."""

    programs: tuple[str, ...]
    transport: str
    revision: str

    @property
    def name(self) -> str:
        return f"{' → '.join(('host', *self.programs))} over {self.transport} on {self.revision}"

    def expected(self) -> dict[str, str]:
        """Returns the trees of spans, by the name of their root."""
        calls = {"planning": _WORKING}
        # The oldest revision has no elicitation.
        if self.revision != "2024-11-05":
            answered = _ANSWERED_BY_PROXY if "proxy" in self.programs else _ANSWERED_BY_HOST
            asking = _WITH_ELICITATION.format(answered=answered)
            calls["planning with a question"] = asking + (_AGAIN if self.revision == "2026-07-28" else "")
        trees = {}
        for span, below in calls.items():
            tree = _PLANNING.format(span=span)
            depth = 2
            if "proxy" in self.programs:
                tree += _indented(_RELAYING, depth)
                depth += 3
            tree += _indented(below.removesuffix(_AGAIN), depth)
            if "forward" in self.programs:
                tree += _indented(_FORWARDING, depth + 3)
            if below.endswith(_AGAIN):
                tree += _indented(_AGAIN, depth)
            trees[span] = tree
        return trees

    def run(self, programs: commands.Commands, sink: str, folder: Path) -> Outcome:
        """Runs the host; its programs export to the sink, as services whose names begin with that of the chain."""
        complaints: list[str] = []
        servers = []
        received: dict[str, dict[str, str]] = {}
        following = ""
        try:
            with ExitStack() as stack:
                for name in reversed(self.programs):
                    command = self._command(programs, sink, name, following)
                    if self.transport == "stdio":
                        following = json.dumps(command)
                    else:
                        server, following = commands.serve(stack, command, folder / f"{self.name}, {name}.log")
                        servers.append(server)
                received = json.loads(commands.run(self._command(programs, sink, "host", following)))
        except commands.Failed as error:
            complaints.append(str(error))
        complaints += [complaint for server in servers for complaint in server.complaints]
        return Outcome(self, received, complaints)

    def _command(self, programs: commands.Commands, sink: str, name: str, following: str) -> list[str]:
        file = {"host": "host.mjs", "relay": "relay.py"}.get(name, name)
        return commands.with_environment(
            programs.program(file),
            sink,
            f"{self.name}: {name}",
            TRACING_NEXT=following,
            TRACING_REVISION=self.revision,
        )


@dataclass
class Outcome:
    """What the host has printed, and what went wrong."""

    chain: Chain
    received: dict[str, dict[str, str]]
    """The trace context that the server in C has received, by the name of the host's span."""
    complaints: list[str]

    def problems(self, spans: list[Span]) -> list[str]:
        """Compares the spans of this chain with the expected ones."""
        prefix = f"{self.chain.name}: "
        spans = [span for span in spans if span.service.startswith(prefix)]
        expected = self.chain.expected()
        found = self.complaints.copy()
        by_root = {span.name: span for span in spans if span.parent is None and span.kind == "INTERNAL"}
        if sorted(by_root) != sorted(expected):
            found.append(f"spans without a parent: {sorted(by_root)}, expected {sorted(expected)}")
        traces = {root.trace for root in by_root.values()}
        for name, root in by_root.items():
            trace = [span for span in spans if span.trace == root.trace]
            tree = _tree(trace, root, prefix)
            if tree != expected.get(name):
                found.append(f"expected the trace\n{expected.get(name)}found\n{tree}")
            found += self._context_problems(name, trace)
            if tree.count("\n") != len(trace):
                found.append(f"spans with an unknown parent in the trace of {name}: {[str(span) for span in trace]}")
        for span in spans:
            if span.trace not in traces and (span.name not in HANDSHAKE or span.parent is not None):
                found.append(f"in a trace of its own: {span}")
            if span.kind != "INTERNAL" and span.scope != "mcpline":
                found.append(f"{span} has the scope {span.scope}")
            if span.error is not None:
                found.append(f"{span} failed: {span.error} {span.attributes}")
            if span.name.startswith("tools/call"):
                found += self._attribute_problems(span)
        return found

    def _attribute_problems(self, span: Span) -> list[str]:
        """Checks what spans have in every language; `goldens` checks all attributes, of two of them."""
        expected = {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": span.name.removeprefix("tools/call "),
            "gen_ai.operation.name": "execute_tool",
            "mcp.protocol.version": self.chain.revision,
        }
        if span.kind == "SERVER":
            expected["network.transport"] = "pipe" if self.chain.transport == "stdio" else "tcp"
        found = {name: span.attributes.get(name) for name in expected}
        return [] if found == expected else [f"{span} has the attributes {found}, expected {expected}"]

    def _context_problems(self, name: str, trace: list[Span]) -> list[str]:
        """Compares what the last server in C has received with the span of the client that has called it."""
        callers = [
            span
            for span in trace
            if (span.kind, span.name) == ("CLIENT", "tools/call trace_context")
            and span.service.endswith(self.chain.programs[-2])
        ]
        expected = [f"00-{caller.trace}-{caller.id}" for caller in callers]
        received = self.received.get(name, {}).get("traceparent", "")
        # The flags after the ids may also say how the ids were made.
        if [received.rpartition("-")[0]] == expected and int(received[-2:], 16) & 1:
            return []
        return [f"{name}: the server in C received {received}, expected {expected} and a sampled trace"]


def _tree(spans: list[Span], root: Span, prefix: str, depth: int = 0) -> str:
    """Renders a span and those below it. Siblings are ordered as what they are; expectations are, too."""
    below = sorted(_tree(spans, span, prefix, depth + 1) for span in spans if span.parent == root.id)
    # A call that has been sent again has nothing below it, and comes last.
    below.sort(key=lambda text: text.count("\n") == 1 and "SERVER" in text)
    return f"{'  ' * depth}{root.service.removeprefix(prefix)} {root.kind} {root.name}\n" + "".join(below)


def all_chains() -> list[Chain]:
    """Returns the chains to run."""
    chains = []
    for revision in REVISIONS:
        for transport in ("stdio", "http"):
            chains.append(Chain(("proxy", "relay", "context"), transport, revision))
            chains.append(Chain(("relay", "context"), transport, revision))
            chains.append(Chain(("relay", "forward", "context"), transport, revision))
    return chains
