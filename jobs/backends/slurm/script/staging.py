"""Code, packages and places of a job, as the shell lines that bring them before its command.

How git and pip are called is the local backend's; `before` has what is the same for every job.  Everything is
done on the nodes by the job's own user, who can reach there what the job's command could reach as well.
"""

from __future__ import annotations

import io
import shlex
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from jobs import trees
from jobs.backends.base import Submission
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script.boxes import APPTAINER
from jobs.backends.staging import coding
from jobs.backends.staging.places import DEFAULT_FILE_SYSTEM, EMPTY_SCHEME, refused
from jobs.dialects import amounts, placeholders
from jobs.dialects.fields import Quantity
from jobs.facilities import local_path, without_login
from jobs.node.staging import git, pip, targets
from jobs.node.staging.provisions import Code, Packages
from jobs.spec import CodeSource, JobSpec, Mount, MountPurpose
from jobs.trees import Kind, Supplied

BEFORE: Final = Path(__file__).with_name("before.sh").read_text(encoding="utf-8").rstrip("\n")
PATIENCE_S: Final = 1800
"""Fetching code takes no longer."""

PACKAGES: Final = "$stage/packages"
_HERE: Final = f"{targets.WORK}/"
_AT: Final = "\0at"
_RENDERED: Final = {_AT: '"$at"'}


@dataclass(frozen=True, slots=True)
class Piece:
    """One code to bring: to `path` in the job, or into the working folder itself where that is ''."""

    path: str
    code: Code
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One place of the job: `source` on the node ('' for an empty folder), or so many MiB of memory."""

    path: str
    source: str = ""
    read_only: bool = False
    memory_mib: int = 0
    made: bool = False

    @property
    def at_home(self) -> bool:
        """Whether it is to be where it is."""
        return self.path == self.source and not self.read_only


@dataclass(frozen=True, slots=True)
class Laid:
    """Everything that is brought and laid for one job."""

    pieces: tuple[Piece, ...] = ()
    places: tuple[Place, ...] = ()
    packages: Packages | None = None

    def __bool__(self) -> bool:
        return bool(self.pieces or self.packages or self.places)

    @property
    def needs_view(self) -> str:
        """A place that links can't make; '' when there is none."""
        elsewhere = (piece.path for piece in self.pieces if not _is_inner(piece.path))
        bound = (place.path for place in self.places if not (place.at_home or _is_linked(place)))
        return next(chain(elsewhere, bound), "")


def laid(submission: Submission, config: SlurmConfig) -> Laid:
    """What is brought and laid; raises Refused for what can't be."""
    spec = submission.spec
    pieces: list[Piece] = []
    places: list[Place] = []
    if spec.code is not None:
        pieces.append(_code(spec.code, submission))
    for mount in spec.mounts:
        found = _mount(mount, submission)
        if isinstance(found, Piece):
            pieces.append(found)
        elif isinstance(found, Place):
            places.append(found)
    asked = spec.requirements
    packages = Packages(asked.packages, asked.directory) if asked.packages or asked.directory else None
    made = Laid(tuple(pieces), tuple(places), packages)
    _check(made, spec, config)
    return made


def lines(submission: Submission, config: SlurmConfig) -> str:
    """The file that a replica reads first; '' when nothing is to be brought."""
    what = laid(submission, config)
    if not (what or any(role.image and config.images == APPTAINER for role in submission.spec.roles)):
        return ""
    bringing = (_bringing(index, piece, submission) for index, piece in enumerate(what.pieces))
    staged = [line for each in bringing for line in each]
    steps = [_step("code", piece.code.name, f"code_{index}") for index, piece in enumerate(what.pieces)]
    settled: list[str] = []
    if what.packages is not None:
        staged += ["packages() {", f"  {_installing(what)}", "}"]
        steps.append(_step("packages", pip.about(what.packages), "packages"))
        settled = [f"export {name}={value}" for name, value in _visible().items()]
    return "\n".join(
        (
            BEFORE,
            *staged,
            *_function("staged", steps),
            *_function("settled", settled),
            *_function("placed", _placing(what)),
        )
    )


def told(submission: Submission) -> dict[MountPurpose, str]:
    """What PAI_DATA_DIR and its kin say: where the job finds a place, or else where it is."""
    found: dict[MountPurpose, str] = {}
    for mount in submission.spec.mounts:
        each = _mount(mount, submission)
        if said := each if isinstance(each, str) else each.path:
            found.setdefault(mount.purpose, said)
    return found


