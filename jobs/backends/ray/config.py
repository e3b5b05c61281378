"""Settings of a Ray cluster; what each of them means stands in `labels`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic.dataclasses import dataclass

from jobs.backends.settings import (
    CONSOLE_URL,
    FROZEN,
    Address,
    Folder,
    Namenodes,
    Natural,
    OptionalFolder,
    Settings,
    Switch,
    Word,
    check_folder,
    check_ports,
    check_rules,
    is_loopback,
)
from jobs.backends.staging import remotes
from jobs.backends.staging.code_sources import CodeRules
from jobs.backends.staging.mounts import MountSettings
from jobs.facilities import READ_ONLY, Facilities
from jobs.node.sandbox.folders import Folders

_URL: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._/-]*)?")
_TOKEN: Final = re.compile(r"[\x21-\x7e]*")

ANY_CODE: Final = ("https://*", "http://*", "ssh://*", "git://*")
"""Jobs reach all addresses by themselves anyway."""

PREPARE_S: Final = 1800
"""The timeout of fetching code and packages."""

LOG_MIB: Final = 1024
KEEP_FREE_MIB: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True, config=FROZEN)
class RayConfig(Settings):
    """How jobs go to one cluster.

    `root` is where the console keeps the files of attempts.  `url` is the dashboard's address, `token` the
    cluster's own token.  `nodes_folder` is the folder on each node in which attempts have theirs.
    `checkpoints` is a folder that the console and all nodes see under this name, "" for none.
    """

    CONSOLE: ClassVar[Mapping[str, str]] = {"usual_console_url": "CONSOLE_URL"}

    root: Path
    url: Address = ""
    token: str = field(default="", repr=False)
    console_url: Address = ""
    python: Annotated[
        str, AfterValidator(lambda value: value if value in ("python", "python3") else check_folder(value))
    ] = "python3"
    nodes_folder: Folder = "/var/tmp"  # noqa: S108 closed to others by the relay
    checkpoints: OptionalFolder = ""
    gpu_resources: tuple[Word, ...] = ()
    allow_plain: Switch = False
    ports: Annotated[tuple[int, int], check_ports(1024)] = (20000, 29999)
    code_from: tuple[str, ...] = ANY_CODE
    code_mib: Natural = 2048
    hdfs: Namenodes = Field(default_factory=dict)
    timeout_s: Annotated[int, Field(strict=True, ge=1, le=60)] = 10

    @classmethod
    def from_settings(cls, home: Path, settings: Mapping[str, Any]) -> Self:
        """Return the configuration for a cluster's settings."""
        values = dict(settings)
        usual_url = values.pop("usual_console_url", "")
        values["console_url"] = values.get("console_url") or ("" if is_loopback(usual_url) else usual_url)
        return cls(**{**values, "root": home / "jobs"})

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        rules = (
            ("url", "no_url", not _URL.fullmatch(self.url)),
            ("token", "no_token", not _TOKEN.fullmatch(self.token)),
            ("console_url", "no_console", not CONSOLE_URL.fullmatch(self.console_url)),
        )
        check_rules(rules)
        return self

    def connection_setting(self) -> str:
        """Return the dashboard's address."""
        return "url"

    def exposures(self) -> frozenset[str]:
        """Return that everything runs as one user."""
        return frozenset({"account"})

    def facilities(self) -> Facilities:
        """Return what jobs find there, as far as the settings tell."""
        return Facilities(
            images=False,
            plain=self.allow_plain,
            data=tuple(self.hdfs),
            buckets=READ_ONLY,
            code=self.code_from,
            hdfs=tuple(self.hdfs),
        )

    def code(self) -> CodeRules:
        """Return the settings about code that is fetched; the nodes have git where the console has it."""
        path = os.environ.get("PATH", os.defpath)
        return CodeRules(self.code_from, None, self.code_mib << 20, PREPARE_S, path)

    def mount_settings(self) -> MountSettings:
        """Return the settings about locations outside the job."""
        data = remotes.DataRules(inside=remotes.named_hosts(tuple(self.hdfs.values())), hdfs=self.hdfs)
        return MountSettings(Folders(()), "", PREPARE_S, self.root, self.code_mib << 20, data)


CONFIG: Final = RayConfig
