"""Bringing data into a replica's own folders, and what is new in them back, by `carrier` as the job's user.

It runs where git does: in the replica's own view, or for a container in a view like a plain job's.  What is
secret reaches it by a file that only the job's user can read and that is gone once it was read.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs import data_mover
from jobs.node import kernel
from jobs.node.command import Command
from jobs.node.measure import Patience
from jobs.node.sandbox.view import CannotLay, Laid
from jobs.node.staging import targets
from jobs.node.staging.provisions import Code, Data, Tools
from jobs.node.wrapper.errand import Errand
from jobs.node.wrapper.outcome import Cause, Exit
from jobs.node.wrapper.steps import Step, Steps

PROGRAM: Final = f"{targets.HOUSE}/carrier"
PYTHON: Final = f"{targets.HOUSE}/python"
SITE: Final = f"{targets.HOUSE}/site"
CACHE: Final = f"{targets.HOUSE}/cache"
"""Where a view has them."""

ENVIRONMENTS: Final = "packages"
"""The folder of a cache in which installed packages are."""

_ENV: Final = "/usr/bin/env"
_LIBRARIES: Final = "LD_LIBRARY_PATH"
"""A Python that was built with a library of its own does not find it where it is laid."""

_MAIN: Final = "main.py"
_ORDER: Final = ".order"
_SEEN_ANYWAY: Final = ("/usr", "/usr/local")
_LIBRARY: Final = "fsspec"


def tools() -> Tools:
    """This console's own Python and libraries."""
    found = importlib.util.find_spec(_LIBRARY)
    site = Path(found.origin).parents[1] if found and found.origin else Path(sys.prefix)
    python, base = os.path.realpath(sys.executable), os.path.realpath(sys.base_prefix)
    return Tools(python, "" if base in _SEEN_ANYWAY else base, str(site))


@dataclass(frozen=True, slots=True)
class Site:
    """Where `carrier` runs: `tmp` is the replica's temporary folder as it finds it, and `real_tmp` as this
    process does; `folder` is the place of data as it finds that and `seen` as this process does; `wrap` makes
    of a command one that runs there.  `viewed` says whether that is a view.
    """

    tmp: str
    real_tmp: str
    viewed: bool
    folder: Callable[[Data], str]
    seen: Callable[[Data], str]
    inside: Callable[[], None]
    wrap: Callable[[Command], Command] = lambda command: command


def program(errand: Errand, *, viewed: bool) -> list[str]:
    """What a command line of `carrier` begins with."""
    found = errand.plan.tools
    assert found is not None
    if not viewed:
        return [found.python, "-I", "-S", str(_own_folder() / _MAIN)]
    main = ["-I", "-S", f"{PROGRAM}/{_MAIN}"]
    if not found.base:
        return [found.python, *main]
    moved = f"{PYTHON}/{os.path.relpath(found.python, found.base)}"
    return [_ENV, f"{_LIBRARIES}={PYTHON}/lib", moved, *main]


def guard(errand: Errand, code: Code, *, viewed: bool) -> Sequence[str]:
    """What goes before git, so that it connects to nothing but what was looked at."""
    if errand.plan.tools is None:  # of a plan that an earlier release made
        return ()
    return [*program(errand, viewed=viewed), "--git", code.uri, "1" if code.inside else "0"]


def laid(errand: Errand, *, with_site: bool = True) -> list[Laid]:
    """What `carrier` needs in a view; CannotLay."""
    found = errand.plan.tools
    if found is None:
        return []
    folders = {PROGRAM: str(_own_folder())}
    if found.base:
        folders[PYTHON] = found.base
    if errand.plan.datas and with_site:
        folders[SITE] = found.site
    return [Laid(path, _open(folder), read_only=True, anywhere=True) for path, folder in folders.items()]


def laid_cache(errand: Errand) -> list[Laid]:
    """The person's cache in a view, which can be written to; `put_away` takes it from there."""
    return [Laid(CACHE, _open(cache(errand)), anywhere=True)] if errand.plan.cache else []


