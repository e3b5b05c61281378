"""Rules of the section on the environment: image, data, variables, libraries, code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from jobs.dialects.dlc import conditions, limits
from jobs.form.rules.base import BOTH, Page, Rule, Section, Statement, bound, disable, hide, tell, when
from jobs.form.target import JobTarget, dataset_key
from jobs.spec import JobSpec, Mount

_OFFICIAL: Final = re.compile(r"^(dsw-registry|registry)[a-z0-9.-]*/(pai|pai-dlc)/")
_CPFS: Final = re.compile(r"^(cpfs://|nas://cpfs-)", re.IGNORECASE)
_BMCPFS: Final = re.compile(r"^(bmcpfs://|nas://bmcpfs-)", re.IGNORECASE)
_GRANTED: Final = frozenset({"oss", "nas"})
INJECTED: Final = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


def is_official(image: str) -> bool:
    """Whether an image is one of PAI's own, by its address."""
    return bool(_OFFICIAL.match(image))


def is_cpfs(mount: Mount) -> bool:
    """Whether a mount is of CPFS; BMCPFS is another thing."""
    return bool(_CPFS.match(mount.uri))


def is_bmcpfs(mount: Mount) -> bool:
    """Whether a mount is of BMCPFS."""
    return bool(_BMCPFS.match(mount.uri))


def _own_images(spec: JobSpec) -> tuple[int, ...]:
    return tuple(at for at, role in enumerate(spec.roles) if role.image and not is_official(role.image))


def _image_reachable(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    if own := _own_images(spec):
        yield tell("roles[].image", at=own)


def _rdma_by_hand(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if target.lingjun and (own := _own_images(spec)):
        yield tell("roles[].image", at=own)


def _public_data(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    public = tuple(at for at, mount in enumerate(spec.mounts) if dataset_key(mount) in target.public_data)
    written = tuple(at for at in public if not spec.mounts[at].read_only)
    if public:
        yield disable("mounts[].read_only", broken=bool(written), at=written or public)


def _storage_grant(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    at = tuple(index for index, mount in enumerate(spec.mounts) if urlsplit(mount.uri).scheme in _GRANTED)
    if at:
        yield tell("mounts[].uri", at=at)
    sets = tuple(
        index for index, mount in enumerate(spec.mounts) if dataset_key(mount) in target.granted_data
    )
    if sets:
        yield tell("mounts[].id", at=sets)


def _network_of(mount: Mount, target: JobTarget) -> str:
    return target.vpc_of.get(dataset_key(mount)) or target.vpc_of.get(mount.uri) or ""


def _cpfs(spec: JobSpec, target: JobTarget) -> tuple[int, ...]:
    """The mounts that lie in a network of their own."""
    return tuple(at for at, mount in enumerate(spec.mounts) if is_cpfs(mount) or _network_of(mount, target))


def _cpfs_needs_vpc(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    if (at := _cpfs(spec, target)) and not spec.network.vpc:
        mount = spec.mounts[at[0]]
        yield tell("network.vpc", broken=True, place=mount.uri or mount.id)


def _cpfs_other_vpc(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    for at in _cpfs(spec, target):
        mount = spec.mounts[at]
        its = _network_of(mount, target)
        if its and spec.network.vpc and its != spec.network.vpc:
            yield tell("network.vpc", broken=True, place=mount.uri or mount.id, its=its, vpc=spec.network.vpc)


def _bmcpfs(spec: JobSpec, target: JobTarget) -> Iterator[Statement]:
    at = tuple(index for index, mount in enumerate(spec.mounts) if is_bmcpfs(mount))
    if at and not target.lingjun:
        yield tell("mounts[].uri", broken=True, at=at)


def _ossfs(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    at = tuple(index for index, mount in enumerate(spec.mounts) if urlsplit(mount.uri).scheme == "oss")
    if at:
        yield tell("mounts[].options", at=at, example=json.dumps({"mountType": "ossfs"}))


def _nconnect(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    given = {
        at: mount.options["nconnect"] for at, mount in enumerate(spec.mounts) if "nconnect" in mount.options
    }
    wrong = tuple(at for at, value in given.items() if not re.fullmatch(r"0*[1-9]\d{0,5}", value, re.ASCII))
    nas = tuple(at for at, mount in enumerate(spec.mounts) if urlsplit(mount.uri).scheme in {"nas", "cpfs"})
    if wrong or nas:
        yield tell("mounts[].options", broken=bool(wrong), at=wrong or nas)


def _most_variables(spec: JobSpec, _ground: JobTarget) -> Iterator[Statement]:
    count, most = conditions.count_variables(spec), limits.MOST_VARIABLES.value
    yield bound("env", most=most, broken=count > most, count=count, limit=most)


_HERE: Final = Section.ENVIRONMENT

RULES: Final = (
    Rule("image_reachable", _HERE, _image_reachable),
    Rule(
        "login_with_image",
        _HERE,
        lambda spec, _ground: (
            ()
            if any(role.image for role in spec.roles)
            else (hide("registry_auth", broken=spec.registry_auth is not None),)
        ),
    ),
    Rule("rdma_by_hand", _HERE, _rdma_by_hand),
    Rule("public_data_read_only", _HERE, _public_data),
    Rule("storage_grant", _HERE, _storage_grant, (Page.CHINESE,)),
    Rule("cpfs_needs_vpc", _HERE, _cpfs_needs_vpc),
    Rule("cpfs_other_vpc", _HERE, _cpfs_other_vpc),
    Rule("bmcpfs_on_lingjun", _HERE, _bmcpfs, (Page.JAPANESE,)),
    Rule("oss_by_ossfs", _HERE, _ossfs, (Page.JAPANESE,)),
    Rule("nconnect_positive", _HERE, _nconnect, (Page.JAPANESE,)),
    Rule(
        "results_in_data",
        _HERE,
        when(
            lambda spec, _ground: any(mount.path and not mount.read_only for mount in spec.mounts),
            tell("roles[].command"),
        ),
        (Page.CHINESE,),
    ),
    Rule(
        "variables_injected",
        _HERE,
        when(lambda *_: True, tell("roles[].command", names=", ".join(INJECTED))),
        BOTH,
    ),
    Rule("variables_most", _HERE, _most_variables, (Page.CHINESE,)),
    Rule("code_access", _HERE, when(lambda spec, _ground: spec.code, tell("code")), (Page.CHINESE,)),
)
