"""One request on stdin, its answer on stdout: the words first, then the bytes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from jobs import frames
from jobs.backends.filing import changing, looking, packing
from jobs.backends.filing.ways import Root, Site, Trouble

_IN, _OUT = 0, 1
_PATIENT: Final = 10
"""What is left of an ended job is read without its limits, and so behind everybody else."""

_FIRST_TO_GO: Final = b"1000"
"""Where the job has no memory left it is not the job that pays for being looked at."""

_LOOKS: Final[Mapping[str, Callable[[Root, Sequence[str], Mapping[str, Any]], looking.Answer]]] = {
    "look": looking.look,
    "read": looking.read,
    "pack": packing.pack,
}
_CHANGES: Final[Mapping[str, Callable[[Root, Sequence[str], Mapping[str, Any]], dict[str, Any]]]] = {
    "make": changing.make,
    "rename": changing.rename,
    "remove": changing.remove,
}


def serve(site: Site) -> None:
    """Answer the one request; what breaks off has no end.

    A hangup is not the end: whoever asked is gone then, which says so on stdin, and what was half written is
    removed.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(_FIRST_TO_GO)
    if not site.live:
        os.nice(_PATIENT)
    about = {"live": site.live, "roots": [{"name": one.name, "label": one.label} for one in site.roots]}
    try:
        asked = frames.understood(frames.take(_IN, frames.LONGEST_WORDS))
        told, pieces = _answer(site, asked)
        _say({**told, **about})
        _send(pieces)
    except Trouble as trouble:
        _say({"trouble": trouble.code, "name": trouble.name, **about})
    except frames.Broken:
        return
    frames.give(_OUT, frames.END)


def _answer(site: Site, asked: Mapping[str, Any]) -> looking.Answer:
    verb = str(asked.get("do"))
    root, names = site.root(str(asked.get("root"))), [str(name) for name in asked.get("names", ())]
    if verb in _LOOKS:
        return _LOOKS[verb](root, names, asked)
    if not site.live:
        raise Trouble("ended")
    if verb == "put":
        changing.check_put(root, names, asked)
        _say({"ready": True})
        return changing.put(root, names, asked, lambda: frames.take(_IN)), iter(())
    if verb in _CHANGES:
        return _CHANGES[verb](root, names, asked), iter(())
    raise Trouble("failed", verb)


def _say(what: Mapping[str, Any]) -> None:
    frames.give(_OUT, frames.words(what))


def _send(pieces: Iterable[bytes]) -> None:
    """Trouble on the way leaves the answer without its end."""
    try:
        for piece in pieces:
            for start in range(0, len(piece), frames.LONGEST):
                frames.give(_OUT, frames.framed(piece[start : start + frames.LONGEST]))
    except Trouble as trouble:
        raise frames.Broken(trouble.code) from trouble
