"""Misspelt options, and options with values of another type, are refused with an error that names them."""

import pytest
from mcpline import Client, Server, UsageError
from mcpline.auth import ResourceServer


def handler() -> str:
    """Answer."""
    return ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotations": {"readOnlyHint": "yes"}}, "`annotations`: 'readOnlyHint' must be a bool, not str"),
        ({"annotations": {"title": 5}}, "`annotations`: 'title' must be a string, not int"),
        ({"annotations": {"readonlyHint": True}}, "unknown key 'readonlyHint'; did you mean 'readOnlyHint'"),
        ({"description": 5}, "`description` must be a string, not int"),
        ({"title": 5}, "`title` must be a string, not int"),
        ({"meta": 5}, "`meta` must be a mapping, not int"),
        ({"icons": "a.png"}, "`icons` must be a list of icons"),
    ],
)
def test_the_values_of_a_tool_are_checked(options, message):
    with pytest.raises(UsageError, match=rf"^tool 'handler': .*{message}"):
        Server("test", "1").tool(**options)(handler)


def test_a_misspelt_option_of_a_decorator_gets_a_suggestion():
    server = Server("test", "1")
    with pytest.raises(TypeError, match=r"^Server\.tool\(\) has no option 'descripton': did you mean 'description'\?$"):
        server.tool(descripton="x")
    with pytest.raises(TypeError, match=r"^Server\.prompt\(\) has no option 'titel': did you mean 'title'\?$"):
        server.prompt("name", titel="x")


def test_a_decorator_takes_the_options_of_a_subclass():
    audited = []

    class Audited(Server):
        def add_tool(self, call, *, audited_by, **options):
            audited.append(audited_by)
            super().add_tool(call, **options)

        def add_prompt(self, call, *, audited_by="none", **options):
            audited.append(audited_by)
            super().add_prompt(call, **options)

    server = Audited("test", "1")
    server.tool(title="Title", audited_by="ada")(handler)
    server.prompt("name", title="Title")(handler)
    assert audited == ["ada", "none"]
    with pytest.raises(TypeError, match="descripton"):
        server.tool(descripton="x", audited_by="ada")(handler)


@pytest.mark.parametrize("number", [0, -1, 2.5, True, "8", 1_000_000])
def test_the_number_of_worker_threads_is_checked(number):
    with pytest.raises(UsageError, match=r"`worker_threads` must be an int from 1 to 4096, not"):
        Server("test", "1", worker_threads=number)


def test_a_text_is_not_taken_for_the_version():
    with pytest.raises(UsageError, match=r"`version`: 'Use this for weather' contains spaces; .*`instructions=`"):
        Server("weather", "Use this for weather")
    with pytest.raises(TypeError, match=r"`version` must be a string, such as '1.0.0', not float"):
        Server("weather", 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"annotations": {"lastModified": 5}}, "'lastModified' must be a string in ISO 8601, not int"),
        ({"annotations": {"audience": "user"}}, "'audience' must be a list of 'user' and 'assistant', not str"),
        ({"annotations": {"priority": "high"}}, "'priority' must be a number, not str"),
        ({"mime_type": 5}, "`mime_type` must be a string, not int"),
        ({"size": "5"}, "`size` must be an int, not str"),
    ],
)
def test_the_values_of_a_resource_are_checked(options, message):
    with pytest.raises(UsageError, match=rf"^resource 'a://b': .*{message}"):
        Server("test", "1").resource("a://b", **options)(handler)


def test_the_values_of_a_change_are_checked():
    server = Server("test", "1")
    server.tool(handler)
    server.update_tool("handler", description=None)
    with pytest.raises(UsageError, match=r"^tool 'handler': `description` must be a string, not int"):
        server.update_tool("handler", description=5)
    with pytest.raises(TypeError, match="did you mean 'description'"):
        server.update_tool("handler", descripton="x")


@pytest.mark.parametrize(("misspelt", "meant"), [("instuctions", "instructions"), ("page_szie", "page_size")])
def test_a_misspelt_setting_of_a_server_gets_a_suggestion(misspelt, meant):
    with pytest.raises(UsageError, match=rf"^Server\(\) has no setting '{misspelt}': did you mean '{meant}'\?$"):
        Server("test", "1", **{misspelt: 1})


def test_an_invalid_setting_keeps_its_error():
    with pytest.raises(UsageError, match="2020-01-01"):
        Server("test", "1", revisions=["2020-01-01"])


def test_a_misspelt_setting_of_run_gets_a_suggestion():
    with pytest.raises(UsageError, match=r'^run\("http"\) has no setting \'hots\': did you mean \'host\'\?$'):
        Server("test", "1").run("http", hots="::1")


def test_a_misspelt_option_of_asgi_gets_a_suggestion():
    with pytest.raises(TypeError, match=r"^asgi\(\) has no option 'alowed_hosts': did you mean 'allowed_hosts'\?$"):
        Server("test", "1").asgi(alowed_hosts=["x"])


@pytest.mark.parametrize("serve", [lambda server, **options: server.run("http", **options), Server.asgi])
def test_a_string_is_no_list_of_strings(serve):
    with pytest.raises(UsageError, match=r"^`allowed_hosts` must be a list, not str: write allowed_hosts=\['x'\]$"):
        serve(Server("test", "1"), allowed_hosts="x")


def test_a_misspelt_option_of_a_client_gets_a_suggestion():
    with pytest.raises(TypeError, match="has no option 'timout'; did you mean 'timeout'"):
        Client.memory(Server("test", "1"), timout=1)


@pytest.mark.parametrize("serve", [lambda server, **options: server.run("http", **options), Server.asgi])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"allowed_origins": ["app.example.com"]},
            '"app.example.com" has no scheme.*: write "https://app.example.com"',
        ),
        ({"allowed_hosts": ["https://x"]}, '"https://x" is a URL.*: write "x"'),
        ({"path": "mcp"}, '"mcp" does not begin with a slash: write "/mcp"'),
    ],
)
def test_entries_that_no_request_can_match_are_refused(serve, options, message):
    with pytest.raises(UsageError, match=rf"^`{next(iter(options))}`: {message}$"):
        serve(Server("test", "1"), **options)


def test_a_resource_server_that_could_check_nothing_is_refused():
    with pytest.raises(UsageError, match=r"^`ResourceServer`: name the resource, .* or pass `verify`"):
        ResourceServer()
