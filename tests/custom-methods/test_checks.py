#!/usr/bin/env python3
"""Tests that a check finds a wrong outcome and accepts a right one, and that no way to connect is left out."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from checks import LOCAL, MODERN, REVISIONS, error, jobs, request, unanswered  # noqa: E402
from harness.programs import LANGUAGES, MOUNTS  # noqa: E402
from connections import STANDALONE, TRANSPORTS, path, ways  # noqa: E402


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
        for transport, revisions in TRANSPORTS.items():
            for revision in revisions:
                for job in jobs("rust", transport, revision, with_endless=True):
                    for check in job.checks:
                        if check.step["do"] != "notify":
                            self.assertIsNotNone(check.complaint({"result": None}), check.name)

    def test_methods_that_require_a_scope_are_served_only_with_it(self) -> None:
        served = {"result": {"published": True}}
        refused = {"error": {"kind": "rpc_error", "code": -31001, "text": ""}}
        for transport, revisions in TRANSPORTS.items():
            found = [
                (check, job.principal)
                for job in jobs("rust", transport, revisions[-1])
                for check in job.checks
                if check.step.get("method") == "acme/publish"
            ]
            self.assertEqual([principal for _, principal in found], [1, 2, 3] if transport == "channel" else [1])
            for check, principal in found:
                may_publish = transport in LOCAL and principal != 2
                self.assertEqual(check.complaint(served) is None, may_publish, transport)
                self.assertEqual(check.complaint(refused) is None, not may_publish, transport)

    def test_a_notification_without_its_scope_must_not_be_handled(self) -> None:
        handled = {"result": {"content": [{"type": "text", "text": "gate opened"}]}}
        dropped = {"error": {"kind": "request_timed_out", "text": ""}}
        *_, last = jobs("rust", "channel", MODERN)[-2].checks
        self.assertIsNotNone(last.complaint(handled))
        self.assertIsNone(last.complaint(dropped))


class Ways(unittest.TestCase):
    def test_every_client_uses_every_server_on_every_revision(self) -> None:
        for client in LANGUAGES:
            for server in LANGUAGES:
                found = ways(client, server)
                self.assertEqual({revision for _, revision in found}, set(REVISIONS))
                for transport, revisions in STANDALONE.items():
                    self.assertTrue({(transport, revision) for revision in revisions} <= set(found))

    def test_every_language_has_every_transport_of_its_own_on_every_revision(self) -> None:
        for language in LANGUAGES:
            mounts = [name for name, mount in MOUNTS.items() if mount.language == language]
            for transport in ("memory", "socket", "channel", *mounts):
                for revision in REVISIONS:
                    self.assertIn((transport, revision), ways(language, language))

    def test_channels_and_mounts_are_used_by_two_clients(self) -> None:
        for server in LANGUAGES:
            for transport in ("channel", *(name for name, mount in MOUNTS.items() if mount.language == server)):
                clients = [client for client in LANGUAGES if (transport, MODERN) in ways(client, server)]
                self.assertEqual(len(clients), 2, transport)
                self.assertIn(server, clients)

    def test_2024_11_05_is_http_with_sse_at_a_mounted_server(self) -> None:
        self.assertEqual(path("sse", "2024-11-05"), "/sse")
        self.assertEqual(path("http", "2025-03-26"), "/mcp")
        for mount in MOUNTS:
            self.assertEqual([path(mount, revision) for revision in REVISIONS], ["/sse", *["/mcp"] * 4])


if __name__ == "__main__":
    unittest.main()
