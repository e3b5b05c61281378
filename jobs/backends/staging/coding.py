"""From the code that a job file asks for to what is fetched into the job, or the reason why it can't be."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from jobs import trees
from jobs.backends.staging.places import Layer, refused
from jobs.dialects import placeholders
from jobs.facilities import CODE_SCHEMES, covering_code, local_path, split_code
from jobs.node.staging import targets
from jobs.node.staging.provisions import Code
from jobs.spec import CodeSource

_SAFE: Final = re.compile(r"[A-Za-z0-9._~/+%=-]*")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
REF: Final = re.compile(r"(?!.*(\.\.|//|@\{|\.lock$|/$|\.$))[A-Za-z0-9_][A-Za-z0-9._/+@-]*")
COMMIT: Final = re.compile(r"[0-9a-fA-F]{7,64}")
_UNNAMED: Final = "code"


@dataclass(frozen=True, slots=True)
class Registered:
    """Code that job files call by an id: what it says holds where they say nothing."""

    uri: str
    branch: str = ""
    commit: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about code: the addresses it may come `from_` (`https://github.com/org`), and
    what is registered; at most `most_bytes`, fetched in `patience_s` seconds, by the `git` on `path`.
    """

    from_: tuple[str, ...] = ()
    registered: Mapping[str, Registered] | None = None
    most_bytes: int = 2 << 30
    patience_s: int = 1800
    path: str = ""


def told(source: CodeSource, rules: Rules) -> CodeSource:
    """The source with what is registered of it; Refused for an id that nobody registered."""
    if trees.named(source.id) is not None and not source.uri:
        return replace_in(source, uri=source.id, id="")
    known = (rules.registered or {}).get(source.id)
    if known is None:
        if source.id and not source.uri:
            raise refused("code_unknown", id=source.id, setting="code_sources")
        return source
    branch, commit = source.branch or known.branch, source.commit or known.commit
    return replace_in(source, uri=known.uri, branch=branch, commit=commit, path=source.path or known.path)


def replace_in(source: CodeSource, **values: str) -> CodeSource:
    """The source with other values."""
    return source.model_copy(update=values)


def lay_in(source: CodeSource, rules: Rules, layer: Layer) -> None:
    """Have the code (as `told`) fetched into the job; raises Refused."""
    if trees.named(source.uri) is not None:
        layer.lay_tree(source.uri, source.path, rules.most_bytes)
        return
    for name, pattern in ((source.branch, REF), (source.commit, COMMIT)):
        if name and not pattern.fullmatch(name):
            raise refused("code_ref", name=name)
    code = Code(0, ref=source.branch, commit=source.commit.lower(), most_bytes=rules.most_bytes)
    code = replace(code, patience_s=rules.patience_s)
    folder = local_path(source.uri)
    if folder is None:
        uri = without_login(source.uri)
        inside = _check_address(uri, rules)
        kept = any(name.startswith(placeholders.KEPT) for name in placeholders.referenced(source.uri))
        code = replace(code, uri=uri, inside=inside, alone=kept, shut=True)
    else:
        code = replace(code, folder=layer.grant(folder).path)
        layer.check_there(code.folder)
    if code.uri or code.ref or code.commit or code.folder.endswith(".git"):
        git = shutil.which("git", path=rules.path)
        if git is None:
            raise refused("code_no_git", place=code.name)
        code = replace(code, git=git)
    path = source.path or f"{targets.WORK}/{_name(code.name)}"
    if not path.startswith("/"):
        path = f"{targets.WORK}/{path}"
    layer.codes.append(replace(code, bound=layer.own(path)))


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


def _check_address(uri: str, rules: Rules) -> bool:
    """An address that means the same to us and to git, and that the settings name; whether by its host."""
    parts = split_code(uri)
    plain = parts and _HOST.fullmatch(parts.hostname or "") and _SAFE.fullmatch(parts.path)
    if parts is None or not plain or parts.query or parts.fragment or ".." in parts.path.split("/"):
        raise refused("code_address", place=uri)
    covering = covering_code(rules.from_, parts)
    if parts.scheme not in CODE_SCHEMES or not covering:
        raise refused("code_not_allowed", place=uri, setting="code_from")
    return any(known.hostname != "*" for known in map(split_code, covering) if known)


def _name(place: str) -> str:
    """What a repository is called: `https://host/org/name.git` is `name`."""
    name = place.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return name if targets.is_free(f"{targets.WORK}/{name}") else _UNNAMED
