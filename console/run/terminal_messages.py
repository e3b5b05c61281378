"""Messages to the terminal: where pages are served, and what goes wrong."""

import ssl
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from console.run.child import read_record

SLOW_START = 60.0  # seconds until somebody who waits is told where to look
LOOK_SECONDS = 2.0  # between looks at what the programs do
TROUBLE = 3  # short lives in a row that are worth a line


def _to_itself() -> ssl.SSLContext:
    """This process asks itself, by an address that its certificate may not have."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class TerminalMessages:
    """Call `each_step` often. `message` is what stands below the address when pages are served."""

    def __init__(self, run: Path, url: str, hosts: Sequence[str], message: str) -> None:
        self._run = run
        self._url = url
        self._host = hosts[0].lstrip(".") if hosts else "localhost"
        self._message = message
        # A proxy would not find this address. Built once, since it is asked ten times a second.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_to_itself())
        )
        self._slow_at: float | None = time.monotonic() + SLOW_START
        self._look_at = 0.0
        self._ready = False
        self._troubled: set[str] = set()

    def each_step(self) -> None:
        """Say what is new."""
        if not self._ready and self._answers():
            self._ready = True
            print(f"Job Console: {self._url}\n{self._message}Logs are in {self._run}.", flush=True)
            print("Ctrl-C stops the console; running jobs go on.", flush=True)
        if not self._ready and self._slow_at and time.monotonic() > self._slow_at:
            self._slow_at = None
            print(f"Still starting; {self._run / 'web.log'} may say why.", flush=True)
        if time.monotonic() > self._look_at:
            self._look_at = time.monotonic() + LOOK_SECONDS
            self._tell_trouble()

    def _answers(self) -> bool:
        # CONSOLE_HOSTS may not have this address.
        request = urllib.request.Request(f"{self._url}/readyz", headers={"Host": self._host})  # noqa: S310
        try:
            with self._opener.open(request, timeout=1):
                return True
        except OSError:  # URLError and HTTPError are of this kind
            return False

    def _tell_trouble(self) -> None:
        for path in self._run.glob("*.process"):
            record = read_record(path)
            if record and record.short_lives >= TROUBLE and path.stem not in self._troubled:
                self._troubled.add(path.stem)
                log = path.with_suffix(".log")
                print(f"{path.stem} keeps ending and is started again; {log} says why.", flush=True)