def cache(errand: Errand) -> str:
    """The person's cache on this machine, made when it is not there; nobody else's job can reach it."""
    path = Path(errand.plan.cache)
    path.parent.mkdir(mode=0o711, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    # Only root makes anything there: what is root's was made a moment ago, or by somebody who died over it.
    if os.geteuid() == 0 and path.lstat().st_uid == 0:
        os.chown(path, *errand.owner, follow_symlinks=False)
    about = path.lstat()
    if path.is_symlink() or (os.geteuid() == 0 and about.st_uid != errand.owner[0]):
        raise CannotLay(f"{path} does not belong to the job's user")
    return str(path)


def environments(errand: Errand, *, viewed: bool) -> str:
    """Where packages are kept that were installed before; '' where they are not."""
    if not errand.plan.cache:
        return ""
    return f"{CACHE if viewed else cache(errand)}/{ENVIRONMENTS}"


def put_away(errand: Errand) -> None:
    """Take the cache out of this process's view: the command is not to change what other jobs will find."""
    if errand.plan.cache:
        kernel.unmount(CACHE, kernel.MNT_DETACH)


def bring(errand: Errand, site: Site, steps: Steps) -> Exit | None:
    """Everything that data is fetched for, one place after the other."""
    for index, data in enumerate(errand.plan.datas):
        if data.look or data.bring:
            trouble = _run(errand, index, "look" if data.look else "fetch", site, steps)
            if trouble is not None:
                return trouble
    return None


def take_back(errand: Errand, site: Site, steps: Steps) -> Exit | None:
    """What is new in places that can be written to, to where they are."""
    trouble = None
    for index, data in enumerate(errand.plan.datas):
        if data.back and not data.look:
            trouble = _run(errand, index, "store", site, steps) or trouble
    return trouble


def _run(errand: Errand, index: int, do: str, site: Site, steps: Steps) -> Exit | None:
    data = errand.plan.datas[index]
    order = {
        **_login(errand, index),
        "do": do,
        "name": data.name,
        "uri": data.uri,
        "endpoint": data.endpoint,
        "region": data.region,
        "addressing": data.addressing,
        "inside": data.inside,
        "folder": site.folder(data),
        "cache": (CACHE if site.viewed else cache(errand)) if errand.plan.cache and do == "fetch" else "",
        "most": data.most_bytes,
        "cache_most": data.cache_bytes,
        "site": SITE if site.viewed else errand.plan.tools and errand.plan.tools.site,
    }
    most = data.most_bytes if do == "fetch" else 0
    patience = Patience(data.patience_s, site.seen(data) if most else "", most)
    env = {"HOME": site.tmp, "TMPDIR": site.tmp, "PATH": errand.plan.house.path, "LANG": "C.UTF-8"}
    with _ordered(errand, order, site):
        argv = [*program(errand, viewed=site.viewed), f"{site.tmp}/{_ORDER}"]
        owner = errand.owner if site.viewed else None
        command = site.wrap(Command(argv, {**env, **errand.marked()}, "/", owner))
        return steps.run(Step(Cause.DATA, command, data.name, site.inside, patience))


def _login(errand: Errand, index: int) -> dict[str, Any]:
    known = errand.secrets.get("data") or []
    return dict(known[index]) if index < len(known) else {"user": "", "password": ""}


@contextlib.contextmanager
def _ordered(errand: Errand, order: dict[str, Any], site: Site) -> Iterator[None]:
    """The order lies in the replica's temporary folder until it was read."""
    path = Path(site.real_tmp, _ORDER)
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(order, file)
        if os.geteuid() == 0:
            os.fchown(fd, *errand.owner)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _own_folder() -> Path:
    return Path(data_mover.__file__).parent


def _open(folder: str) -> int:
    try:
        return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise CannotLay(f"{folder}: {error.strerror}") from error