def shown(submission: Submission) -> Iterator[tuple[str, str, bool]]:
    """Where a replica finds what, and whether it can only be read."""
    source = submission.spec.code
    found = [] if source is None else [_code(source, submission)]
    for each in (*found, *(_mount(mount, submission) for mount in submission.spec.mounts)):
        if isinstance(each, Piece):
            yield each.path or targets.WORK, each.code.name, each.read_only
        elif isinstance(each, Place):
            yield each.path, each.source or ("memory" if each.memory_mib else "empty"), each.read_only


def files(submission: Submission) -> Iterator[tuple[str, str]]:
    """What has to lie in the attempt's folder besides: logins for code, which are secret."""
    source = submission.spec.code
    if source is None:
        return
    login = placeholders.fill(coding.login_of(source.uri), submission.secrets)
    key = placeholders.fill(coding.key_of(source.uri), submission.secrets)
    uri = coding.without_login(source.uri)
    if login:
        with_, without = (git.environment(uri, {}, "", each, "") for each in (login, ""))
        more = {name: value for name, value in with_.items() if without.get(name) != value}
        yield "login", "".join(f"export {name}={shlex.quote(value)}\n" for name, value in more.items())
    if key:
        yield "code-key", key.rstrip("\n") + "\n"


def secrets_named(spec: JobSpec) -> set[str]:
    """The secrets that its places name."""
    uris = [mount.uri for mount in spec.mounts] + ([spec.code.uri] if spec.code else [])
    return {name for uri in uris for name in placeholders.referenced(uri)}


def pack(supply: Supplied, path: Path) -> None:
    """An uploaded tree as an archive, for the nodes: they don't see where the console keeps contents."""
    path.parent.mkdir(mode=0o750, exist_ok=True)  # in a folder that is nobody else's
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in supply.tree.entries:
            member = tarfile.TarInfo(entry.path)
            member.mode = 0o755 if entry.kind in (Kind.PROGRAM, Kind.FOLDER) else 0o644
            content: io.BufferedIOBase | None = None
            if entry.kind is Kind.LINK:
                member.type, member.linkname = tarfile.SYMTYPE, entry.target
            elif entry.kind is Kind.FOLDER:
                member.type = tarfile.DIRTYPE
            else:
                where, offset = supply.where[entry.sha256]
                member.size = entry.size
                content = Path(where).open("rb")  # noqa: SIM115 closed below
                content.seek(offset)
            try:
                archive.addfile(member, content)
            finally:
                if content is not None:
                    content.close()
    draft.rename(path)


def _code(source: CodeSource, submission: Submission) -> Piece:
    if trees.named(source.uri or source.id) is not None:
        return _uploaded(source.uri or source.id, source.path, submission)
    if not source.uri:
        raise refused("code_unknown", id=source.id, setting="code_sources")
    for name, pattern in ((source.branch, coding.REF), (source.commit, coding.COMMIT)):
        if name and not pattern.fullmatch(name):
            raise refused("code_ref", name=name)
    local = local_path(source.uri)
    uri = "" if local else coding.without_login(source.uri)
    code = Code(0, folder=local or "", uri=uri, ref=source.branch, commit=source.commit.lower())
    if uri or code.ref or code.commit or code.folder.endswith(".git"):
        code = Code(0, code.folder, "git", uri, code.ref, code.commit)
    name = (uri or code.folder).rstrip("/").rpartition("/")[2].removesuffix(".git") or "code"
    return Piece(_absolute(source.path or name), code)


def _uploaded(uri: str, path: str, submission: Submission, *, read_only: bool = False) -> Piece:
    if trees.named(uri) not in submission.uploads:
        raise refused("code_no_upload", place=uri)
    target = _absolute(path)
    return Piece("" if target == targets.WORK else target, Code(0, uri=uri), read_only)


