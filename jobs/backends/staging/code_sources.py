"""Code of a job from what its file names, or the reason for a refusal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs import trees
from jobs.backends.staging.mounts import MountPlanner, refusal
from jobs.dialects import placeholders
from jobs.facilities import CODE_SCHEMES, covering_code, local_path, split_code
from jobs.node.staging import mount_paths
from jobs.node.staging.mount_specs import CodeSpec
from jobs.spec import CodeSource

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
    branch, commit = source.branch or known.branch, source.commit or known.commit
    return replace_in(source, uri=known.uri, branch=branch, commit=commit, path=source.path or known.path)


def replace_in(source: CodeSource, **values: str) -> CodeSource:
    """The source with other values."""
    return source.model_copy(update=values)


def add_code(source: CodeSource, rules: CodeRules, layer: MountPlanner) -> None:
    """Have the code (as `told`) fetched into the job; raises Refused."""
    if trees.tree_id_of(source.uri) is not None:
        layer.lay_tree(source.uri, source.path, rules.most_bytes)
        return
    check_ref(source)
    code = CodeSpec(0, ref=source.branch, commit=source.commit.lower(), most_bytes=rules.most_bytes)
    code = replace(code, patience_s=rules.patience_s)
    folder = local_path(source.uri)
    if folder is None:
        uri = without_login(source.uri)
        inside = _check_address(uri, rules)
        kept = any(name.startswith(placeholders.KEPT) for name in placeholders.list_references(source.uri))
        code = replace(code, uri=uri, inside=inside, alone=kept, shut=True)
    else:
        code = replace(code, folder=layer.grant(folder).path)
        layer.check_there(code.folder)
    if code.uri or code.ref or code.commit or code.folder.endswith(".git"):
        git = shutil.which("git", path=rules.path)
        if git is None:
            raise refusal("code_no_git", place=code.name)
        code = replace(code, git=git)
    path = mount_paths.locate(source.path or _name(code.name))
    layer.codes.append(replace(code, bound=layer.own(path)))


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


def _check_address(uri: str, rules: CodeRules) -> bool:
    """An address that means the same to us and to git, and that the settings name; whether by its host."""
    parts = split_code(uri)
    plain = parts and _HOST.fullmatch(parts.hostname or "") and _SAFE.fullmatch(parts.path)
    if parts is None or not plain or parts.query or parts.fragment or ".." in parts.path.split("/"):
        raise refusal("code_address", place=uri)
    covering = covering_code(rules.from_, parts)
    if parts.scheme not in CODE_SCHEMES or not covering:
        raise refusal("code_not_allowed", place=uri, setting="code_from")
    return any(known.hostname != "*" for known in map(split_code, covering) if known)


def _name(place: str) -> str:
    """Return a repository's name: `https://host/org/name.git` is `name`."""
    name = place.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return name if mount_paths.is_free(f"{mount_paths.WORK}/{name}") else _UNNAMED
