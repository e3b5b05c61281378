"""Staging of a job's code, packages and mounts, as shell lines of its prolog.

git and pip are called as by the local backend; `prolog.sh` is the same for every job.  The nodes stage as the
job's own user, who can reach no more than the job's command.
"""

from __future__ import annotations

import json
import shlex
from base64 import encodebytes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from jobs import trees
from jobs.backends.base import Submission
from jobs.backends.refusals import refusal
from jobs.backends.remote import bundle
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.script import containers, shell
from jobs.backends.slurm.script.container_runtimes import APPTAINER
from jobs.backends.staging import code_sources, transfer_orders
from jobs.backends.staging.mounts import (
    CODE_DIR_BYTES,
    DEFAULT_FILE_SYSTEM,
    EMPTY_SCHEME,
    fill_names,
    find_upload,
    is_in_memory,
    memory_mib,
)
from jobs.backends.staging.storage_map import apply_mapping, find_storage
from jobs.dialects import placeholders
from jobs.facilities import (
    CODE_SCHEMES,
    StorageMapping,
    lies_in,
    local_path,
    split_code,
    without_login,
)
from jobs.node import credential_server
from jobs.node.staging import git, mount_paths, pip
from jobs.node.staging.mount_specs import CodeSpec, PackageSpec
from jobs.node.wrapper.companions import MOST_GRACE_S
from jobs.spec import CodeSource, JobSpec, Mount, MountPurpose, name_containers

PROLOG: Final = Path(__file__).with_name("prolog.sh").read_text(encoding="utf-8").rstrip("\n")
PATIENCE_S: Final = 1800
"""The timeout of fetching code and packages."""

PACKAGES: Final = "$stage/packages"
CODE_DIR_LOGIN: Final = "dir-"
"""Begins the names of the secret files of OpenPAI's codeDir."""

BUCKET_LOGIN: Final = "bucket-"
"""Begins the name of the secret file with the signed addresses of buckets."""

_HERE: Final = f"{mount_paths.WORK}/"
DEFAULT_MEMORY_MIB: Final = 64
"""The size of a mount in memory that names none."""

_MOVER: Final = "$stage/mover.pyz"
_END_OF_MOVER: Final = "END_OF_MOVER"
_END_OF_SERVER: Final = "END_OF_CREDENTIAL_SERVER"

STORE: Final = '"${{XDG_CACHE_HOME:-$HOME/.cache}}/job-console/{person}/packages"'
STORE_BYTES: Final = 20 << 30
UNUSED_S: Final = 30 * 24 * 3600
"""Environments of libraries: of the UNIX user, and of the person where several have one user.

Running jobs on other nodes hold no lock, so what was used lately stays.
"""

_STORE: Final = "\0store"
_AT: Final = "\0at"
_RENDERED: Final = {_AT: '"$at"'}


@dataclass(frozen=True, slots=True)
class CodePiece:
    """Code or data to fetch to `path` in the job, "" for the working folder itself.

    `order` is for the data mover, where that fetches it; `login` begins the names of its secret files.
    `cause` is that of a failure.
    """

    path: str
    code: CodeSpec
    read_only: bool = False
    order: str = ""
    login: str = ""
    cause: str = "code"


@dataclass(frozen=True, slots=True)
class StagedPlace:
    """A mount of the job: `source` on the node ("" for an empty folder), or so many MiB of memory."""

    path: str
    source: str = ""
    read_only: bool = False
    memory_mib: int = 0
    made: bool = False

    @property
    def at_home(self) -> bool:
        """Return whether it is mounted at its own path."""
        return self.path == self.source and not self.read_only


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """All that is staged and mounted for one job."""

    pieces: tuple[CodePiece, ...] = ()
    places: tuple[StagedPlace, ...] = ()
    packages: PackageSpec | None = None

    def __bool__(self) -> bool:
        return bool(self.pieces or self.packages or self.places)

    @property
    def needs_view(self) -> str:
        """Return a path that links can't make, "" for none."""
        elsewhere = (piece.path for piece in self.pieces if piece.read_only or not _is_inner(piece.path))
        bound = (place.path for place in self.places if not (place.at_home or _is_link(place)))
        return next(chain(elsewhere, bound), "")