def _mount(mount: Mount, submission: Submission) -> Piece | Place | str:
    uri, path = _resolved(mount.uri, submission), mount.path and _absolute(mount.path)
    upload = next((one for one in (uri, mount.id) if trees.named(one) is not None), None)
    if upload is not None:
        if not path and mount.purpose is not MountPurpose.CODE:
            raise refused("mount_without_path", id=upload)
        return _uploaded(upload, path, submission, read_only=mount.read_only)
    if mount.id and not mount.uri:
        raise refused("mount_unknown", id=mount.id, setting="datasets")
    if uri.startswith(EMPTY_SCHEME):
        return _empty(mount, path)
    local = local_path(uri)
    if local is not None:
        source = targets.tidy(local)
        made = mount.purpose is MountPurpose.OUTPUT
        return Place(path or source, source, mount.read_only and not made, made=made)
    if path:
        raise refused("mount_elsewhere", place=without_login(mount.uri), path=path)
    if mount.purpose is MountPurpose.CODE:
        raise refused("code_elsewhere", place=without_login(mount.uri))
    if mount.purpose is MountPurpose.OUTPUT and uri.startswith(DEFAULT_FILE_SYSTEM):
        return Place(f"{_HERE}output")
    return mount.uri


def _empty(mount: Mount, path: str) -> Place:
    if not path:
        raise refused("mount_without_path", id=mount.uri)
    if mount.options.get("medium") != "Memory":
        return Place(path)
    size = amounts.read(mount.options.get("sizeLimit", ""), Quantity.MEMORY, bare="b")
    return Place(path, memory_mib=amounts.whole(size) if size else 64)


def _resolved(uri: str, submission: Submission) -> str:
    name = submission.person.name
    known = {"$PAI_JOB_NAME": submission.job_id, "$PAI_USER_NAME": name, "$PAI_USERNAME": name}
    for said, value in known.items():
        uri = uri.replace(said, value)
    return uri


def _absolute(path: str) -> str:
    return targets.tidy(path if path.startswith("/") else f"{_HERE}{path}")


def _check(made: Laid, spec: JobSpec, config: SlurmConfig) -> None:
    everything: list[Piece | Place] = [*made.pieces, *made.places]
    paths = [each.path for each in everything if each.path]
    for each in everything:
        at_home = isinstance(each, Place) and each.path == each.source
        if each.path and not (at_home or targets.is_free(each.path)):
            raise refused("mount_over", path=each.path)
    if (twice := targets.clash(paths)) is not None:
        raise refused("mount_twice", path=twice)
    alone = spec.framework is not None and spec.framework.value == "slurm"
    if (config.mounts == "links" or alone) and (path := made.needs_view):
        raise refused("mount_needs_view", path=path)
    if config.images and any(role.image for role in spec.roles):
        if config.images == "oci" and (path := made.needs_view):
            raise refused("mount_needs_view", path=path)
        for place in made.places:
            if place.memory_mib or not (place.source or _is_linked(place)):
                raise refused("mount_needs_view", path=place.path)


def seats(submission: Submission, config: SlurmConfig) -> Iterator[str]:
    """What an image that srun runs gets mounted, `source:path:mode`, as words of the batch script."""
    what = laid(submission, config)
    for index, piece in enumerate(what.pieces):
        if not _is_inner(piece.path):
            mode = "ro" if piece.read_only else "rw"
            yield f'"$run/stage/all/code-{index}":{shlex.quote(piece.path)}:{mode}'
    for place in what.places:
        if not _is_linked(place) and not _is_inner(place.path):
            mode = "ro" if place.read_only else "rw"
            yield f"{shlex.quote(place.source)}:{shlex.quote(place.path)}:{mode}"
        elif _is_linked(place) and place.source:
            yield f"{shlex.quote(place.source)}:{shlex.quote(place.source)}:rw"


def _is_inner(path: str) -> bool:
    return not path or path.startswith(_HERE)


def _is_linked(place: Place) -> bool:
    return _is_inner(place.path) and not place.read_only and not place.memory_mib


def _bringing(index: int, piece: Piece, submission: Submission) -> Iterator[str]:
    """The function that fetches one code into the node's folder."""
    code = piece.code
    yield f"code_{index}() ("
    yield f"  at=$stage/code-{index}"
    yield '  mkdir -p "$at"'
    if code.git:
        yield from _exports(code, submission)
        yield f"  {_fetching(code)}"
    elif code.tree:
        yield f'  unpacked trees/{code.tree}.tar "$at"'
    else:
        yield f'  copied {shlex.quote(code.folder)} "$at"'
    yield ")"


def _exports(code: Code, submission: Submission) -> Iterator[str]:
    source = submission.spec.code
    has_key = source is not None and coding.key_of(source.uri)
    found = git.environment(code.uri, {}, "", "", "\0" if has_key else "")
    for name, value in found.items():
        if name != "GIT_CONFIG_GLOBAL":
            text = shlex.quote(value).replace("\0", """'"$folder/code-key"'""")
            yield f"  export {name}={text}"
    yield f"""  printf %s {shlex.quote(git.CONFIG_TEXT)} >"$stage/{git.CONFIG}" """.rstrip()
    yield f'  export GIT_CONFIG_GLOBAL="$stage/{git.CONFIG}"'
    yield '  [ ! -e "$folder/login" ] || . "$folder/login"'


