"""Tests of the scorer on small made-up results. Run: `python3 -m unittest discover -s tests/conformance`."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import scorer  # noqa: E402

REQUIREMENTS = """\
# a comment
server:
  - ping
  - server-initialize
  - tools-list

client:
  - auth/metadata-default

not_scored:
  - scenario: tasks-lifecycle
    leg: server
    reason: extension
    note: >-
      words
  - scenario: auth/dpop
    leg: client
    reason: extension
"""


class ScorerTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.requirements = scorer.read_requirements(REQUIREMENTS)

    def leave(self, name, *statuses):
        place = self.folder / f"{name}-2026-01-02T03-04-05-678Z"
        place.mkdir(parents=True)
        checks = [{"id": f"check-{i}", "status": status, "errorMessage": "words"} for i, status in enumerate(statuses)]
        (place / "checks.json").write_text(json.dumps(checks))

    def statuses(self, leg="server"):
        result = scorer.score(self.folder, self.requirements, leg)
        return {verdict.scenario: verdict.status for verdict in result.required}

    def test_the_requirement_list_is_read_with_its_unscored_part(self):
        self.assertEqual(self.requirements.server, ("ping", "server-initialize", "tools-list"))
        self.assertEqual(self.requirements.client, ("auth/metadata-default",))
        self.assertEqual(self.requirements.unscored[0], scorer.Unscored("tasks-lifecycle", "server", "extension"))

    def test_a_scenario_without_result_is_missing(self):
        self.assertEqual(self.statuses()["ping"], "MISSING")

    def test_only_a_leading_server_prefix_of_the_folder_is_dropped(self):
        self.leave("server-server-initialize", "SUCCESS")
        self.assertEqual(self.statuses()["server-initialize"], "PASS")

    def test_a_failed_check_fails_the_scenario(self):
        self.leave("server-ping", "SUCCESS", "WARNING", "FAILURE")
        self.assertEqual(self.statuses()["ping"], "FAIL")

    def test_a_warning_is_not_clean(self):
        self.leave("server-ping", "SUCCESS", "WARNING")
        self.assertEqual(self.statuses()["ping"], "WARN")

    def test_skips_and_notes_alone_are_vacuous(self):
        self.leave("server-ping", "SKIPPED", "INFO")
        self.leave("server-tools-list")
        self.assertEqual(self.statuses()["ping"], "VACUOUS")
        self.assertEqual(self.statuses()["tools-list"], "VACUOUS")

    def test_a_cell_is_complete_only_when_every_required_scenario_passes(self):
        for name in ("ping", "server-initialize", "tools-list"):
            self.leave(f"server-{name}", "SUCCESS", "SKIPPED")
        self.assertTrue(scorer.score(self.folder, self.requirements, "server").complete)
        self.leave("auth/metadata-default", "SUCCESS", "WARNING")
        self.assertFalse(scorer.score(self.folder, self.requirements, "client").complete)

    def test_nested_scenario_names_keep_their_folder(self):
        self.leave("auth/metadata-default", "SUCCESS")
        self.assertEqual(self.statuses("client")["auth/metadata-default"], "PASS")

    def test_a_client_that_reports_a_failure_has_failed(self):
        self.leave("auth/metadata-default", "SUCCESS")
        self.leave("auth/dpop", "SUCCESS")
        ends = self.folder / "ends"
        ends.mkdir()
        (ends / "auth.metadata-default").write_text("0\n")
        result = scorer.score(self.folder, self.requirements, "client", scorer.read_ends(ends))
        self.assertEqual((result.required[0].status, result.unscored[0].status), ("PASS", "FAIL"))
        (ends / "auth.metadata-default").write_text("1\n")
        result = scorer.score(self.folder, self.requirements, "client", scorer.read_ends(ends))
        self.assertEqual(result.required[0].messages, ["the client ended with 1"])


if __name__ == "__main__":
    unittest.main()
