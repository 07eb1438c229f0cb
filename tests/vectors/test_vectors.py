#!/usr/bin/env python3
"""Tests that patterns, schemas and the runner detect wrong messages."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from harness import schemas  # noqa: E402
from pattern import BadPattern, differences, fill  # noqa: E402
from vector import BadVector, all_vectors  # noqa: E402

# A server that answers the handshake, and everything else wrongly as its argument says.
LIAR = """
import json, sys
wrong = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
                            "serverInfo": {"name": "liar", "version": "1"}}
    else:
        answer.update(wrong)
    print(json.dumps(answer), flush=True)
"""


class Patterns(unittest.TestCase):
    def fits(self, pattern: object, seen: object) -> None:
        self.assertEqual(differences(pattern, seen, {"revision": "2025-06-18"}), [])

    def differs(self, pattern: object, seen: object) -> None:
        self.assertNotEqual(differences(pattern, seen, {"revision": "2025-06-18"}), [])

    def test_plain_json_is_compared_exactly(self) -> None:
        self.fits({"a": [1, "x", None, True]}, {"a": [1, "x", None, True]})
        for seen in ({"a": 1, "b": 2}, {}, {"a": "1"}, {"a": True}, [1], None):
            self.differs({"a": 1}, seen)
        self.differs(0, False)
        self.differs([1, 2], [2, 1])
        self.differs([1], [1, 1])

    def test_each_placeholder_matches_and_rejects(self) -> None:
        for pattern, good, bad in (
            ("$string", "x", 1), ("$integer", 1, 1.5), ("$integer", 1, True), ("$object", {}, []), ("$array", [], {}),
            ({"$has": {"a": 1}}, {"a": 1, "b": 2}, {"b": 2}),
            ({"$contains": "b"}, "abc", "ac"), ({"$without": "b"}, "ac", "abc"),
            ({"$json": {"a": 1}}, '{"a": 1}', '{"a": 2}'), ({"$json": 1}, "1", "x"),
            ({"$repeat": ["ab", 2]}, "abab", "ab"),
            ({"$lists": [1]}, [2, 1], [2]), ({"$lists none": [1]}, [2], [2, 1]),
            ({"$each": "$string"}, ["a"], ["a", 1]), ({"$each": "$string"}, ["a"], []),
            ({"$one of": [1, 2]}, 2, 3), ({"$all": ["$string", {"$contains": "x"}]}, "x", "y"),
            ({"$not": 1}, 2, 1),
            ({"$since": {"2024-11-05": 1, "2025-06-18": 2, "2025-11-25": 3}}, 2, 1),
        ):
            self.fits(pattern, good)
            self.differs(pattern, bad)

    def test_members_may_be_optional_or_of_a_later_revision(self) -> None:
        self.fits({"a": {"$optional": 1}}, {})
        self.differs({"a": {"$optional": 1}}, {"a": 2})
        self.fits({"a": {"$since": {"2025-11-25": 1}}}, {})
        self.differs({"a": {"$since": {"2025-11-25": 1}}}, {"a": 1})
        self.differs({"a": "$any"}, {})

    def test_captured_values_are_compared_and_sent(self) -> None:
        values = {"revision": "2025-06-18"}
        self.assertEqual(differences({"c": {"$capture": "cursor", "as": "$integer"}}, {"c": 7}, values), [])
        self.assertEqual(differences("${cursor}", 7, values), [])
        self.assertNotEqual(differences("${cursor}", 8, values), [])
        self.assertEqual(fill({"x": "${cursor}", "y": "a ${cursor}"}, values), {"x": 7, "y": "a 7"})
        with self.assertRaises(BadPattern):
            fill("${unknown}", values)
        with self.assertRaises(BadPattern):
            differences("$nonsense", 1, values)


class Files(unittest.TestCase):
    def test_a_file_with_an_unknown_step_or_option_is_refused(self) -> None:
        for step in ({"reqest": "ping"}, {"request": "ping", "parms": {}}):
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "every"
                place.mkdir()
                (place / "x.json").write_text(json.dumps({"about": "", "vectors": [{"name": "x", "steps": [step]}]}))
                with self.assertRaises(BadVector):
                    all_vectors(Path(folder))


class Runner(unittest.TestCase):
    def run_against(self, wrong: dict, steps: list[dict]) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "2025-06-18"
            place.mkdir()
            vector = {"name": "a vector", "transports": ["stdio"], "steps": steps}
            (place / "liar.json").write_text(json.dumps({"about": "", "vectors": [vector]}))
            (Path(folder) / "liar.py").write_text(LIAR)
            command = f"{sys.executable} {folder}/liar.py '{json.dumps(wrong)}'"
            return subprocess.run(
                [sys.executable, str(HERE / "run"), "--vectors", folder, "--command", command],
                capture_output=True, text=True,
            )

    def test_a_right_answer_passes(self) -> None:
        done = self.run_against({}, [{"request": "ping"}, {"result": {}}])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 passed, 0 failed", done.stdout)

    def test_a_wrong_answer_fails_and_is_shown_with_its_step(self) -> None:
        done = self.run_against({"result": {"x": 1}}, [{"request": "ping"}, {"result": {}}])
        self.assertEqual(done.returncode, 1)
        self.assertIn('step 2 {"result": {}}', done.stdout)
        self.assertIn("/x: not expected, got 1", done.stdout)

    def test_a_wrong_id_an_unexpected_answer_and_a_missing_one_fail(self) -> None:
        another = self.run_against({"id": 99}, [{"request": "ping"}, {"close": "input"}, {"result": {}}])
        self.assertEqual(another.returncode, 1)
        self.assertIn("expected no more", self.run_against({}, [{"request": "ping"}]).stdout)
        self.assertEqual(self.run_against({}, [{"close": "input"}, {"result": {}, "of": "nobody"}]).returncode, 1)

    def test_an_answer_that_only_the_schema_refuses_fails(self) -> None:
        if not schemas.FOLDER.is_dir():
            self.skipTest("the schemas are absent")
        done = self.run_against({"result": {"tools": [{"name": 1}]}}, [{"request": "tools/list"}, {"result": "$any"}])
        self.assertEqual(done.returncode, 1)
        self.assertIn("against the schema: 2025-06-18 ListToolsResult", done.stdout)


@unittest.skipUnless(schemas.FOLDER.is_dir(), "the schemas are absent")
class SchemasFindWhatIsWrong(unittest.TestCase):
    checker: schemas.Schemas

    @classmethod
    def setUpClass(cls) -> None:
        cls.checker = schemas.Schemas()

    def handshake(self, revision: str) -> schemas.Conversation:
        talk = schemas.Conversation(self.checker)
        talk.client({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": revision, "capabilities": {}, "serverInfo": info}
        self.assertEqual(talk.server({"jsonrpc": "2.0", "id": 0, "result": result}), [])
        return talk

    def answered(self, revision: str, method: str, result: object) -> list[str]:
        talk = self.handshake(revision)
        talk.client({"jsonrpc": "2.0", "id": 1, "method": method})
        return talk.server({"jsonrpc": "2.0", "id": 1, "result": result})

    def test_a_result_is_validated_by_the_method_of_its_request(self) -> None:
        self.assertEqual(self.answered("2025-03-26", "tools/list", {"tools": []}), [])
        self.assertNotEqual(self.answered("2025-03-26", "prompts/list", {"tools": []}), [])
        self.assertNotEqual(self.answered("2025-03-26", "ping", 1), [])
        self.assertNotEqual(self.answered("2025-03-26", "server/discover", {}), [])

    def test_custom_messages_are_validated_as_generic_messages(self) -> None:
        self.assertEqual(self.answered("2025-03-26", "acme/echo", {"any": 1}), [])
        self.assertNotEqual(self.answered("2025-03-26", "acme/echo", {"_meta": 1}), [])
        self.assertNotEqual(self.answered("2025-03-26", "other/echo", {"any": 1}), [])
        modern = {"jsonrpc": "2.0", "id": 1, "result": {"any": 1}}
        self.assertNotEqual(self.checker.violations("2026-07-28", modern, "acme/echo"), [])
        modern["result"] = {"any": 1, "resultType": "complete"}
        self.assertEqual(self.checker.violations("2026-07-28", modern, "acme/echo"), [])
        notification = {"jsonrpc": "2.0", "method": "acme/echoing", "params": {}}
        self.assertEqual(self.checker.violations("2025-03-26", notification), [])
        self.assertNotEqual(self.checker.violations("2025-03-26", notification | {"params": [1]}), [])
        self.assertNotEqual(self.checker.violations("2025-03-26", notification | {"method": "other/echoing"}), [])

    def test_content_is_validated_by_the_revision(self) -> None:
        audio = {"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}
        self.assertNotEqual(self.answered("2024-11-05", "tools/call", audio), [])
        self.assertEqual(self.answered("2025-03-26", "tools/call", audio), [])

    def test_messages_that_a_revision_does_not_have_are_found(self) -> None:
        elicitation = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create",
                    "params": {"message": "", "requestedSchema": {"type": "object", "properties": {}}}}
        self.assertNotEqual(self.handshake("2025-03-26").server(elicitation), [])
        self.assertEqual(self.handshake("2025-06-18").server(elicitation), [])
        error = {"jsonrpc": "2.0", "error": {"code": -32700, "message": ""}}
        self.assertNotEqual(self.handshake("2025-06-18").server(error), [])
        self.assertEqual(self.handshake("2025-11-25").server(error), [])
        self.assertNotEqual(self.handshake("2025-06-18").server([]), [])

    def test_structured_content_is_validated_by_the_output_schema(self) -> None:
        talk = self.handshake("2025-06-18")
        talk.client({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": output}
        self.assertEqual(talk.server({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}), [])
        talk.client({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "t"}})
        for structured, fits in (({"n": 1}, True), ({"n": "1"}, False), ({}, False), (None, False)):
            result = {"content": []} | ({} if structured is None else {"structuredContent": structured})
            self.assertEqual(talk.server({"jsonrpc": "2.0", "id": 2, "result": result}) == [], fits)

    def test_errors_of_2026_07_28_are_validated_by_their_code(self) -> None:
        talk = schemas.Conversation(self.checker, modern=True)
        talk.client({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
        error = {"code": -32021, "message": "", "data": {}}
        self.assertNotEqual(talk.server({"jsonrpc": "2.0", "id": 1, "error": error}), [])
        error["data"] = {"requiredCapabilities": {}}
        self.assertEqual(talk.server({"jsonrpc": "2.0", "id": 1, "error": error}), [])

    def test_a_result_of_2026_07_28_may_require_input(self) -> None:
        talk = schemas.Conversation(self.checker, modern=True)
        talk.client({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
        self.assertNotEqual(talk.server({"jsonrpc": "2.0", "id": 1, "result": {"content": []}}), [])
        asking = {"resultType": "input_required", "requestState": "s"}
        self.assertEqual(talk.server({"jsonrpc": "2.0", "id": 1, "result": asking}), [])


if __name__ == "__main__":
    unittest.main()