def plan_staging(submission: Submission, config: SlurmConfig) -> StagingPlan:
    """Plan the staging.  Raises Refused."""
    spec = submission.spec
    pieces: list[CodePiece] = []
    places: list[StagedPlace] = []
    if spec.code is not None:
        pieces.append(_plan_code(spec.code, submission, config))
    for mount in spec.mounts:
        found = _plan_mount(mount, submission, config)
        if isinstance(found, CodePiece):
            pieces.append(found)
        elif isinstance(found, StagedPlace):
            places.append(found)
    shared = dict.fromkeys(mount_paths.locate(path) for role in spec.roles for path in role.shared_paths)
    places += [StagedPlace(path) for path in shared if path not in (mount_paths.WORK, mount_paths.TMP)]
    asked = spec.requirements
    packages = PackageSpec(asked.packages, asked.directory) if asked.packages or asked.directory else None
    made = StagingPlan(tuple(pieces), tuple(places), packages)
    _check(made, spec, config)
    return made


def render_prolog(submission: Submission, config: SlurmConfig, *, alone: bool) -> str:
    """Return the prolog of a replica, "" when nothing is done before or beside its command."""
    what, spec = plan_staging(submission, config), submission.spec
    is_needed = bool(what or spec.instance_role or any(map(name_containers, spec.roles)))
    if not (is_needed or any(role.image and config.images == APPTAINER for role in spec.roles)):
        return ""
    bringing = (_render_fetch(index, piece, submission) for index, piece in enumerate(what.pieces))
    staged = [line for each in bringing for line in each]
    if any(piece.order for piece in what.pieces):
        staged = [*_render_mover(config), *staged]
    steps = [_step(piece.cause, piece.code.name, f"code_{index}") for index, piece in enumerate(what.pieces)]
    installed, settled = list[str](), list[str]()
    if what.packages is not None:
        staged += ["packages() {", f"  {_pip_command(what, submission.person.number)}", "}"]
        installed.append(_step("packages", pip.about(what.packages), "packages"))
        settled = [f"export {name}={value}" for name, value in _visible().items()]
    return "\n".join(
        (
            PROLOG,
            *staged,
            *shell.define("staged", steps),
            *shell.define("installed", installed),
            *shell.define("settled", settled),
            *shell.define("placed", _render_placement(what)),
            *_render_credential_server(submission, config),
            *containers.render(spec, config, alone=alone),
            f"dismissing={min(spec.grace_s, MOST_GRACE_S):.0f}",
        )
    )


def _render_credential_server(submission: Submission, config: SlurmConfig) -> Iterator[str]:
    """Yield the function that starts the server for credentials of the job's role, if it has one."""
    if not submission.spec.instance_role:
        yield from shell.define("provided", [])
        return
    program = Path(credential_server.__file__).read_text(encoding="utf-8").rstrip("\n")
    yield from shell.define_printing("print_credential_server", program, _END_OF_SERVER)
    words = (submission.role_provider, config.python, *bundle.ISOLATED)
    called = f"serve_credentials {' '.join(map(shlex.quote, words))} || return"
    yield from shell.define("provided", [called])


def told_locations(submission: Submission, config: SlurmConfig) -> dict[str, str]:
    """Return the locations of mounts by their purpose: the path in the job, or else the location."""
    found: dict[str, str] = {}
    for mount in submission.spec.mounts:
        each = _plan_mount(mount, submission, config)
        if said := each if isinstance(each, str) else each.path:
            found.setdefault(mount.purpose, said)
    return found


def list_mounts(submission: Submission, config: SlurmConfig) -> Iterator[tuple[str, str, bool]]:
    """Yield the path, source and read-only flag of each mount."""
    plan = plan_staging(submission, config)
    for piece in plan.pieces:
        yield piece.path or mount_paths.WORK, piece.code.name, piece.read_only
    for place in plan.places:
        yield place.path, place.source or ("memory" if place.memory_mib else "empty"), place.read_only


