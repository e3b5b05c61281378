"""What tests need that run jobs as several UNIX users."""

from __future__ import annotations

import os
import pwd
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import Handle, Person, Submission
from jobs.backends.remote import bundle
from tests.jobs.backends.benches import log_of, role
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

User = pwd.struct_passwd


@contextmanager
def opened(folder: Path, slurm: Slurm, settings: dict[str, Any]) -> Iterator[SlurmBench]:
    """A bench in a folder that everybody may pass through."""
    made = SlurmBench(folder, slurm, {**settings, "timeout_s": 60})
    made.root.chmod(0o711)
    yield made
    made.close()


def by_tokens(slurm: Slurm) -> dict[str, Any]:
    """The settings of a cluster that tells people apart by tokens."""
    return {**by_rest(slurm), "identity": "jwt"}


_MINT: Final = """#!/usr/bin/env python3
import base64, hashlib, hmac, json, sys, time

def part(told):
    return base64.urlsafe_b64encode(told).rstrip(b"=")

now = int(time.time())
claims = {"iat": now, "exp": now + 300, "sun": sys.argv[1]}
told = part(b'{"alg": "HS256", "typ": "JWT"}') + b"." + part(json.dumps(claims).encode())
key = open(sys.argv[2], "rb").read()
print((told + b"." + part(hmac.new(key, told, hashlib.sha256).digest())).decode())
"""


def minting(folder: Path, key: Path) -> tuple[str, ...]:
    """A command that makes tokens with Slurm's key, for a console that may not have Slurm make them."""
    program = folder / "mint"
    program.write_text(_MINT)
    program.chmod(0o755)
    return str(program), "{user}", str(key)


def of(bench: SlurmBench, user: User, command: str) -> Submission:
    """A job of somebody who is that user."""
    return bench.submission(role(command), person=Person("somebody", 7, user.pw_name))


def started(bench: SlurmBench, user: User, command: str) -> Handle:
    """A job of theirs that has said something."""
    handle = bench.backend.submit(of(bench, user, command))
    wait_for(lambda: log_of(bench.backend, handle), 60)
    return handle


def as_(user: User) -> tuple[str, ...]:
    """What makes a command that user's."""
    return ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")


def does(user: User, *command: str) -> subprocess.CompletedProcess[str]:
    """What comes of a command of that user's."""
    return subprocess.run(
        [*as_(user), *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def by(console: User, does_: Callable[[], object]) -> None:
    """Do it in a process of that user's, as a console of its own would; what fails there fails here."""
    bundle.build()  # reads our own modules, which that user might not
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        try:
            os.setgroups([])
            os.setresgid(*[console.pw_gid] * 3)
            os.setresuid(*[console.pw_uid] * 3)
            does_()
        except BaseException:  # noqa: BLE001 nothing gets out of a process that is a copy of the tests'
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    os.waitpid(pid, 0)
    assert not said, said
