"""Fetching the code that a plan asks for into a replica's own folder, wherever the replica will run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.node.command import Command
from jobs.node.measure import Patience
from jobs.node.sandbox.opening import open_bound
from jobs.node.sandbox.view import CannotLay, Laid
from jobs.node.staging import git, targets
from jobs.node.staging.provisions import Bound, Code, Kind
from jobs.node.wrapper.errand import Errand
from jobs.node.wrapper.outcome import Cause, Exit
from jobs.node.wrapper.steps import Step, Steps

_KEY: Final = ".git-key"


@dataclass(frozen=True, slots=True)
class Site:
    """Where git runs: `tmp` and `house` are the replica's temporary folder and the console's files as git
    finds them, `path` is the PATH, `folder` is where it puts code and `seen` where this process finds that,
    `wrap` makes of a command one that runs there; `guard` goes before git where it speaks with others.
    """

    tmp: str
    house: str
    path: str
    folder: Callable[[Code], str]
    seen: Callable[[Code], str]
    inside: Callable[[], None]
    wrap: Callable[[Command], Command] = lambda command: command
    guard: Callable[[Code], Sequence[str]] = lambda _: ()


def source_place(index: int) -> str:
    """Where git finds a repository of this machine, in a view."""
    return f"{targets.HOUSE}/source-{index}"


def sources(errand: Errand) -> list[Laid]:
    """The repositories of this machine that code is fetched from, opened; CannotLay."""
    return [
        Laid(source_place(index), _open(errand, code), read_only=True, anywhere=True)
        for index, code in enumerate(errand.plan.codes)
        if code.git and code.folder
    ]


def _open(errand: Errand, code: Code) -> int:
    try:
        return open_bound(Bound("", Kind.FOLDER, code.folder), errand.owner)
    except OSError as error:
        raise CannotLay(f"{code.folder}: {error.strerror}") from error


def fetch(errand: Errand, index: int, source: str, site: Site, steps: Steps) -> Exit | None:
    """Fetch the plan's code number `index` from `source`, as git finds that there."""
    code = errand.plan.codes[index]
    folder = site.folder(code)
    patience = Patience(code.patience_s, site.seen(code), code.most_bytes)
    with _key(errand) as key:
        env = _environment(errand, code, site, key)
        guard = site.guard(code) if code.shut and not _by_proxy(env) else ()
        trouble = None
        for commands in git.commands(code, source, folder):
            for argv in commands:
                before = guard if "fetch" in argv else ()
                command = site.wrap(Command([*before, *argv], env, "/", errand.owner))
                trouble = steps.run(Step(Cause.CODE, command, code.name, site.inside, patience))
                if trouble is not None:
                    break
            if trouble is None or trouble.cause is not Cause.CODE or patience.why:
                break
        return trouble


def _environment(errand: Errand, code: Code, site: Site, key: str) -> dict[str, str]:
    said = {} if code.alone else {**errand.plan.env, **errand.place.role.env}
    login = str(errand.secrets.get("code") or "")
    found = git.environment(code.uri, said, f"{site.house}/{git.CONFIG}", login, key and f"{site.tmp}/{key}")
    own = {"HOME": site.tmp, "TMPDIR": site.tmp, "PATH": site.path, "LANG": "C.UTF-8", **errand.marked()}
    return {**found, **own}


def _by_proxy(env: Mapping[str, str]) -> bool:
    """Whether a proxy that the job names looks for the host, and not this machine."""
    return any("proxy" in name.lower() and not name.lower().startswith("no_") for name in env)


@contextlib.contextmanager
def _key(errand: Errand) -> Iterator[str]:
    """The name of the file with the job's key, in the replica's temporary folder, meanwhile; '' without."""
    own = errand.secrets.get("env", {}).get(git.KEY_SECRET)
    text = str(errand.secrets.get("code_key") or own or "")
    if not text:
        yield ""
        return
    path = Path(errand.room().tmp or str(errand.file("tmp")), _KEY)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
        if os.geteuid() == 0:
            os.fchown(fd, *errand.owner)
    try:
        yield _KEY
    finally:
        path.unlink(missing_ok=True)