def login_files(submission: Submission) -> Iterator[tuple[str, str]]:
    """Yield the name and content of the attempt's secret files: logins for code."""
    spec = submission.spec
    if spec.code is not None:
        yield from _login_files("", spec.code, submission)
    for mount in spec.mounts:
        if code_sources.is_code_dir_elsewhere(mount, mount.uri):
            yield from _login_files(CODE_DIR_LOGIN, CodeSource(uri=mount.uri), submission)
            return


def bucket_files(submission: Submission) -> Iterator[tuple[str, str]]:
    """Yield the name and content of the secret file with the signed addresses of buckets, if there are any.

    Raises NotSubmitted where a bucket does not answer.
    """
    if objects := transfer_orders.sign_buckets(submission):
        yield f"{BUCKET_LOGIN}login", json.dumps({"objects": objects})


def _login_files(prefix: str, source: CodeSource, submission: Submission) -> Iterator[tuple[str, str]]:
    if code_sources.needs_no_git(source):
        if found := transfer_orders.login_for_code(source, submission):
            yield f"{prefix}login", json.dumps(found)
        return
    login = placeholders.fill(code_sources.login_of(source.uri), submission.secrets)
    key = placeholders.fill(code_sources.key_of(source.uri), submission.secrets)
    if login:
        uri, submodules = code_sources.without_login(source.uri), source.submodules
        with_, without = (
            git.environment(uri, {}, "", each, "", submodules=submodules) for each in (login, "")
        )
        more = {name: value for name, value in with_.items() if without.get(name) != value}
        exports = (f"export {name}={shlex.quote(value)}\n" for name, value in more.items())
        yield f"{prefix}login", "".join(exports)
    if key:
        yield f"{prefix}code-key", key.rstrip("\n") + "\n"


def _plan_code(source: CodeSource, submission: Submission, config: SlurmConfig) -> CodePiece:
    if trees.tree_id_of(source.uri or source.id) is not None:
        return _plan_upload(source.uri or source.id, source.path, submission)
    if not source.uri:
        raise refusal("code_unknown", id=source.id, setting="code_sources")
    if not code_sources.needs_no_git(source):
        return CodePiece(_code_path(source), _repository(source))
    order = transfer_orders.order_code(source, submission, config.hdfs)
    login = BUCKET_LOGIN if order["uri"] == transfer_orders.SIGNED else ""
    return CodePiece(_code_path(source), CodeSpec(0, uri=order["name"]), order=json.dumps(order), login=login)


def _code_path(source: CodeSource) -> str:
    return mount_paths.locate(source.path or code_sources.folder_name(without_login(source.uri)))


def _repository(source: CodeSource) -> CodeSpec:
    code_sources.check_ref(source)
    local = local_path(source.uri)
    uri = "" if local else code_sources.without_login(source.uri)
    code = CodeSpec(0, folder=local or "", uri=uri, ref=source.branch, commit=source.commit.lower())
    if uri or code.ref or code.commit or code.folder.endswith(".git"):
        return replace(code, git="git", submodules=source.submodules)
    return code


def _plan_code_dir(uri: str, submission: Submission, config: SlurmConfig) -> CodePiece:
    """Plan OpenPAI's codeDir elsewhere, which is read-only."""
    source, parts = CodeSource(uri=uri), split_code(uri)
    path = _code_path(source)
    if code_sources.needs_no_git(source):
        order = transfer_orders.order_code(source, submission, config.hdfs, CODE_DIR_BYTES)
        return CodePiece(path, CodeSpec(0, uri=order["name"]), True, json.dumps(order), CODE_DIR_LOGIN)
    if parts is None or parts.scheme not in CODE_SCHEMES:
        raise refusal("code_elsewhere", place=without_login(uri))
    return CodePiece(path, _repository(source), True, login=CODE_DIR_LOGIN)