def _fetching(code: Code) -> str:
    source = code.uri or code.folder
    return " || ".join(
        "{ " + " && ".join(_words(argv) for argv in argvs) + "; }"
        for argvs in git.commands(code, source, _AT)
    )


def _words(argv: Sequence[str]) -> str:
    patience = f"timeout {PATIENCE_S} " if "fetch" in argv else ""
    return patience + " ".join(_RENDERED.get(word) or shlex.quote(word) for word in argv)


def _installing(what: Laid) -> str:
    """pip, told as on a machine of one's own; what it installs lies beside the code."""
    packages = what.packages
    assert packages is not None
    directory = packages.directory and _absolute(packages.directory)
    rendered = {f"{_AT}/.local/packages": f'"{PACKAGES}/.local/packages"'}
    rendered[f"{_AT}/requirements.txt"] = f"{_node_path(what, directory)}/requirements.txt"
    argv = pip.arguments(Packages(packages.names, _AT if directory else ""), _AT)
    said = " ".join(rendered.get(word) or shlex.quote(word) for word in argv)
    settings = " ".join(f"{name}={value}" for name, value in pip.configuration().items())
    return f'PYTHONUSERBASE="{PACKAGES}/.local" {settings} timeout {PATIENCE_S} sh -c {said}'


def _node_path(what: Laid, directory: str) -> str:
    """A folder of the job where the node has it before anything was laid."""
    for index, piece in enumerate(what.pieces):
        around = piece.path or targets.WORK
        if directory == around or directory.startswith(f"{around}/"):
            return f'"$stage/code-{index}"' + shlex.quote(directory[len(around) :])
    for place in what.places:
        if place.source and (directory == place.path or directory.startswith(f"{place.path}/")):
            return shlex.quote(place.source + directory[len(place.path) :])
    return shlex.quote(directory)


def _visible() -> dict[str, str]:
    found = pip.visible({"PATH": "$PATH"}, PACKAGES)
    return {
        name: f'"{value}"' if name != "PYTHONPATH" else f'"{value}${{PYTHONPATH:+:$PYTHONPATH}}"'
        for name, value in found.items()
    }


def _placing(what: Laid) -> Iterator[str]:
    """For one replica: links below its own folder, and what its view is to have."""
    for index, piece in enumerate(what.pieces):
        source = f'"$stage/code-{index}"'
        if not piece.path:
            yield f'copied {source} "$PWD" || return'
        elif _is_inner(piece.path) and not piece.read_only:
            yield f"linked {source} {_inner(piece.path)} || return"
        else:
            yield _seated(source, piece.path, "ro" if piece.read_only else "rw")
    for index, place in enumerate(what.places):
        source = shlex.quote(place.source) if place.source else f'"$run/empty/$name/{index}"'
        if not place.memory_mib:
            if place.made or not place.source:
                yield f"mkdir -p {source}"
            yield f"[ -d {source} ] || " + _missing(place.source)
        if place.memory_mib:
            yield _seated("''", place.path, f"memory:{place.memory_mib}")
        elif place.at_home:
            continue
        elif _is_linked(place):
            yield f"linked {source} {_inner(place.path)} || return"
        else:
            yield _seated(source, place.path, "ro" if place.read_only else "rw")


def _missing(source: str) -> str:
    words = shlex.quote(f"mount {source}: there is no such folder on this node")
    return f'{{ written "$stage.failed" {words}; return 1; }}'


def _seated(source: str, path: str, mode: str) -> str:
    if _is_inner(path):
        return f'mkdir -p "$PWD/"{_inner(path)} && place {source} "$PWD/"{_inner(path)} {mode}'
    return f"place {source} {shlex.quote(path)} {mode}"


def _inner(path: str) -> str:
    return shlex.quote(path.removeprefix(_HERE))


def _step(cause: str, about: str, command: str) -> str:
    return f"step {cause} {shlex.quote(about)} {command} || return"


def _function(name: str, body: Iterator[str] | list[str]) -> list[str]:
    return [f"{name}() {{", *(f"  {line}" for line in body), "  :", "}"]
