"""Code of a job: cloned or fetched by an init container, or an upload that lies in ConfigMaps.

OpenPAI's codeDir is the code of a job that has no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from jobs import trees
from jobs.backends.base import Submission
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.refusals import refusal
from jobs.backends.staging import tree_archives
from jobs.backends.staging.code_sources import (
    check_ref,
    folder_name,
    is_code_dir_elsewhere,
    needs_no_git,
)
from jobs.backends.staging.mounts import CODE_DIR_BYTES
from jobs.backends.staging.storage_map import find_storage
from jobs.backends.staging.transfer_orders import CODE_BYTES, Order, login_for_code, order_code
from jobs.dialects import placeholders
from jobs.facilities import split_code, without_login
from jobs.node.staging import mount_paths
from jobs.spec import CodeSource, Mount
from jobs.trees import Supplied

PART_BYTES: Final = 700_000
"""Of an upload in one ConfigMap, which may have 1 MiB in all, a third of it for base64."""

MOST_BYTES: Final = 8_000_000
"""Of a compressed upload: etcd holds all of it."""

UPLOAD: Final = "code"
"""The folder of an upload that names none."""

PARTS: Final = "/job-console-code"
"""Where the init container finds the parts of an upload."""

PASSWORD: Final = "JOB_CONSOLE_GIT_PASSWORD"  # noqa: S105 a variable

CLONE: Final = r"""set -eu
umask 022
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_NOSYSTEM=1 HOME="$(mktemp -d)"
git config --global core.hooksPath /dev/null
git config --global http.followRedirects false
if [ -n "${JOB_CONSOLE_GIT_PASSWORD:-}" ]; then
  git config --global "credential.$CODE_HOST.helper" \
    '!f() { echo "username=$CODE_USER"; echo "password=$JOB_CONSOLE_GIT_PASSWORD"; }; f'
fi
git init -q "$CODE_PATH"
cd "$CODE_PATH"
git remote add origin "$CODE_URI"
if [ -n "$CODE_COMMIT" ]; then
  git fetch -q --depth 1 origin "$CODE_COMMIT" || git fetch -q origin "${CODE_REF:-HEAD}"
  git -c advice.detachedHead=false checkout -q "$CODE_COMMIT"
else
  git fetch -q --depth 1 origin "${CODE_REF:-HEAD}"
  git -c advice.detachedHead=false checkout -q FETCH_HEAD
fi
if [ -n "$CODE_SUBMODULES" ]; then git submodule --quiet update --init --recursive; fi
git rev-parse HEAD >/dev/termination-log
"""
"""The login is for the repository's own host: a submodule may name another one."""

UNPACK: Final = """\
set -eu
mkdir -p "$CODE_PATH"
cat /job-console-code/part-* | tar -xzf - --no-same-owner -C "$CODE_PATH"
"""


@dataclass(frozen=True, slots=True)
class Code:
    """How a job's code is brought: what an init container runs with which variables, and parts of an upload.

    `secret` names the secret with the repository's password, "" for none.  The data mover has an `order`, in
    which a login may be, in place of a script.
    """

    path: str
    script: str
    env: dict[str, str]
    order: Order | None = field(default=None, repr=False)
    parts: tuple[bytes, ...] = ()
    secret: str = ""
    is_git: bool = False


def find_source(submission: Submission) -> CodeSource | None:
    """Return where the job's code is, None for a job without."""
    if submission.spec.code is not None:
        return submission.spec.code
    for mount in submission.spec.mounts:
        if is_code_dir_elsewhere(mount, mount.uri) and not is_mapped(submission, mount):
            return CodeSource(uri=mount.uri)
    return None


def is_mapped(submission: Submission, mount: Mount) -> bool:
    """Return whether storage of this site stands for a mount.  Raises Refused."""
    return find_storage(submission.storage, mount.id, mount.uri, submission.workspace) is not None


def find_path(source: CodeSource) -> str:
    """Return where the code is in the job."""
    is_upload = trees.tree_id_of(source.uri or source.id) is not None
    return mount_paths.locate(
        source.path or (UPLOAD if is_upload else folder_name(without_login(source.uri)))
    )


def plan_code(submission: Submission, config: KubernetesConfig) -> Code | None:
    """Return how the job's code is brought; None for a job without.  Raises Refused."""
    source = find_source(submission)
    if source is None:
        return None
    if (tree := trees.tree_id_of(source.uri or source.id)) is not None:
        return _plan_upload(source, tree, submission)
    if not source.uri:
        raise refusal("code_unknown", id=source.id, setting="code_sources")
    shown, path = without_login(source.uri), find_path(source)
    if needs_no_git(source):
        most = CODE_BYTES if submission.spec.code else CODE_DIR_BYTES
        order = order_code(source, submission, config.hdfs, most) | login_for_code(source, submission)
        return Code(path, "", {"CODE_URI": shown}, order)
    parts = split_code(source.uri)
    if parts is None:
        raise refusal("code_address", place=shown)
    if parts.scheme not in ("https", "http"):
        raise refusal("code_elsewhere", place=shown)
    check_ref(source)
    env = {
        "CODE_PATH": path,
        "CODE_URI": shown,
        "CODE_REF": source.branch,
        "CODE_COMMIT": source.commit,
        "CODE_USER": parts.username or "git",
        "CODE_HOST": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        "CODE_SUBMODULES": "1" if source.submodules else "",
    }
    secret = placeholders.reference(parts.password or "") or ""
    return Code(path, CLONE, env, secret=secret, is_git=True)


def _plan_upload(source: CodeSource, tree: str, submission: Submission) -> Code:
    supply = submission.uploads.get(tree)
    if supply is None:
        raise refusal("code_no_upload", place=source.uri or source.id)
    packed = pack(supply)
    if len(packed) > MOST_BYTES:
        raise refusal("code_too_large", place=source.uri or source.id, most_mb=MOST_BYTES // 10**6)
    parts = tuple(packed[at : at + PART_BYTES] for at in range(0, len(packed), PART_BYTES))
    path = find_path(source)
    return Code(path, UNPACK, {"CODE_PATH": path}, parts=parts)


def pack(supply: Supplied) -> bytes:
    """Return an uploaded tree as a compressed archive; nothing of one that a preview names."""
    if not supply.where and supply.size:
        return b""
    return tree_archives.compress(supply)


def parts_volume(key: str, count: int) -> dict[str, Any]:
    """Return the volume with all parts of an upload."""
    sources = [
        {
            "configMap": {
                "name": part_name(key, number),
                "items": [{"key": "part", "path": f"part-{number:04}"}],
            }
        }
        for number in range(count)
    ]
    return {"projected": {"sources": sources}}


def part_name(key: str, number: int) -> str:
    """Return the name of the ConfigMap with a part of an upload."""
    return f"{key}-code-{number}"