def _plan_upload(uri: str, path: str, submission: Submission, *, read_only: bool = False) -> CodePiece:
    if trees.tree_id_of(uri) not in submission.uploads:
        raise refusal("code_no_upload", place=uri)
    target = mount_paths.locate(path)
    return CodePiece("" if target == mount_paths.WORK else target, CodeSpec(0, uri=uri), read_only)


def _plan_mount(mount: Mount, submission: Submission, config: SlurmConfig) -> CodePiece | StagedPlace | str:
    uri = fill_names(mount.uri, submission.spec.name, submission.person.name)
    path = mount.path and mount_paths.locate(mount.path)
    upload = find_upload(uri, mount.id)
    if upload is not None:
        if not path and mount.purpose is not MountPurpose.CODE:
            raise refusal("mount_without_path", id=upload)
        return _plan_upload(upload, path, submission, read_only=mount.read_only)
    mapping = find_storage(submission.storage, mount.id, uri, submission.workspace)
    if mapping is not None:
        return _plan_mapped(mount, mapping, uri, path)
    if mount.id and not mount.uri:
        raise refusal("mount_unknown", id=mount.id)
    if code_sources.is_code_dir_elsewhere(mount, uri):
        return _plan_code_dir(uri, submission, config)
    if uri.startswith(EMPTY_SCHEME):
        return _plan_empty(mount, path)
    local = local_path(uri)
    if local is not None:
        return _plan_folder(mount, local, path)
    if path:
        raise refusal("mount_elsewhere", place=without_login(mount.uri), path=path)
    if mount.purpose is MountPurpose.OUTPUT and uri.startswith(DEFAULT_FILE_SYSTEM):
        return StagedPlace(f"{_HERE}output")
    return mount.uri


def _plan_mapped(mount: Mount, mapping: StorageMapping, uri: str, path: str) -> CodePiece | StagedPlace | str:
    """Plan the folder or bucket that is mapped to an id or an address."""
    mount, path = apply_mapping(mount, mapping, path)
    return _plan_bucket(mount, uri, path) if mapping.bucket else _plan_folder(mount, mapping.folder, path)


def _plan_bucket(mount: Mount, uri: str, path: str) -> CodePiece | str:
    """Plan what is copied in from a bucket, by addresses that are signed at submission."""
    if not path:
        return mount.uri
    order = transfer_orders.order_bucket(mount, uri)
    code = CodeSpec(0, uri=order["name"])
    return CodePiece(path, code, True, json.dumps(order), BUCKET_LOGIN, cause="data")


def _plan_folder(mount: Mount, folder: str, path: str) -> StagedPlace:
    source = mount_paths.normalize(folder)
    made = mount.purpose is MountPurpose.OUTPUT
    return StagedPlace(path or source, source, mount.read_only and not made, made=made)


def _plan_empty(mount: Mount, path: str) -> StagedPlace:
    if not path:
        raise refusal("mount_without_path", id=mount.uri)
    if not is_in_memory(mount):
        return StagedPlace(path)
    return StagedPlace(path, memory_mib=memory_mib(mount) or DEFAULT_MEMORY_MIB)


def _check(plan: StagingPlan, spec: JobSpec, config: SlurmConfig) -> None:
    everything: list[CodePiece | StagedPlace] = [*plan.pieces, *plan.places]
    paths = [each.path for each in everything if each.path]
    for each in everything:
        at_home = isinstance(each, StagedPlace) and each.path == each.source
        if each.path and not (at_home or mount_paths.is_free(each.path)):
            raise refusal("mount_over", path=each.path)
    if (twice := mount_paths.clash(paths)) is not None:
        raise refusal("mount_twice", path=twice)
    alone = spec.framework is not None and spec.framework.value == "slurm"
    if (config.mounts == "links" or alone) and (path := plan.needs_view):
        raise refusal("mount_needs_view", path=path)
    if config.images and any(role.image for role in spec.roles):
        if config.images == "oci" and (path := plan.needs_view):
            raise refusal("mount_needs_view", path=path)
        for place in plan.places:
            if place.memory_mib or not (place.source or _is_link(place)):
                raise refusal("mount_needs_view", path=place.path)


