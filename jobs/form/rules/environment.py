"""Rules of the section on the environment: image, data, variables, libraries, code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from jobs.dialects.dlc import conditions, limits
from jobs.form.ground import Ground, key_of
from jobs.form.rules.base import BOTH, Page, Rule, Said, Section, bound, hide, off, tell
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


def _image_reachable(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if own := _own_images(spec):
        yield tell("roles[].image", at=own)


def _registry_login(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if not any(role.image for role in spec.roles):
        yield hide("registry_auth", broken=spec.registry_auth is not None)


def _rdma_by_hand(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if ground.lingjun and (own := _own_images(spec)):
        yield tell("roles[].image", at=own)


def _public_data(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    public = tuple(at for at, mount in enumerate(spec.mounts) if key_of(mount) in ground.public_data)
    written = tuple(at for at in public if not spec.mounts[at].read_only)
    if public:
        yield off("mounts[].read_only", broken=bool(written), at=written or public)


def _storage_grant(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    at = tuple(index for index, mount in enumerate(spec.mounts) if urlsplit(mount.uri).scheme in _GRANTED)
    if at:
        yield tell("mounts[].uri", at=at)
    sets = tuple(index for index, mount in enumerate(spec.mounts) if key_of(mount) in ground.granted_data)
    if sets:
        yield tell("mounts[].id", at=sets)


def _network_of(mount: Mount, ground: Ground) -> str:
    return ground.vpc_of.get(key_of(mount)) or ground.vpc_of.get(mount.uri) or ""


def _cpfs(spec: JobSpec, ground: Ground) -> tuple[int, ...]:
    """The mounts that lie in a network of their own."""
    return tuple(at for at, mount in enumerate(spec.mounts) if is_cpfs(mount) or _network_of(mount, ground))


def _cpfs_needs_vpc(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    if (at := _cpfs(spec, ground)) and not spec.network.vpc:
        mount = spec.mounts[at[0]]
        yield tell("network.vpc", broken=True, place=mount.uri or mount.id)


def _cpfs_other_vpc(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    for at in _cpfs(spec, ground):
        mount = spec.mounts[at]
        its = _network_of(mount, ground)
        if its and spec.network.vpc and its != spec.network.vpc:
            yield tell("network.vpc", broken=True, place=mount.uri or mount.id, its=its, vpc=spec.network.vpc)


def _bmcpfs(spec: JobSpec, ground: Ground) -> Iterator[Said]:
    at = tuple(index for index, mount in enumerate(spec.mounts) if is_bmcpfs(mount))
    if at and not ground.lingjun:
        yield tell("mounts[].uri", broken=True, at=at)


def _ossfs(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    at = tuple(index for index, mount in enumerate(spec.mounts) if urlsplit(mount.uri).scheme == "oss")
    if at:
        yield tell("mounts[].options", at=at, example=json.dumps({"mountType": "ossfs"}))


def _nconnect(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    given = {
        at: mount.options["nconnect"] for at, mount in enumerate(spec.mounts) if "nconnect" in mount.options
    }
    wrong = tuple(at for at, value in given.items() if not re.fullmatch(r"0*[1-9]\d{0,5}", value, re.ASCII))
    nas = tuple(at for at, mount in enumerate(spec.mounts) if urlsplit(mount.uri).scheme in {"nas", "cpfs"})
    if wrong or nas:
        yield tell("mounts[].options", broken=bool(wrong), at=wrong or nas)


def _results(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if any(mount.path and not mount.read_only for mount in spec.mounts):
        yield tell("roles[].command")


def _injected(_spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    yield tell("roles[].command", names=", ".join(INJECTED))


def _env_most(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    count, most = conditions.variables(spec), limits.MOST_VARIABLES.value
    yield bound("env", most=most, broken=count > most, count=count, limit=most)


def _code_access(spec: JobSpec, _ground: Ground) -> Iterator[Said]:
    if spec.code is not None:
        yield tell("code")


_HERE: Final = Section.ENVIRONMENT

RULES: Final = (
    Rule("image_reachable", _HERE, _image_reachable),
    Rule("login_with_image", _HERE, _registry_login),
    Rule("rdma_by_hand", _HERE, _rdma_by_hand),
    Rule("public_data_read_only", _HERE, _public_data),
    Rule("storage_grant", _HERE, _storage_grant, (Page.CHINESE,)),
    Rule("cpfs_needs_vpc", _HERE, _cpfs_needs_vpc),
    Rule("cpfs_other_vpc", _HERE, _cpfs_other_vpc),
    Rule("bmcpfs_on_lingjun", _HERE, _bmcpfs, (Page.JAPANESE,)),
    Rule("oss_by_ossfs", _HERE, _ossfs, (Page.JAPANESE,)),
    Rule("nconnect_positive", _HERE, _nconnect, (Page.JAPANESE,)),
    Rule("results_in_data", _HERE, _results, (Page.CHINESE,)),
    Rule("variables_injected", _HERE, _injected, BOTH),
    Rule("variables_most", _HERE, _env_most, (Page.CHINESE,)),
    Rule("code_access", _HERE, _code_access, (Page.CHINESE,)),
)
