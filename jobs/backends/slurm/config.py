"""Settings of a Slurm cluster; what each of them means stands in `labels`."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic.dataclasses import dataclass

from jobs.backends.metrics_source import MetricsSource
from jobs.backends.settings import (
    CONSOLE_URL,
    FROZEN,
    Address,
    Folder,
    InvalidSettings,
    Namenodes,
    OptionalFolder,
    OptionalWord,
    Priority,
    SettingProblem,
    Settings,
    Switch,
    Word,
    check_folder,
    check_ports,
    check_rules,
    invalid,
    is_loopback,
)
from jobs.backends.slurm.client.login import Login
from jobs.backends.slurm.identity.as_user import PATH
from jobs.facilities import READ_ONLY, Facilities

_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._/-]*)?|unix:/[A-Za-z0-9._/+@-]+")
_OPTION: Final = re.compile(r"[a-z][a-z-]*")

SINGLE: Final = "single"
"""Everything runs as the console's own user."""
SUDO: Final = "sudo"
"""Each job runs as its owner's own user, by a helper that sudo runs."""
JWT: Final = "jwt"
"""The same, by slurmrestd, with a token that is made for that user."""
SRUN: Final = "srun"
"""People get into jobs by steps that the console, or its helper, begins."""
DOOR: Final = "door"
"""They get in by steps that the jobs' own scripts begin: see `jobs.node.sessions.listener`."""

HELPER: Final = "/usr/local/libexec/job-console-slurm"

OURS: Final = frozenset(
    {"array", "chdir", "error", "export", "export-file", "hold", "input", "job-name", "open-mode", "output"}
)
"""Options of sbatch that the console itself decides."""


def _check_option(value: str) -> str:
    if not _OPTION.fullmatch(value) or value in OURS:
        raise invalid("no_option", value=value)
    return value


def _check_line(value: str) -> str:
    if "\n" in value:
        raise invalid("no_line")
    return value


def _check_login(login: Login | None) -> Login | None:
    try:
        if login is not None:
            login.keys()
    except ValueError:
        raise invalid("no_keys") from None
    return login


def _own_user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


Option = Annotated[str, AfterValidator(_check_option)]


@dataclass(frozen=True, slots=True, kw_only=True, config=FROZEN)
class SlurmConfig(Settings):
    """How jobs go to one cluster.

    `root` is the folder that the console and every node see under this name; the console makes it where it is
    its `own`, which nobody named.  `token_command` prints a token for slurmrestd.  `rdma_feature` is the
    feature of nodes with RDMA.
    """

    CONSOLE: ClassVar[Mapping[str, str]] = {
        "folder": "CONSOLE_SLURM_FOLDER",
        "token_command": "CONSOLE_SLURM_TOKEN_COMMAND",
        "usual_console_url": "CONSOLE_URL",
    }

    root: Path
    own: bool = False
    configuration: OptionalFolder = ""
    programs: OptionalFolder = ""
    partitions: dict[str, Word] = Field(default_factory=dict)
    partition: OptionalWord = ""
    accounts: dict[str, Word] = Field(default_factory=dict)
    account: OptionalWord = ""
    qos: dict[Priority, Word] = Field(default_factory=dict)
    options: dict[Option, Annotated[str, AfterValidator(_check_line)]] = Field(default_factory=dict)
    images: Literal["", "pyxis", "apptainer", "oci"] = ""
    mounts: Literal["bind", "links"] = "bind"
    allowed: tuple[Option, ...] = ()
    allow_plain: Switch = False
    rdma_feature: OptionalWord = ""
    logs: tuple[Folder, ...] = ()
    ports: Annotated[tuple[int, int], check_ports(1024)] = (20000, 29999)
    timeout_s: Annotated[int, Field(strict=True, ge=1, le=60)] = 5
    python: Annotated[
        str, AfterValidator(lambda value: value if value == "python3" else check_folder(value))
    ] = "python3"
    way: Literal["commands", "rest"] = "commands"
    url: Address = ""
    user: Annotated[Word, BeforeValidator(lambda value: value or _own_user())] = Field(
        default_factory=_own_user
    )
    token_command: tuple[str, ...] = ()
    login: Annotated[
        Login | None, BeforeValidator(lambda value: value or None), AfterValidator(_check_login)
    ] = None
    write_back: Switch = False
    identity: Literal["single", "sudo", "jwt"] = "single"
    helper: OptionalFolder = HELPER
    slurm_user: OptionalWord = ""
    nodes_folder: OptionalFolder = ""
    console_url: Address = ""
    hdfs: Namenodes = Field(default_factory=dict)
    metrics: Annotated[MetricsSource | None, BeforeValidator(lambda value: value or None)] = None

    @classmethod
    def from_settings(cls, home: Path, settings: Mapping[str, Any]) -> Self:
        """Return the configuration for a cluster's settings; `folder` is `root`, by default in `home`."""
        values = dict(settings)
        usual_url = values.pop("usual_console_url", "")
        folder = values.pop("folder", "")
        try:
            root = check_folder(folder or str(home / "jobs"))
        except InvalidSettings as error:
            raise InvalidSettings(SettingProblem("folder", "no_path", error.problems[0].params)) from None
        if is_loopback(usual_url) and not values.get("nodes_folder"):
            usual_url = ""  # on another node it would be that node
        values["console_url"] = values.get("console_url") or usual_url
        return cls(**{**values, "root": Path(root), "own": not folder})

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse settings that do not go with each other."""
        by_rest, has_url = self.way == "rest", bool(self.console_url)
        rules = (
            ("url", "no_url", by_rest and not _URL.fullmatch(self.url)),
            ("identity", "jwt_by_rest", self.identity == JWT and (not by_rest or self.login is not None)),
            ("console_url", "no_console", has_url and not CONSOLE_URL.fullmatch(self.console_url)),
            ("nodes_folder", "apart_as_owners", self.apart and self.identity != SINGLE),
            ("nodes_folder", "apart_without_url", self.apart and not has_url),
        )
        check_rules(rules)
        return self

    def facilities(self) -> Facilities:
        """Return what jobs find there, as far as the settings tell."""
        return Facilities(
            images=bool(self.images),
            plain=self.allow_plain,
            slurm=True,
            buckets=READ_ONLY,
            hdfs=tuple(self.hdfs),
            roles=True,
            image_roles=self.images == "apptainer",
        )

    def connection_setting(self) -> str:
        """Return the login node, slurmrestd's address, or that commands are used here."""
        if self.login is not None:
            return "login.host"
        return "url" if self.way == "rest" else "way"

    def exposures(self) -> frozenset[str]:
        """Return that everything runs as one user, where it does."""
        return frozenset() if self.tells_apart else frozenset({"account"})

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


CONFIG: Final = SlurmConfig