def container_mounts(submission: Submission, config: SlurmConfig) -> Iterator[str]:
    """Yield the mounts of an image that srun runs, `source:path:mode`, as words of the batch script."""
    what = plan_staging(submission, config)
    for index, piece in enumerate(what.pieces):
        if not _is_inner(piece.path):
            mode = "ro" if piece.read_only else "rw"
            yield f'"$run/stage/all/code-{index}":{shlex.quote(piece.path)}:{mode}'
    for place in what.places:
        if not _is_link(place) and not _is_inner(place.path):
            mode = "ro" if place.read_only else "rw"
            yield f"{shlex.quote(place.source)}:{shlex.quote(place.path)}:{mode}"
        elif _is_link(place) and place.source:
            yield f"{shlex.quote(place.source)}:{shlex.quote(place.source)}:rw"


def _is_inner(path: str) -> bool:
    return not path or path.startswith(_HERE)


def _is_link(place: StagedPlace) -> bool:
    return _is_inner(place.path) and not place.read_only and not place.memory_mib


def _render_fetch(index: int, piece: CodePiece, submission: Submission) -> Iterator[str]:
    """Yield the function that fetches code into the node's folder."""
    code = piece.code
    yield f"code_{index}() ("
    yield f"  at=$stage/code-{index}"
    yield '  mkdir -p "$at"'
    if piece.order:
        yield f"""  printf %s {shlex.quote(piece.order)} >"$stage/order-{index}" """.rstrip()
        yield f'  moved "$stage/order-{index}" "$at" "$folder/{piece.login}login"'
    elif code.git:
        yield from _git_exports(piece, submission)
        yield f"  {_git_command(code)}"
    elif code.tree:
        yield f'  unpacked trees/{code.tree}.tar "$at"'
    else:
        yield f'  copied {shlex.quote(code.folder)} "$at"'
    yield ")"


def _render_mover(config: SlurmConfig) -> Iterator[str]:
    """Yield the function that runs the data mover on the node, with the program in it."""
    python = " ".join([shlex.quote(config.python), *bundle.ISOLATED])
    yield "moved() { # ORDER FOLDER LOGIN: fetch code that needs no git"
    yield f"  base64 -d >\"{_MOVER}\" <<'{_END_OF_MOVER}' || return"
    yield from encodebytes(bundle.zip_data_mover()).decode().splitlines()
    yield _END_OF_MOVER
    yield f'  timeout {PATIENCE_S} {python} "{_MOVER}" "$@"'
    yield "}"


def _git_exports(piece: CodePiece, submission: Submission) -> Iterator[str]:
    code = piece.code
    has_key = any(name == f"{piece.login}code-key" for name, _ in login_files(submission))
    found = git.environment(code.uri, {}, "", "", "\0" if has_key else "", submodules=code.submodules)
    for name, value in found.items():
        if name != "GIT_CONFIG_GLOBAL":
            text = shlex.quote(value).replace("\0", f"""'"$folder/{piece.login}code-key"'""")
            yield f"  export {name}={text}"
    yield f"""  printf %s {shlex.quote(git.CONFIG_TEXT)} >"$stage/{git.CONFIG}" """.rstrip()
    yield f'  export GIT_CONFIG_GLOBAL="$stage/{git.CONFIG}"'
    login = f'"$folder/{piece.login}login"'
    yield f"  [ ! -e {login} ] || . {login}"


def _git_command(code: CodeSpec) -> str:
    source = code.uri or code.folder
    return " || ".join(
        "{ " + " && ".join(_render_command(argv) for argv in argvs) + "; }"
        for argvs in git.commands(code, source, _AT)
    )


def _render_command(argv: Sequence[str]) -> str:
    patience = f"timeout {PATIENCE_S} " if git.connects(argv) else ""
    return patience + " ".join(_RENDERED.get(word) or shlex.quote(word) for word in argv)


