"""Inspection of plain functions through their code gives the same results as `inspect`."""

from __future__ import annotations

import functools
import inspect

import pytest
from mcpline import _callables, _docstrings


def nothing(): ...
def positional(a, b=1, /, c=2): ...
def keywords(a, *, b, c=None): ...
def variable(a, *rest, b=1, **others): ...
def with_locals(a, b=1):
    c = a
    return c, b


async def asynchronous(a): ...


def closing_over():
    outer = 1

    def inner(a, *, b=outer):
        return outer, a, b

    return inner


PLAIN = [nothing, positional, keywords, variable, with_locals, asynchronous, closing_over(), lambda a, b=1: a]


def described(parameters):
    return [(parameter.name, parameter.default, parameter.keyword_only, parameter.stars) for parameter in parameters]


@pytest.mark.parametrize("function", PLAIN)
def test_the_parameters_of_a_plain_function_are_those_of_its_signature(function):
    assert sorted(described(_callables.signature_parameters(function)), key=repr) == sorted(
        described(_callables._signature_parameters_of_any(function)), key=repr
    )
    assert _callables.is_async(function) == inspect.iscoroutinefunction(function)


def test_attributes_set_by_decorators_are_respected():
    @functools.wraps(positional)
    def wrapper(*arguments):
        return positional(*arguments)

    assert [parameter.name for parameter in _callables.signature_parameters(wrapper)] == ["a", "b", "c"]
    assert _callables.annotated_function(wrapper) is positional


def test_a_function_marked_as_a_coroutine_function_is_one():
    def marked():
        return asynchronous(1)

    marked._is_coroutine = True  # type: ignore[attr-defined]
    assert _callables.is_async(marked)


@pytest.mark.parametrize(
    "text",
    [
        "One line.",
        "  One line.  ",
        "First.\n\n    Second.\n      Third.\n    ",
        "\n    First.\n\tSecond.\n",
        " ",
        "a\n b\nc",
    ],
)
def test_docstrings_are_cleaned_as_usual(text):
    assert "\n".join(_docstrings.clean(text)) == inspect.cleandoc(text)


def test_decorated_functions_have_the_annotations_of_the_original():
    @functools.lru_cache
    def cached(a: int, b: str = "") -> str:
        """Compute."""

    class Decorator:
        def __init__(self, function):
            functools.update_wrapper(self, function)

        def __call__(self, *arguments, **keywords): ...

    for decorated in (cached, Decorator(cached), functools.partial(cached)):
        assert _callables.annotated_function(decorated) is cached.__wrapped__
        assert _callables.docstring(decorated) == "Compute."
