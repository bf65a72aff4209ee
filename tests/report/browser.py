"""A headless Chromium, driven by its own debugging protocol over two pipes: nothing needs to be installed."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
"""Seconds for one answer: on a machine that does other things the browser takes ten to start."""


def chromium():
    """The browser, or a skip that names it."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium); see CONTRIBUTING.md")
    return found


def _high(fd):
    """The same pipe under a number that is out of the way of those the browser expects: 3 and 4."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return high


class Browser:
    """One process, one tab. Every request and every word on the console is kept."""

    def __init__(self, folder: Path) -> None:
        self._read, theirs_to_write = map(_high, os.pipe())
        theirs_to_read, self._write = map(_high, os.pipe())
        self.requests: list[str] = []
        self.said: list[str] = []
        self._number, self._buffer, self._events, self._answers = 0, b"", [], {}
        command = [
            chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--hide-scrollbars", "--disable-extensions", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", f"--user-data-dir={folder}",
            "--remote-debugging-pipe",
        ]  # fmt: skip
        nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        pipes = [(os.POSIX_SPAWN_DUP2, theirs_to_read, 3), (os.POSIX_SPAWN_DUP2, theirs_to_write, 4)]
        self._process = os.posix_spawn(command[0], command, os.environ, file_actions=[*nowhere, *pipes])
        os.close(theirs_to_read)
        os.close(theirs_to_write)
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        """One command for the tab, and its answer."""
        return self._ask(method, session=self._session, **parameters)

    def open(self, path, *, width=1100, height=900, dark=False, media=""):
        """Load a file and wait for it; what was asked for and said before is forgotten."""
        self.requests.clear()
        self.said.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        self._events.clear()
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        self._wait_for("Page.loadEventFired")

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, script):
        """Press the mouse on the element that an expression gives."""
        self.run(f"({script}).scrollIntoView({{block: 'center'}})")
        x, y = self.run(
            f"(() => {{const b = ({script}).getBoundingClientRect(); "
            "return [b.left + b.width / 2, b.top + b.height / 2]})()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)

    def press(self, key, code=None, text=""):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            said = {"text": text} if text and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **said)

    def picture(self, path):
        """The whole page as a PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        image = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(image["data"]))

    def printed(self, path):
        """The page as it would be printed, as a PDF."""
        Path(path).write_bytes(base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"]))

    def close(self):
        """End the process that was started here."""
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)
        os.close(self._read)
        os.close(self._write)

    def _ask(self, method, *, session=None, **parameters):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": session} if session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while number not in self._answers:
            self._receive(deadline)
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _wait_for(self, event):
        deadline = time.monotonic() + PATIENCE
        while event not in self._events:
            self._receive(deadline)

    def _receive(self, deadline):
        ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"the browser did not answer within {PATIENCE:g} s"
        chunk = os.read(self._read, 1 << 20)
        assert chunk, "the browser ended"
        *messages, self._buffer = (self._buffer + chunk).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self._note(message)

    def _note(self, message):
        method, parameters = message["method"], message.get("params", {})
        self._events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(json.dumps(parameters))
        elif method == "Page.javascriptDialogOpening":
            self.said.append("a dialog")
            self.ask("Page.handleJavaScriptDialog", accept=True)
