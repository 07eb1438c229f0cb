"""Parser of docstrings: the description of a function, and of each parameter.

Supports the styles of Google, NumPy and Sphinx. Descriptions of parameters go into schemas; all other parts of a
docstring, such as examples, stay in the description.
"""

from __future__ import annotations

import re

__all__ = ["clean", "read"]

_GOOGLE_PARAMETERS = {
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
}
_GOOGLE_DROPPED = {"returns", "return", "yields", "yield", "raises"}
_GOOGLE_KEPT = {"example", "examples", "note", "notes", "warning", "warnings", "see also", "todo", "attributes"}
# Patterns are compiled when a docstring first needs them: most have one line, and compiling takes milliseconds.
_HEADING = r"^([A-Za-z][A-Za-z ]*):\s*$"
_GOOGLE_ITEM = r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$"
_NUMPY_ITEM = r"^\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$"
_SPHINX_PARAMETER = r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?\s)?\*{0,2}(\w+)\s*:\s*(.*)$"
_SPHINX_OTHER = r"^:(?:type|returns?|rtype|raises?|except|exception|var|ivar|cvar|meta)\b[^:]*:"


def read(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return the description, and the descriptions of parameters by name."""
    if not docstring:
        return "", {}
    lines = clean(docstring)
    kept: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        line = lines[position]
        sphinx = line.startswith(":")
        if sphinx and (field := re.match(_SPHINX_PARAMETER, line)) is not None:
            position, text = _continued(lines, position + 1)
            parameters[field[1]] = _join([field[2], *text])
        elif sphinx and re.match(_SPHINX_OTHER, line) is not None:
            position, _ = _continued(lines, position + 1)
        elif _underlined(lines, position):
            position = _numpy_section(lines, position, kept, parameters)
        elif (heading := _heading(lines, position)) is not None:
            position, body = _continued(lines, position + 1, blank_lines=True)
            if heading in _GOOGLE_PARAMETERS:
                _google_items(body, parameters)
        else:
            kept.append(line)
            position += 1
    description = "\n".join(kept).strip()
    if "\n\n\n" in description:
        description = re.sub(r"\n{3,}", "\n\n", description)
    return description, {name: text for name, text in parameters.items() if text}


def clean(docstring: str) -> list[str]:
    """Return the lines without common indentation, as `inspect.cleandoc` does."""
    first, *others = docstring.expandtabs().splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in others if line.strip()), default=0)
    lines = [first.lstrip(), *(line[margin:] for line in others)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def _heading(lines: list[str], position: int) -> str | None:
    """Return the name of the Google-style section that begins here, if it is one to remove."""
    line = lines[position]
    match = re.match(_HEADING, line) if line.rstrip().endswith(":") else None
    if match is None:
        return None
    name = match[1].lower()
    followed = position + 1 < len(lines) and lines[position + 1].startswith((" ", "\t"))
    return name if followed and name in _GOOGLE_PARAMETERS | _GOOGLE_DROPPED else None


def _underlined(lines: list[str], position: int) -> bool:
    """Return whether a NumPy-style section begins here: a heading above dashes."""
    if position + 1 >= len(lines):
        return False
    rule = lines[position + 1].strip()
    known = _GOOGLE_PARAMETERS | _GOOGLE_DROPPED | _GOOGLE_KEPT
    return len(rule) >= 3 and set(rule) == {"-"} and lines[position].strip().lower() in known


def _numpy_section(lines: list[str], position: int, kept: list[str], parameters: dict[str, str]) -> int:
    name = lines[position].strip().lower()
    end = position + 2
    while end < len(lines) and not _underlined(lines, end):
        end += 1
    body = lines[position + 2 : end]
    if name in _GOOGLE_PARAMETERS:
        _numpy_items(body, parameters)
    elif name not in _GOOGLE_DROPPED:
        kept.extend(lines[position:end])
    return end


def _numpy_items(body: list[str], parameters: dict[str, str]) -> None:
    names: list[str] = []
    text: list[str] = []

    def finish() -> None:
        for name in names:
            parameters[name] = _join(text)

    for line in body:
        item = re.match(_NUMPY_ITEM, line)
        if item is not None and not line.startswith((" ", "\t")):
            finish()
            names = [name.strip().lstrip("*") for name in item[1].split(",")]
            text = []
        else:
            text.append(line)
    finish()


def _google_items(body: list[str], parameters: dict[str, str]) -> None:
    depth = min((_indent(line) for line in body if line.strip()), default=0)
    name: str | None = None
    text: list[str] = []
    for line in body:
        item = re.match(_GOOGLE_ITEM, line[depth:])
        if item is not None and _indent(line) == depth:
            if name is not None:
                parameters[name] = _join(text)
            name, text = item[1], [item[2]]
        else:
            text.append(line)
    if name is not None:
        parameters[name] = _join(text)


def _continued(lines: list[str], position: int, *, blank_lines: bool = False) -> tuple[int, list[str]]:
    """Return the end of the indented lines from here on, and the lines."""
    start = position
    while position < len(lines):
        line = lines[position]
        if not line.strip():
            rest = next((later for later in lines[position:] if later.strip()), "")
            if not blank_lines or not rest.startswith((" ", "\t")):
                break
        elif not line.startswith((" ", "\t")):
            break
        position += 1
    return position, lines[start:position]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
