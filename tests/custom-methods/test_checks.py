#!/usr/bin/env python3
"""Tests that a check finds a wrong outcome and accepts a right one."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from checks import MODERN, REVISIONS, error, jobs, request, unanswered  # noqa: E402


class Outcomes(unittest.TestCase):
    def test_results_have_the_wanted_members(self) -> None:
        check = request("a", "acme/echo", result={"text": "x", "list": [1]}, progress=1)
        right = {"text": "x", "list": [1]}
        self.assertIsNone(check.complaint({"result": right, "progress": 1}))
        self.assertIsNone(check.complaint({"result": right | {"resultType": "complete"}, "progress": 1}))
        for wrong in (
            {"result": right, "progress": 0},
            {"result": right},
            {"result": {"text": "y", "list": [1]}, "progress": 1},
            {"result": {"text": "x", "list": [1, 2]}, "progress": 1},
            {"result": {"text": "x", "list": [True]}, "progress": 1},
            {"result": {"text": "x"}, "progress": 1},
            {"result": {"text": {"more": 1}, "list": [1]}, "progress": 1},
            {"result": None, "progress": 1},
            {"error": {"kind": "rpc_error", "code": -32601, "text": ""}},
            {},
        ):
            self.assertIsNotNone(check.complaint(wrong), wrong)

    def test_errors_have_the_wanted_kind_code_and_text(self) -> None:
        check = request("a", "acme/none", **error(-32601), says="none")
        right = {"kind": "rpc_error", "code": -32601, "text": "no method acme/none"}
        self.assertIsNone(check.complaint({"error": right}))
        for wrong in ({"kind": "http_error"}, {"code": -32602}, {"code": None}, {"text": "no method"}):
            self.assertIsNotNone(check.complaint({"error": right | wrong}), wrong)
        self.assertIsNotNone(check.complaint({"result": {}}))

    def test_an_unanswered_request_fails_at_the_server_or_in_the_client(self) -> None:
        at_server = {"error": {"kind": "rpc_error", "code": -32603, "text": "… (-32601)"}}
        in_client = {"error": {"kind": "input_request_failed", "code": None, "text": "… (-32601)"}}
        for revision in REVISIONS:
            check = request("a", "acme/choose", **unanswered(revision, -32601))
            is_modern = revision == MODERN
            self.assertEqual(check.complaint(in_client) is None, is_modern)
            self.assertEqual(check.complaint(at_server) is None, not is_modern)

    def test_a_step_without_an_outcome_is_a_complaint(self) -> None:
        for revision in REVISIONS:
            for job in jobs("rust", "stdio", revision, with_endless=True):
                for check in job.checks:
                    if check.step["do"] != "notify":
                        self.assertIsNotNone(check.complaint({"result": None}), check.name)


if __name__ == "__main__":
    unittest.main()