def _pip_command(what: StagingPlan, person: int) -> str:
    """Return the installer's command; the job finds its packages beside the code."""
    packages = what.packages
    assert packages is not None
    directory = packages.directory and mount_paths.locate(packages.directory)
    rendered = {pip.own_folder(_AT): f'"{pip.own_folder(PACKAGES)}"', _STORE: STORE.format(person=person)}
    rendered[_AT] = _node_path(what, directory)
    given = PackageSpec(packages.names, _AT if directory else "", cache_bytes=STORE_BYTES)
    argv = pip.arguments(given, _AT, _STORE, unused_s=UNUSED_S)
    said = " ".join(rendered.get(word) or shlex.quote(word) for word in argv)
    settings = " ".join(f"{name}={value}" for name, value in pip.configuration().items())
    return f'in_view env PYTHONUSERBASE="{PACKAGES}/.local" {settings} timeout {PATIENCE_S} sh -c {said}'


def _node_path(what: StagingPlan, directory: str) -> str:
    """Return the path on the node of a folder of the job, before anything is mounted."""
    for index, piece in enumerate(what.pieces):
        around = piece.path or mount_paths.WORK
        if directory == around or directory.startswith(f"{around}/"):
            return f'"$stage/code-{index}"' + shlex.quote(directory[len(around) :])
    for place in what.places:
        if place.source and (directory == place.path or directory.startswith(f"{place.path}/")):
            return shlex.quote(place.source + directory[len(place.path) :])
    return shlex.quote(directory)


def log_folder(path: str, submission: Submission, config: SlurmConfig) -> str:
    """Return the word for a shell, in the replica's working folder, of a path in the job on its node."""
    if shell.lies_in_work(path):
        return shell.locate(path)
    what = plan_staging(submission, config)
    for index, place in enumerate(what.places):
        if not (place.source or place.memory_mib) and lies_in(path, place.path):
            return f'"$run/empty/$name/{index}"' + shlex.quote(path[len(place.path) :])
    return _node_path(what, path)


def _visible() -> dict[str, str]:
    found = pip.visible({"PATH": "$PATH"}, PACKAGES)
    return {
        name: f'"{value}"' if name != "PYTHONPATH" else f'"{value}${{PYTHONPATH:+:$PYTHONPATH}}"'
        for name, value in found.items()
    }


def _render_placement(what: StagingPlan) -> Iterator[str]:
    """Yield the lines of one replica: links below its own folder, and the mounts of its view."""
    for index, piece in enumerate(what.pieces):
        source = f'"$stage/code-{index}"'
        if not piece.path:
            yield f'copied {source} "$PWD" || return'
        elif _is_inner(piece.path) and not piece.read_only:
            yield f"linked {source} {_relative(piece.path)} || return"
        else:
            yield _render_view(source, piece.path, "ro" if piece.read_only else "rw")
    for index, place in enumerate(what.places):
        source = shlex.quote(place.source) if place.source else f'"$run/empty/$name/{index}"'
        if not place.memory_mib:
            if place.made or not place.source:
                yield f"mkdir -p {source}"
            yield f"[ -d {source} ] || " + _report_missing(place.source)
        if place.memory_mib:
            yield _render_view("''", place.path, f"memory:{place.memory_mib}")
        elif place.at_home:
            continue
        elif _is_link(place):
            yield f"linked {source} {_relative(place.path)} || return"
        else:
            yield _render_view(source, place.path, "ro" if place.read_only else "rw")


def _report_missing(source: str) -> str:
    words = shlex.quote(f"mount {source}: there is no such folder on this node")
    return f'{{ written "$stage.failed" {words}; return 1; }}'


def _render_view(source: str, path: str, mode: str) -> str:
    word = shell.locate(path)
    return (f"mkdir -p {word} && " if _is_inner(path) else "") + f"place {source} {word} {mode}"


def _relative(path: str) -> str:
    return shlex.quote(path.removeprefix(_HERE))


def _step(cause: str, about: str, command: str) -> str:
    return f"step {cause} {shlex.quote(about)} {command} || return"
