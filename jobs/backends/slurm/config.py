"""What an admin may say about a Slurm cluster."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jobs.backends.slurm.client.login import Login
from jobs.facilities import Facilities

_PLACE: Final = re.compile(r"/[A-Za-z0-9._/+@-]+")
_WORD: Final = re.compile(r"[A-Za-z0-9._,+-]+")
_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._/-]*)?|unix:/[A-Za-z0-9._/+@-]+")
_CONSOLE: Final = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._/-]*)?|https?://\[[0-9a-f:]+\](:[0-9]+)?/?"
)
_OPTION: Final = re.compile(r"[a-z][a-z-]*")

WAYS: Final = ("commands", "rest")
SINGLE: Final = "single"
"""Everything runs as the console's own user."""
SUDO: Final = "sudo"
"""Each job runs as its owner's own user, by a helper that sudo runs."""
JWT: Final = "jwt"
"""The same, by slurmrestd, with a token that is made for that user."""
IDENTITIES: Final = (SINGLE, SUDO, JWT)
SRUN: Final = "srun"
"""People get into jobs by steps that the console, or its helper, begins."""
DOOR: Final = "door"
"""They get in by steps that the jobs' own scripts begin: see `jobs.backends.slurm.sessions.door`."""

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for."""

HELPER: Final = "/usr/local/libexec/job-console-slurm"

OURS: Final = frozenset(
    {"array", "chdir", "error", "export", "export-file", "hold", "input", "job-name", "open-mode", "output"}
)
"""Options of sbatch that the console itself decides."""

IMAGES: Final = ("", "pyxis", "apptainer", "oci")
MOUNTS: Final = ("bind", "links")


@dataclass(frozen=True, slots=True)
class SlurmConfig:
    """How jobs go to one cluster.

    `root` is the folder that the console and every node see under this name; the console makes it where it is
    its `own`, which nobody named.  `configuration` is the cluster's slurm.conf, where it is not in its usual
    place, and `programs` the folder of sbatch and its like, where that is not on the PATH.

    `partitions` names the partition of each quota, `partition` that of all others; `accounts` and `account`
    are the same for workspaces, `qos` names the quality of service of each priority (1…9).  `options` are
    further options of sbatch for every job (`{"constraint": "ib", "exclusive": ""}`).

    `images` is how jobs get theirs: by `pyxis`, `apptainer` or as an `oci` bundle by Slurm itself; '' for not
    at all.  `mounts` says whether places may be laid anywhere (`bind`, in a user namespace) or only linked in
    the job's own folder (`links`).  `allowed` are further options of sbatch that a job file may give.

    `way` is how Slurm is asked: by its `commands`, or by `rest`, which is slurmrestd at `url` (`http://…`,
    `https://…` or `unix:/…`) as `user`, with a token that `token_command` prints, as whoever runs the console
    says.
    `login` is the node on which commands run, where that is not this machine.  `write_back` lets quotas be
    written into Slurm's accounts.

    `identity` is as whom jobs run: `single`, all as the console's own user, or each as its owner's, by the
    `helper` that an admin has installed (`sudo`) or by tokens (`jwt`).  `slurm_user` is whom Slurm itself
    runs as, where scontrol is not there to say so.

    `nodes_folder` is where jobs' folders lie on the nodes where these share none with the console: each node
    has one of its own of that name, and couriers carry between it and the console at `console_url`.

    `logs` are the folders below which the logs of jobs that others run are shown.

    `allow_plain` runs a job that names an image without it; it is marked so.  `ports` is the range from which
    jobs' ports are taken.  No program of Slurm's is waited for longer than `timeout_s`.  `python` is the
    Python on the nodes that lets people in.
    """

    root: Path
    own: bool = False
    configuration: str = ""
    programs: str = ""
    partitions: Mapping[str, str] = field(default_factory=dict)
    partition: str = ""
    accounts: Mapping[str, str] = field(default_factory=dict)
    account: str = ""
    qos: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    images: str = ""
    mounts: str = "bind"
    allowed: tuple[str, ...] = ()
    allow_plain: bool = False
    logs: tuple[str, ...] = ()
    ports: tuple[int, int] = (20000, 29999)
    timeout_s: int = 5
    python: str = "python3"
    way: str = "commands"
    url: str = ""
    user: str = ""
    token_command: tuple[str, ...] = ()
    login: Login | None = None
    write_back: bool = False
    identity: str = SINGLE
    helper: str = HELPER
    slurm_user: str = ""
    nodes_folder: str = ""
    console_url: str = ""

    @classmethod
    def from_settings(cls, home: Path, settings: Mapping[str, Any]) -> SlurmConfig:
        """From the console's home and a cluster's settings, which name the fields above; `folder` is `root`.

        TypeError for a name that is none of them, ValueError for a value that makes no sense.
        """
        values = dict(settings)
        named = values.pop("folder", "")
        folder = _place("folder", named or str(home / "jobs"))
        for name in ("configuration", "programs", "helper", "nodes_folder"):
            if values.get(name):
                _place(name, values[name])
        if values.get("python", "python3") != "python3":
            _place("python", values["python"])
        for name in ("partitions", "accounts", "qos"):
            values[name] = {str(key): _word(name, value) for key, value in values.get(name, {}).items()}
        for name in ("partition", "account", "slurm_user"):
            if values.get(name):
                _word(name, values[name])
        if wrong := set(values["qos"]) - set("123456789"):
            raise ValueError(f"qos: {min(wrong)} is no priority from 1 to 9")
        values["options"] = _options(values.get("options", {}))
        values["allowed"] = _names(values.get("allowed", []))
        values["logs"] = _places("logs", values.get("logs", []))
        _check_choices(values)
        values["ports"] = _range(values.get("ports", (20000, 29999)))
        timeout_s = values.get("timeout_s", 5)
        if not isinstance(timeout_s, int) or not 1 <= timeout_s <= 60:
            raise ValueError("timeout_s is a number of seconds from 1 to 60")
        values |= _way(values)
        values["login"] = Login.from_settings(values.get("login"))
        _check_identity(values)
        _check_nodes_folder(values)
        return cls(root=Path(folder), own=not named, **values)

    def facilities(self) -> Facilities:
        """What jobs find there, as far as the settings tell."""
        return Facilities(images=bool(self.images), plain=self.allow_plain, slurm=True)

    @property
    def tells_apart(self) -> bool:
        """Whether jobs run as their owners."""
        return self.identity != SINGLE

    @property
    def has_helper(self) -> bool:
        """Whether the program that acts as people is run on this machine, and not on the login node."""
        return self.identity == SUDO and self.login is None

    @property
    def apart(self) -> bool:
        """Whether the nodes share no folder with the console."""
        return bool(self.nodes_folder)

    @property
    def enters(self) -> str:
        """How people get into jobs."""
        if self.tells_apart:
            return SRUN if self.has_helper else DOOR
        has_programs = self.way == "commands" or shutil.which("srun", path=self.programs or PATH)
        return SRUN if has_programs and self.login is None else DOOR


def _way(values: Mapping[str, Any]) -> dict[str, Any]:
    """How Slurm is asked."""
    way, url = values.get("way", "commands"), values.get("url", "")
    if way not in WAYS:
        raise ValueError(f"way is one of {', '.join(WAYS)}")
    if way == "rest" and not (isinstance(url, str) and _URL.fullmatch(url)):
        raise ValueError("url is where slurmrestd listens: http://…, https://… or unix:/…")
    command = values.get("token_command", ())
    user = values.get("user") or pwd.getpwuid(os.geteuid()).pw_name
    return {"way": way, "url": url.rstrip("/"), "user": _word("user", user), "token_command": tuple(command)}


def _place(name: str, value: object) -> str:
    """An absolute path of plain characters: it is written into scripts, and Slurm expands `%` in it."""
    if not isinstance(value, str) or not _PLACE.fullmatch(value) or os.path.normpath(value) != value:
        raise ValueError(f"{name}: {value!r} is no absolute path of letters, digits and ._+@-")
    return value


def _places(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} is a list of folders")
    return tuple(_place(name, each) for each in value)


def _word(name: str, value: object) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise ValueError(f"{name}: {value!r} is no name that Slurm could have")
    return value


def _options(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError("options is an object of options of sbatch")
    for name, said in value.items():
        if not isinstance(name, str) or not _OPTION.fullmatch(name) or name in OURS:
            raise ValueError(f"options: {name!r} is no option of sbatch that can be given here")
        if not isinstance(said, str) or "\n" in said:
            raise ValueError(f"options: the value of {name} is no line of text")
    return dict(value)


def _check_choices(values: Mapping[str, Any]) -> None:
    for name, choices in (("images", IMAGES), ("mounts", MOUNTS), ("identity", IDENTITIES)):
        if name in values and values[name] not in choices:
            raise ValueError(f"{name} is one of {', '.join(filter(None, choices))}")
    for name in ("allow_plain", "write_back"):
        if not isinstance(values.get(name, False), bool):
            raise TypeError(f"{name} is true or false")


def _check_identity(values: Mapping[str, Any]) -> None:
    if values.get("identity") == JWT and (values["way"] != "rest" or values["login"]):
        raise ValueError("identity jwt goes by slurmrestd: with way rest, and without login")


def _check_nodes_folder(values: dict[str, Any]) -> None:
    """The console's address is the cluster's own, where it says one."""
    usual = values.pop("usual_console_url", "")
    url = values.setdefault("console_url", usual) or usual
    if not isinstance(url, str) or (url and not _CONSOLE.fullmatch(url)):
        raise ValueError("console_url is where nodes reach the console: https://… or http://…")
    values["console_url"] = url.rstrip("/")
    if not values.get("nodes_folder"):
        return
    if values.get("identity", SINGLE) != SINGLE:
        raise ValueError(
            "nodes_folder goes with identity single: jobs run as their owners only where a folder is shared"
        )
    if not url:
        raise ValueError("nodes_folder needs the console's address: console_url, or CONSOLE_URL")


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError("allowed is a list of options of sbatch")
    for name in value:
        if not isinstance(name, str) or not _OPTION.fullmatch(name) or name in OURS:
            raise ValueError(f"allowed: {name!r} is no option of sbatch that a job may give")
    return tuple(value)


def _range(value: object) -> tuple[int, int]:
    if isinstance(value, list | tuple) and len(value) == 2:
        first, last = value
        if isinstance(first, int) and isinstance(last, int) and 1024 <= first < last <= 65535:
            return first, last
    raise ValueError("ports is a pair of numbers from 1024 to 65535, the smaller first")
