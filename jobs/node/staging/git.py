"""Fetching code with git: what it is called with, and an environment in which it believes nobody but us.

It runs as the job's user, where the job will run, so that a hostile repository gains nothing that the
job's own command would not have.  Even so: no hooks, no configuration but this, no other protocol than the
one that was allowed, and no question to anybody.  Submodules are fetched where they are asked for, from the
repository's own host.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from jobs.node.staging.mount_specs import CodeSpec

CONFIG: Final = "gitconfig"
"""Believed by the git at the other end of a pipe too, which takes nothing from the environment."""

CONFIG_TEXT: Final = "[safe]\n\tdirectory = *\n[core]\n\thooksPath = /dev/null\n"
"""Who owns a repository on this machine does not matter: nothing in it is run."""

KEY_SECRET: Final = "JOB_CONSOLE_GIT_KEY"  # noqa: S105 the variable's name
"""A secret variable of the job: the private key for repositories by ssh."""

PASSED_ON: Final = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
"""What the job file may say about the way to the repository."""

_WHOLE_ID: Final = (40, 64)
_COMMIT: Final = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_EVERYTHING: Final = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")


def environment(
    uri: str, job_env: Mapping[str, str], config: str, login: str, key: str, *, submodules: bool = False
) -> dict[str, str]:
    """Return git's environment: `config` is where CONFIG_TEXT lies, `login` is `user:password` or a
    token alone, `key` a key's file.  With `submodules` the login is for the whole host.
    """
    parts = urlsplit(uri)
    scheme = parts.scheme or "file"
    said = [
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("credential.helper", ""),
        ("submodule.recurse", "false"),
        ("fetch.recurseSubmodules", "false"),
        ("http.followRedirects", "false"),
        ("gc.auto", "0"),
        ("advice.detachedHead", "false"),
    ]
    if login and scheme in ("http", "https"):
        token = b64encode((login if ":" in login else f"{login}:").encode()).decode()
        scope = f"{scheme}://{parts.netloc}/" if submodules else uri
        said.append((f"http.{scope}.extraHeader", f"Authorization: Basic {token}"))
    return {
        **{name: job_env[name] for name in PASSED_ON if name in job_env},
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": config,
        "GIT_ALLOW_PROTOCOL": scheme,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_SSH_COMMAND": " ".join(_ssh(key)),
        "GIT_CONFIG_COUNT": str(len(said)),
        **{f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(said)},
        **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(said)},
    }


def commit_in(folder: str) -> str:
    """The commit that was checked out there; "" where that can't be told.

    Read as data: what lies there belongs to the job's user.
    """
    try:
        fd = os.open(f"{folder}/.git/HEAD", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        said = file.read(max(_WHOLE_ID) + 1).strip().decode("ascii", "replace")
    return said if _COMMIT.fullmatch(said) else ""


def _ssh(key: str) -> Iterator[str]:
    """Only hosts that the machine knows (/etc/ssh/ssh_known_hosts), and no configuration."""
    yield from ("ssh", "-F", "none", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes")
    yield from ("-oUserKnownHostsFile=none", "-oIdentitiesOnly=yes")
    if key:
        yield f"-i{key}"


def commands(code: CodeSpec, source: str, folder: str) -> Iterator[Sequence[Sequence[str]]]:
    """Yield one list of commands after the other, until all of one have succeeded; then the submodules'."""
    more = _submodules(code, source, folder) if code.submodules else ()
    yield from ((*each, *more) for each in _checkouts(code, source, folder))


def connects(argv: Sequence[str]) -> bool:
    """Tell whether a command speaks to another machine."""
    return "fetch" in argv or "submodule" in argv


def _submodules(code: CodeSpec, source: str, folder: str) -> Sequence[Sequence[str]]:
    """Return the commands for submodules, whose relative addresses are below the repository's."""
    here = (code.git, "-C", folder)
    return (
        (*here, "config", "remote.origin.url", source),
        (*here, "submodule", "--quiet", "update", "--init", "--recursive"),
    )


def _checkouts(code: CodeSpec, source: str, folder: str) -> Iterator[Sequence[Sequence[str]]]:
    """Yield one list of commands after the other.

    A commit alone is asked for first, which is quick; not every server gives one, and a shortened name of
    one says nothing to it.
    """
    here = (code.git, "-C", folder)
    begin = (code.git, "init", "--quiet", folder)
    checkout = (*here, "checkout", "--quiet", "--detach")
    fetch = (*here, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules")
    if not code.commit:
        ref = code.ref or "HEAD"
        yield (begin, (*fetch, "--depth=1", "--", source, ref), (*checkout, "FETCH_HEAD"))
        return
    if len(code.commit) in _WHOLE_ID:
        yield (begin, (*fetch, "--depth=1", "--", source, code.commit), (*checkout, "FETCH_HEAD"))
    yield (begin, (*fetch, "--", source, *_EVERYTHING), (*checkout, code.commit))
