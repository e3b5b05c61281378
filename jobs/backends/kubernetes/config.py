"""Settings of a Kubernetes cluster; what each of them means stands in `labels`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic.dataclasses import dataclass

from jobs.backends.kubernetes.client.connection import (
    ApiConnection,
    from_kubeconfig,
    from_settings,
    in_cluster,
)
from jobs.backends.settings import (
    FROZEN,
    Address,
    Namenodes,
    Natural,
    Priority,
    Settings,
    Switch,
    check_ports,
    check_rules,
    invalid,
)
from jobs.facilities import OWN_NETWORK, READ_ONLY, Facilities
from jobs.node.sandbox.folders import Folders, SharedFolderRule

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_UNSAFE: Final = re.compile(r"[^a-z0-9-]")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_QUALIFIED: Final = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,300}")
_EXPORT: Final = re.compile(r"[A-Za-z0-9.-]+:/[A-Za-z0-9._/+@-]*")
_PATH_NAME: Final = re.compile(r"/[A-Za-z0-9._/+@-]+")


def _match(pattern: re.Pattern[str], code: str) -> AfterValidator:
    """Return the validator of a text that is empty or matches."""

    def check(value: str) -> str:
        if value and not pattern.fullmatch(value):
            raise invalid(code, value=value)
        return value

    return AfterValidator(check)


def _require(pattern: re.Pattern[str], code: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise invalid(code, value=value)
        return value

    return AfterValidator(check)


def _read_folders(folders: object) -> object:
    """Return the rules of folders that a JSON object names."""
    if not isinstance(folders, Mapping):
        return folders
    try:
        return tuple(SharedFolderRule.from_settings(path, rights) for path, rights in folders.items())
    except (AttributeError, TypeError, ValueError):
        raise invalid("no_folder", path=", ".join(map(str, folders))) from None


OptionalPath = Annotated[str, _match(_PATH_NAME, "no_path")]
OptionalLabel = Annotated[str, _match(_LABEL, "no_name")]
OptionalName = Annotated[str, _match(_SUBDOMAIN, "no_name")]
OptionalImage = Annotated[str, _match(_IMAGE, "no_image")]
Name = Annotated[str, _require(_SUBDOMAIN, "no_name")]
Qualified = Annotated[str, _require(_QUALIFIED, "no_label")]
OptionalQualified = Annotated[str, _match(_QUALIFIED, "no_label")]


@dataclass(frozen=True, slots=True, kw_only=True, config=FROZEN)
class KubernetesConfig(Settings):
    """How jobs go to one cluster.

    `root` is where the console keeps the records and logs of attempts.  The cluster is reached by a
    `kubeconfig` file, by `url` with `token` and `ca`, or without both by the account of the console's own
    pod.  Jobs of all workspaces share `namespace`; without it each workspace has one of its own.
    """

    root: Path
    kubeconfig: OptionalPath = ""
    context: str = ""
    url: Address = ""
    ca: str = ""
    token: str = Field(default="", repr=False)
    timeout_s: Annotated[int, Field(strict=True, ge=1, le=60)] = 10
    namespace: OptionalLabel = ""
    namespace_prefix: Annotated[str, _require(_PREFIX, "no_name")] = "job-console-"
    create_namespaces: Switch = False
    image: OptionalImage = ""
    git_image: OptionalImage = ""
    pull_secret: OptionalName = ""
    service_account: OptionalName = ""
    allow_root: Switch = False
    uid_base: Natural = 200_000
    node_labels: dict[Qualified, str] = Field(default_factory=dict)
    tolerations: tuple[Qualified, ...] = ()
    gpu_resource: Qualified = "nvidia.com/gpu"
    gpu_label: Qualified = "nvidia.com/gpu.product"
    gpu_types: dict[str, str] = Field(default_factory=dict)
    rdma_resource: OptionalQualified = ""
    priority_classes: dict[Priority, Name] = Field(default_factory=dict)
    local_queue: OptionalName = ""
    folders: Annotated[
        tuple[SharedFolderRule, ...],
        BeforeValidator(_read_folders, json_schema_input_type=dict[str, dict[str, Any]]),
    ] = ()
    exports: tuple[Annotated[str, _require(_EXPORT, "no_export")], ...] = ()
    checkpoint_class: OptionalName = ""
    checkpoint_gib: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 100
    checkpoint_access: Literal["ReadWriteMany", "ReadWriteOnce"] = "ReadWriteMany"
    hdfs: Namenodes = Field(default_factory=dict)
    ports: Annotated[tuple[int, int], check_ports(1024)] = (20000, 29999)

    @classmethod
    def from_settings(cls, home: Path, settings: Mapping[str, Any]) -> Self:
        """Return the configuration for a cluster's settings and the console's home."""
        return cls(**{**settings, "root": home / "jobs"})

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse settings that do not go with each other."""
        rules = (
            ("url", "no_url", bool(self.url) and not _is_address(self.url)),
            ("url", "two_connections", bool(self.url and self.kubeconfig)),
            ("context", "context_alone", bool(self.context) and not self.kubeconfig),
            ("token", "no_token", bool(self.url) and not self.token),
        )
        check_rules(rules)
        return self

    def connection_setting(self) -> str:
        """Return the setting by which the API server is reached."""
        return "url" if self.url else "kubeconfig"

    def connection(self) -> ApiConnection:
        """Return the connection to the API server.  Raises Unreachable."""
        if self.url:
            return from_settings(self.url, token=self.token, ca=self.ca)
        if self.kubeconfig:
            return from_kubeconfig(Path(self.kubeconfig), self.context)
        return in_cluster()

    def namespace_of(self, workspace: str) -> str:
        """Return the namespace of a workspace's jobs.

        A short name that is too long or has other characters is changed, and made unique by a hash.
        """
        if self.namespace:
            return self.namespace
        name = f"{self.namespace_prefix}{workspace}"
        if _LABEL.fullmatch(name):
            return name
        digest = hashlib.blake2b(workspace.encode(), digest_size=5).hexdigest()
        return f"{_UNSAFE.sub('-', name.lower())[:52].rstrip('-')}-{digest}"

    def uid_of(self, number: int) -> int | None:
        """Return the user id of a person's containers, None where the image decides."""
        return None if self.allow_root else self.uid_base + number

    def gpu_label_value(self, gpu_type: str) -> str:
        """Return the value of the nodes' label for a GPU type as people write it."""
        return self.gpu_types.get(gpu_type, gpu_type)

    def gpu_type_of(self, value: str) -> str:
        """Return the name that people use for the GPU type of nodes with this label."""
        return next((name for name, label in self.gpu_types.items() if label == value), value)

    def facilities(self) -> Facilities:
        """Return what jobs find there, as far as the settings tell."""
        return Facilities(
            images=True,
            plain=False,
            data=tuple(self.hdfs),
            buckets=READ_ONLY,
            folders=Folders(self.folders).shared_folders(),
            network=OWN_NETWORK,
            image_network=OWN_NETWORK,
            hdfs=tuple(self.hdfs),
        )


def _is_address(url: str) -> bool:
    """Return whether a URL is one of HTTPS with a host and without a login."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        return False


CONFIG: Final = KubernetesConfig
