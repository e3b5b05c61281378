"""TensorBoard beside a job: which replica has it, and its log folder."""

from __future__ import annotations

from jobs.dialects.sbatch.launcher import leader
from jobs.node.staging import mount_paths
from jobs.node.wrapper import tensorboard
from jobs.spec import JobSpec


def log_path(spec: JobSpec) -> str | None:
    """Return the path in the job of the log folder; None without TensorBoard.

    A relative path is below the working folder, and an address elsewhere stays as it is.
    """
    board = spec.tensorboard
    if board is None or not board.enabled:
        return None
    if "://" in board.log_path:
        return board.log_path
    return mount_paths.locate(board.log_path) if board.log_path else tensorboard.DEFAULT_FOLDER


def leading_role(spec: JobSpec) -> int:
    """Return the place of the role whose first replica has rank 0, and TensorBoard beside it."""
    return leader([role.name for role in spec.roles])


def position(spec: JobSpec) -> int:
    """Return the position of that replica among all."""
    return sum(role.replicas for role in spec.roles[: leading_role(spec)])


def labels(spec: JobSpec, place: int) -> tuple[str, ...]:
    """Return the labels of ports that replicas of the role at a place have for TensorBoard."""
    has_it = log_path(spec) is not None and place == leading_role(spec)
    return (tensorboard.NAME,) if has_it else ()
