"""Code of a job from what its file names, or the reason for a refusal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from jobs import trees
from jobs.backends.refusals import refusal
from jobs.backends.staging import remotes
from jobs.backends.staging.mounts import CODE_DIR_BYTES, EMPTY_SCHEME, MountPlanner
from jobs.backends.staging.remotes import Remote
from jobs.data_mover.archives import SUFFIXES, is_archive
from jobs.dialects import placeholders
from jobs.facilities import (
    CODE_SCHEMES,
    HDFS,
    STORES,
    WEB,
    covering_code,
    local_path,
    setting_of_code,
    split_code,
)
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_specs import CodeSpec
from jobs.spec import CodeSource, Mount, MountPurpose

_SAFE: Final = re.compile(r"[A-Za-z0-9._~/+%=-]*")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
REF: Final = re.compile(r"(?!.*(\.\.|//|@\{|\.lock$|/$|\.$))[A-Za-z0-9_][A-Za-z0-9._/+@-]*")
COMMIT: Final = re.compile(r"[0-9a-fA-F]{7,64}")
_UNNAMED: Final = "code"


@dataclass(frozen=True, slots=True)
class RegisteredCode:
    """Code that job files call by an id: what it says holds where they say nothing."""

    uri: str
    branch: str = ""
    commit: str = ""
    path: str = ""
    submodules: bool = False


@dataclass(frozen=True, slots=True)
class CodeRules:
    """Settings for code: the addresses it may come `from_` (`https://github.com/org`), and
    what is registered; at most `most_bytes`, fetched in `patience_s` seconds, by the `git` on `path`.
    """

    from_: tuple[str, ...] = ()
    registered: Mapping[str, RegisteredCode] | None = None
    most_bytes: int = 2 << 30
    patience_s: int = 1800
    path: str = ""


def resolve_source(source: CodeSource, rules: CodeRules) -> CodeSource:
    """The source with what is registered of it; Refused for an id that nobody registered."""
    if trees.tree_id_of(source.id) is not None and not source.uri:
        return replace_in(source, uri=source.id, id="")
    known = (rules.registered or {}).get(source.id)
    if known is None:
        if source.id and not source.uri:
            raise refusal("code_unknown", id=source.id, setting="code_sources")
        return source
    values: dict[str, str | bool] = {
        "uri": known.uri,
        "branch": source.branch or known.branch,
        "commit": source.commit or known.commit,
        "path": source.path or known.path,
        "submodules": source.submodules or known.submodules,
    }
    return replace_in(source, **values)


def replace_in(source: CodeSource, **values: str | bool) -> CodeSource:
    """The source with other values."""
    return source.model_copy(update=values)


def add_code(
    source: CodeSource,
    rules: CodeRules,
    layer: MountPlanner,
    env: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Have the code fetched into the job, whose environment may name a store's endpoint; raises Refused."""
    if trees.tree_id_of(source.uri) is not None:
        layer.lay_tree(source.uri, source.path, rules.most_bytes)
        return
    path = mount_paths.locate(source.path or folder_name(without_login(source.uri)))
    if needs_no_git(source):
        _add_transfer(source, rules, layer, path, env)
        return
    code = _repository(source, rules, layer)
    layer.codes.append(replace(code, bound=layer.own(path)))


def is_code_dir_elsewhere(mount: Mount, uri: str) -> bool:
    """Tell whether a mount is OpenPAI's codeDir and neither a folder nor an upload; `uri` is resolved."""
    ours = local_path(uri) is not None or trees.tree_id_of(uri) is not None or uri.startswith(EMPTY_SCHEME)
    return mount.purpose is MountPurpose.CODE and not (mount.path or mount.id or ours)


def add_code_dir(uri: str, rules: CodeRules, layer: MountPlanner, env: Mapping[str, str]) -> str:
    """Have OpenPAI's codeDir fetched, read-only and at most 200 MB (SCM page); return where it will be.

    Raises Refused.
    """
    source, rules = CodeSource(uri=uri), replace(rules, most_bytes=CODE_DIR_BYTES)
    path = mount_paths.locate(folder_name(without_login(uri)))
    if needs_no_git(source):
        _add_transfer(source, rules, layer, path, env, read_only=True)
        return path
    parts = split_code(uri)
    if parts is None or parts.scheme not in CODE_SCHEMES:
        raise refusal("code_elsewhere", place=without_login(uri))
    code = replace(_repository(source, rules, layer), is_code_dir=True)
    layer.codes.append(replace(code, bound=layer.own(path, read_only=True)))
    return path


def needs_no_git(source: CodeSource) -> bool:
    """Tell whether it is an archive of the web, or lies in an object store or an HDFS."""
    scheme = source.uri.partition("://")[0]
    if scheme in WEB:
        return is_archive(source.uri) and not (source.branch or source.commit)
    return scheme in (*STORES, HDFS)


