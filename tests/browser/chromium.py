"""A real browser, controlled over its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Seconds after which the browser counts as hanging; operations take about a second.
TEST_TIMEOUT = 60


def found() -> str | None:
    """Returns the browser of this machine, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserFailed(Exception):
    """The browser did not do what was requested."""


class Page:
    """A tab. Records its network requests and its console errors."""

    def __init__(self, program: str):
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads from descriptor 3 and writes to descriptor 4.
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", program, "--headless", "--no-sandbox", "--remote-debugging-pipe",
             "--disable-gpu", "--no-first-run", "--disable-background-networking", "--window-size=900,700",
             f"--user-data-dir={self._folder.name}", "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._rest = b""
        self._number = 0
        self._session = None
        # The current document, and those that have finished loading.
        self._shown = ""
        self._loaded: set[str] = set()
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._write)
        os.close(self._read)
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def open(self, url: str) -> None:
        """Opens a URL and waits until the final page has loaded."""
        document = self._call("Page.navigate", url=url)["loaderId"]
        while document not in self._loaded:
            self._receive()

    def click(self, selector: str) -> None:
        """Clicks on an element that leads to another page, and waits for that page."""
        before = self._shown
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        while self._shown == before or self._shown not in self._loaded:
            self._receive()

    def evaluate(self, expression: str) -> object:
        """Returns the value of a JavaScript expression, or that of its promise."""
        settled = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return settled["result"].get("value")

    def text(self) -> str:
        """Returns the visible text of the page."""
        return str(self.evaluate("document.body.innerText"))

    def prefer(self, scheme: str) -> None:
        """Emulates the preferred color scheme `light` or `dark`."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width: int, height: int) -> None:
        """Resizes the window."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, file: Path) -> None:
        """Saves a screenshot of the page."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def _call(self, method: str, **parameters: object) -> dict:
        number = self._send(method, parameters)
        while (message := self._receive()).get("id") != number:
            pass
        return self._checked(message)

    def _checked(self, message: dict) -> dict:
        if "error" in message or "exceptionDetails" in message.get("result", {}):
            raise BrowserFailed(json.dumps(message))
        if failed := message["result"].get("errorText"):
            raise BrowserFailed(failed)
        return message["result"]

    def _send(self, method: str, parameters: dict) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._number

    def _receive(self) -> dict:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], TEST_TIMEOUT)[0]:
                raise BrowserFailed(f"nothing came for {TEST_TIMEOUT} s")
            if not (read := os.read(self._read, 1 << 20)):
                raise BrowserFailed("the browser is gone")
            self._rest += read
        line, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(line)
        match message.get("method"):
            case "Page.frameNavigated":
                self._shown = message["params"]["frame"]["loaderId"]
            case "Page.lifecycleEvent" if message["params"]["name"] == "load":
                self._loaded.add(message["params"]["loaderId"])
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            case "Log.entryAdded":
                self.complaints.append(message["params"]["entry"]["text"])
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(message["params"]))
        return message
