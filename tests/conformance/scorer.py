"""Scores a result folder of the official suite against a requirement list, more strictly than the suite itself.

The suite's exit code ignores warnings and scenarios without any checks. Here a scenario is

    MISSING   without a result
    FAIL      if a check failed
    WARN      if no check failed, but one warned
    VACUOUS   if no check failed, warned or succeeded: nothing was checked
    PASS      if a check succeeded, and none failed or warned

A cell is clean only if every required scenario is PASS. If the exit code of a scenario's client is known and not 0, the
scenario has failed, whatever the suite reports.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

# The suite names a scenario's folder `<scenario>-<time stamp>`, with the prefix `server-` on the server leg.
TIME_STAMP = re.compile(r"-\d{4}-\d{2}-\d{2}T[\d-]+Z$")


@dataclass(frozen=True)
class Unscored:
    """A scenario that the suite runs but does not count, with the reason and the leg."""

    scenario: str
    leg: str
    reason: str


@dataclass(frozen=True)
class Requirements:
    """The `requirements/<revision>.yaml` of a revision."""

    server: tuple[str, ...]
    client: tuple[str, ...]
    unscored: tuple[Unscored, ...]

    def required(self, leg: str) -> tuple[str, ...]:
        return self.server if leg == "server" else self.client


@dataclass
class Verdict:
    """The outcome of a scenario, with the checks that were not clean."""

    scenario: str
    status: str
    messages: list[str] = field(default_factory=list)
    reason: str | None = None

    @property
    def clean(self) -> bool:
        return self.status == "PASS"


@dataclass
class Score:
    """The score of a cell: the required scenarios in the order of the list, then those that are not scored."""

    required: list[Verdict]
    unscored: list[Verdict]

    @property
    def clean(self) -> int:
        return sum(verdict.clean for verdict in self.required)

    @property
    def complete(self) -> bool:
        return bool(self.required) and self.clean == len(self.required)


def read_requirements(text: str) -> Requirements:
    """Parses the small subset of YAML that the suite uses for its requirement lists."""
    lists: dict[str, list[str]] = {"server": [], "client": []}
    unscored: list[dict[str, str]] = []
    section = None
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if heading := re.fullmatch(r"(\w+):\s*", line):
            section = heading[1]
        elif section in lists and (item := re.fullmatch(r"\s+- (\S+)\s*", line)):
            lists[section].append(item[1])
        elif section == "not_scored" and (item := re.fullmatch(r"\s+- scenario: (\S+)\s*", line)):
            unscored.append({"scenario": item[1]})
        elif section == "not_scored" and unscored and (item := re.fullmatch(r"\s+(leg|reason): (\S+)\s*", line)):
            unscored[-1][item[1]] = item[2]
        elif section in lists:
            raise ValueError(f"unexpected line under {section}: {line!r}")
    return Requirements(tuple(lists["server"]), tuple(lists["client"]), tuple(Unscored(**item) for item in unscored))


def read_results(folder: Path, leg: str) -> dict[str, list[dict]]:
    """Returns the checks of every scenario with a result, by scenario name."""
    results: dict[str, list[dict]] = {}
    for file in sorted(folder.rglob("checks.json")):
        name = TIME_STAMP.sub("", file.parent.relative_to(folder).as_posix())
        if leg == "server":
            name = name.removeprefix("server-")
        results.setdefault(name, []).extend(json.loads(file.read_text()))
    return results


def read_ends(folder: Path) -> dict[str, int]:
    """Returns the exit code of each scenario's client, as recorded by `witness`."""
    return {file.name.replace(".", "/"): int(file.read_text()) for file in folder.iterdir()}


def judge(
    scenario: str, checks: list[dict] | None, reason: str | None = None, ends: dict[str, int] | None = None
) -> Verdict:
    """Returns the verdict on a scenario."""
    if checks is None:
        return Verdict(scenario, "MISSING", reason=reason)
    seen = {check["status"] for check in checks}
    if "FAILURE" in seen:
        status = "FAIL"
    elif "WARNING" in seen:
        status = "WARN"
    elif "SUCCESS" not in seen:
        status = "VACUOUS"
    else:
        status = "PASS"
    messages = [
        f"{check['status']} {check['id']}: {check.get('errorMessage') or check.get('description') or ''}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    ]
    if ends is not None and (code := ends.get(scenario)) != 0:
        status = "FAIL"
        messages.append("the client was not seen to end" if code is None else f"the client ended with {code}")
    return Verdict(scenario, status, messages, reason)


def score(folder: Path, requirements: Requirements, leg: str, ends: dict[str, int] | None = None) -> Score:
    """Scores the result folder of a cell; `ends` has the exit codes of the scenarios' clients, if known."""
    results = read_results(folder, leg)
    return Score(
        required=[judge(scenario, results.get(scenario), ends=ends) for scenario in requirements.required(leg)],
        unscored=[
            judge(item.scenario, results.get(item.scenario), item.reason, ends)
            for item in requirements.unscored
            if item.leg == leg
        ],
    )