def _add_transfer(
    source: CodeSource,
    rules: CodeRules,
    layer: MountPlanner,
    path: str,
    env: Mapping[str, str],
    *,
    read_only: bool = False,
) -> None:
    """Have an archive or a folder brought by the data mover."""
    shown = without_login(source.uri)
    if source.branch or source.commit:
        raise refusal("code_address", place=shown)
    mapping = layer.find_mapping(source.uri)
    if mapping is not None and mapping.bucket and (bucket := layer.read_bucket(mapping, shown)):
        place, address, inside = bucket
        layer.fetch_code(address, place, path, rules.most_bytes, inside, read_only=read_only)
        return
    if source.uri.partition("://")[0] in WEB:
        inside = remotes.named_hosts(tuple(_check_address(shown, rules)))
        place = Remote(shown, shown)
        layer.fetch_code(source.uri, place, path, rules.most_bytes, inside, read_only=read_only)
        return
    found = layer.data_rules.read(source.uri, remotes.options_of(source.uri, env))
    if found is None or not layer.data_rules.cover(source.uri):
        raise refusal("code_not_allowed", place=shown, setting=setting_of_code(source.uri))
    layer.fetch_code(source.uri, found, path, rules.most_bytes, (), read_only=read_only)


def _repository(source: CodeSource, rules: CodeRules, layer: MountPlanner) -> CodeSpec:
    """Return what is fetched by git, or copied from a folder of this machine."""
    check_ref(source)
    code = CodeSpec(
        0,
        ref=source.branch,
        commit=source.commit.lower(),
        most_bytes=rules.most_bytes,
        patience_s=rules.patience_s,
        submodules=source.submodules,
    )
    folder = local_path(source.uri)
    if folder is None:
        uri = without_login(source.uri)
        inside = _is_inside(_check_address(uri, rules))
        kept = any(name.startswith(placeholders.KEPT) for name in placeholders.list_references(source.uri))
        code = replace(code, uri=uri, inside=inside, alone=kept, shut=True)
    else:
        code = replace(code, folder=layer.grant(folder).path)
        layer.check_there(code.folder)
    if code.uri or code.ref or code.commit or code.folder.endswith(".git"):
        git = shutil.which("git", path=rules.path)
        if git is None:
            raise refusal("code_no_git", place=code.name)
        return replace(code, git=git)
    return code


def check_ref(source: CodeSource) -> None:
    """Raise Refused for a branch or commit that git would take for something else."""
    for name, pattern in ((source.branch, REF), (source.commit, COMMIT)):
        if name and not pattern.fullmatch(name):
            raise refusal("code_ref", name=name)


def without_login(uri: str) -> str:
    """The address without a password, and without a user where that is one (https)."""
    parts = split_code(uri)
    if parts is None:
        return uri.rpartition("@")[2]
    host = parts.netloc.rpartition("@")[2]
    user = parts.username if parts.scheme == "ssh" else None
    return parts._replace(netloc=f"{user}@{host}" if user else host).geturl()


def login_of(uri: str) -> str:
    """`user:password` of the address, or a token alone, as it stands there; '' when there is none."""
    parts = split_code(uri)
    return parts.netloc.rpartition("@")[0] if parts and parts.scheme != "ssh" else ""


def key_of(uri: str) -> str:
    """The private key that stands in the place of an ssh address's password; '' when there is none."""
    parts = split_code(uri)
    return parts.netloc.rpartition("@")[0].partition(":")[2] if parts and parts.scheme == "ssh" else ""


def _check_address(uri: str, rules: CodeRules) -> Sequence[str]:
    """Return the settings that admit an address, which means the same to us and to git; raises Refused."""
    parts = split_code(uri)
    plain = parts and _HOST.fullmatch(parts.hostname or "") and _SAFE.fullmatch(parts.path)
    if parts is None or not plain or parts.query or parts.fragment or ".." in parts.path.split("/"):
        raise refusal("code_address", place=uri)
    covering = covering_code(rules.from_, parts)
    if parts.scheme not in CODE_SCHEMES or not covering:
        raise refusal("code_not_allowed", place=uri, setting="code_from")
    return covering


def _is_inside(covering: Sequence[str]) -> bool:
    """Tell whether one of them names the host."""
    return any(known.hostname != "*" for known in map(split_code, covering) if known)


def folder_name(place: str) -> str:
    """Return the name of code by its address: `https://host/org/name.git` and `…/name.zip` are `name`."""
    name = place.rstrip("/").rpartition("/")[2].removesuffix(".git")
    name = next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)
    return name if mount_paths.is_free(f"{mount_paths.WORK}/{name}") else _UNNAMED
