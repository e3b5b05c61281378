"""The Ray backend.

An attempt is a job of Ray's Jobs API whose submission id is the attempt's key.  Its driver
(`jobs.backends.ray.driver`) runs it, and the node relay brings its status files and logs into the console's
folder of the attempt: Ray itself tells whether the driver lives, and who has which resources.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from jobs.backends import base, origins, probe_job
from jobs.backends.base import (
    CheckReport,
    DryRunCheck,
    Gone,
    Handle,
    Inventory,
    NotSubmitted,
    Observation,
    Person,
    Refused,
    ReplicaRef,
    Submission,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.backends.ray import capacity, package, planner, preview, states
from jobs.backends.ray.addresses import RayAddresses
from jobs.backends.ray.capacity import NodeCapacity, Requirements
from jobs.backends.ray.client import JobExists, NotConnected, RayClient, RayJob, SubmissionFailed
from jobs.backends.ray.config import RayConfig
from jobs.backends.ray.driver import RELAY_LINE
from jobs.backends.ray.sessions import ListenerSessions
from jobs.backends.remote import attempts, records, relay_ingest, tombstones
from jobs.backends.remote.folder_backend import FolderBackend
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.backends.remote.submission_lock import hold_lock
from jobs.backends.staging import tree_archives
from jobs.backends.staging.transfer_orders import sign_buckets
from jobs.faults import fault
from jobs.node.folder_removal import remove_folder
from jobs.node.supervisor import checkpoints
from jobs.spec import JobSpec, resource_requests
from jobs.states import Reason, ReasonCode

LIVE: Final = ".live-ray"
"""In the root: for each attempt that was submitted and has not ended, what its replicas require."""

SENT: Final = "sent"
"""In an attempt's folder: Ray has accepted it."""

_DIGEST: Final = 64


class RayBackend(FolderBackend):
    """One cluster.  All state is Ray's, or lies in the console's folders of attempts."""

    has_scheduler: Final = False
    can_shrink: Final = False

    def __init__(self, config: RayConfig) -> None:
        super().__init__(config.root)
        self._config, self._client = config, RayClient(config)
        self._addresses = RayAddresses(config)

    def engine_number(self, handle: Handle) -> str:
        """Return Ray's submission id of the job."""
        return str(handle)

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        """See `base.Backend`."""
        if not keys:
            return {}
        known = {job.submission_id for job in self._client.list_jobs()}
        return {key: [Handle(key)] if key in known or self._was_sent(key) else [] for key in keys}

    def submit(self, submission: Submission) -> Handle:
        """See `base.Backend`."""
        key = submission.key
        if self._was_sent(key) or tombstones.find(self._config.root, key):
            return Handle(key)
        mounts = planner.check(submission, self._config)
        folder = self._folder(key)
        fault("ray.before_lock")
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            with hold_lock(folder):
                fault("ray.locked")
                if not self._was_sent(key):
                    self._submit(submission, folder, mounts)
        except OSError as error:
            raise NotSubmitted.not_sent(error) from error
        return Handle(key)

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        """See `base.Backend`.  Relays of attempts that run are admitted."""
        if not handles:
            return {}
        jobs = {job.submission_id: job for job in self._client.list_jobs()}
        find_head = cache(self._client.find_head)
        seen = {handle: self._observe(handle, jobs.get(handle), find_head) for handle in handles}
        return self._complete(seen, self._addresses.of_node)

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        """See `base.Backend`."""
        folder = self._find_folder(handle)
        if folder is not None and not (folder / relay_ingest.OVER_FILE).exists():
            super().stop(handle, grace_s=grace_s, signal=signal)

    def _end_by_engine(self, handle: Handle, record: AttemptRecord, *, is_early: bool) -> None:
        """See `FolderBackend`: Ray ends the driver, and with it all."""
        if not is_early or not (self._folder(str(handle)) / "claim").exists():
            self._client.stop(handle)

    def find_checkpoint(self, handle: Handle) -> checkpoints.Checkpoint | None:
        """See `base.Checkpointing`.  Where the cluster has no folder for them there are none."""
        if not self._config.checkpoints or self._find_folder(handle) is None:
            return None
        return checkpoints.find_newest(planner.job_folder(handle, self._config) / checkpoints.FOLDER)

    def inventory(self) -> Inventory:
        """See `base.Backend`."""
        nodes, bundles = capacity.read_nodes(self._client, self._config)
        names = {each.node.node_id: each.node.name for each in nodes}
        jobs = sorted(self._client.list_jobs(), key=lambda job: (job.started_at or 0, job.submission_id))
        queue = capacity.list_queue(jobs, bundles, names)
        return Inventory(
            tuple(map(capacity.describe_node, nodes)), tuple(queue), facilities=self._config.facilities()
        )

    def check(self) -> CheckReport:
        """See `base.Checking`.  That nodes reach the console only a job shows."""
        nodes, _bundles = capacity.read_nodes(self._client, self._config)
        return CheckReport(tuple(sorted(each.node.name for each in nodes)))

    def try_as(self, person: Person) -> str:
        """See `base.Checking`.  The job shows that its node reaches the console, too."""
        return probe_job.run(self, person)

    def forget(self, handle: Handle) -> None:
        """See `base.Backend`."""
        tombstones.write(self._config.root, handle, str(handle))
        folder = self._folder(handle)
        with suppress(Unreachable):  # Ray forgets ended jobs by itself, some time
            self._client.delete(handle)
        (self._config.root / LIVE / handle).unlink(missing_ok=True)
        if self._remove(folder) and self._config.checkpoints:
            remove_folder(planner.job_folder(handle, self._config))

    def render(self, submission: Submission) -> base.RenderedJob:
        """See `base.Rendering`."""
        return preview.render(submission, self._config)

    def dry_run(self, submission: Submission) -> Sequence[DryRunCheck]:
        """See `base.Trying`."""
        return list(preview.run_checks(submission, self._config, self._check_room))

    # --- submission -----------------------------------------------------------------------------------------

    def _submit(self, submission: Submission, folder: Path, mounts: planner.NodeMounts) -> None:
        """Submit it under the attempt's lock.  Raises NotSubmitted, Refused or Unknown."""
        key = submission.key
        if not self._is_submitted(key, folder):
            self._write_files(submission, folder, mounts)
            fault("ray.before_post")
            try:
                self._hand_over(submission)
            except (NotSubmitted, Refused):
                (self._config.root / LIVE / key).unlink(missing_ok=True)
                raise
        fault("ray.accepted")
        attempts.create(folder / SENT, str(key), durable=True)
        fault("ray.noted")

    def _is_submitted(self, key: str, folder: Path) -> bool:
        """Return whether Ray has an attempt whose submission was begun.  Raises Unknown."""
        if read_record(folder) is None:
            return False
        try:
            return self._client.read_job(key) is not None
        except Unreachable as error:
            raise Unknown(str(error)) from error

    def _hand_over(self, submission: Submission) -> None:
        """Give Ray the package and the job.  Raises NotSubmitted, Refused or Unknown."""
        name, data = package.build()
        try:
            self._client.upload_package(name, data)
        except Unreachable as error:
            raise NotSubmitted.not_sent(error) from error
        request = self._render_request(submission, name)
        try:
            self._client.submit(request)
        except JobExists:
            self._compare(request)
        except NotConnected as error:
            raise NotSubmitted.not_sent(error) from error
        except SubmissionFailed as error:
            raise Refused(Reason(ReasonCode.REFUSED, {"error": str(error)})) from error
        except Unreachable as error:
            raise Unknown(str(error)) from error

    def _compare(self, request: Mapping[str, Any]) -> None:
        """Check that the job which Ray has by this id is what would be submitted.  Raises Unknown."""
        try:
            known = self._client.read_job(request["submission_id"])
        except Unreachable as error:
            raise Unknown(str(error)) from error
        if known is None or known.entrypoint != request["entrypoint"]:
            raise Unknown(f"Ray has another job with the submission id {request['submission_id']}")

    def _write_files(self, submission: Submission, folder: Path, mounts: planner.NodeMounts) -> None:
        bundles, head = self._check_room(submission), self._find_head()
        plan = planner.make_plan(submission, self._config, mounts)
        resumed = self._prepare_checkpoints(submission) if mounts.checkpoints else None
        given = planner.render_given(submission, self._config, plan, bundles, resumed)
        signed = sign_buckets(submission)
        secrets = json.dumps(planner.render_secrets(submission, self._config, mounts, signed))
        attempts.write_text(folder / planner.PLAN, given)
        attempts.write_text(folder / "secrets", secrets)
        attempts.write_text(folder / origins.FILE, json.dumps(origins.render(submission)))
        attempts.write_text(folder / states.HEAD, head)
        if resumed is not None:
            attempts.write_text(folder / states.RESUMED, json.dumps(resumed.dump()))
        for tree in {code.tree for code in plan.codes if code.tree}:
            tree_archives.write(submission.uploads[tree], folder / "trees" / f"{tree}.tar")
        live = self._config.root / LIVE
        live.mkdir(mode=0o700, exist_ok=True)
        attempts.write_text(live / submission.key, json.dumps(_list_bundles(submission.spec, bundles)))
        attempts.write_text(folder / records.FILE, planner.render_record(submission, self._config))

    def _check_room(self, submission: Submission) -> list[Requirements]:
        """Return what a replica of each role requires.  Raises NotSubmitted where they don't fit now."""
        try:
            nodes, bundles = capacity.read_nodes(self._client, self._config)
        except Unreachable as error:
            raise NotSubmitted.not_sent(error) from error
        self._count_placed_later(nodes, {each.group for each in bundles} | {submission.key})
        asks = resource_requests(submission.spec)
        pairs = zip(asks, submission.spec.roles, strict=True)
        required = [capacity.require(ask, role.nodes, nodes) for ask, role in pairs]
        capacity.place_replicas(list(zip(asks, required, strict=True)), nodes)
        return required

    def _find_head(self) -> str:
        """Return the id of the cluster's head.  Raises NotSubmitted."""
        try:
            return self._client.find_head()
        except Unreachable as error:
            raise NotSubmitted.not_sent(error) from error

    def _count_placed_later(self, nodes: Sequence[NodeCapacity], placed: set[str]) -> None:
        """Count attempts as used that were submitted and have no placement group yet."""
        live = self._config.root / LIVE
        for path in live.iterdir() if live.is_dir() else ():
            if path.name in placed or path.name.startswith("."):
                continue
            for requirements in json.loads(attempts.read_text(path) or "[]"):
                node = next((each for each in nodes if each.holds(requirements)), None)
                if node is not None:
                    node.take(requirements)

    def _prepare_checkpoints(self, submission: Submission) -> checkpoints.Checkpoint | None:
        """Make the folder for the job's checkpoints; return the one from which the attempt resumes."""
        folder = planner.job_folder(submission.key, self._config)
        folder.mkdir(mode=0o755, exist_ok=True)
        return checkpoints.find_newest(folder / checkpoints.FOLDER)

    def _render_request(self, submission: Submission, package_name: str) -> dict[str, Any]:
        """Return the body of the request; Ray shows all of it to everybody who reaches it."""
        key = submission.key
        folder = attempts.node_folder(self._config.nodes_folder, key)
        words = [self._config.python, package.MAIN, f"{self._config.console_url}/courier/{key}", str(folder)]
        return {
            "submission_id": key,
            "entrypoint": f"exec {shlex.join(words)}",
            "runtime_env": {"working_dir": f"gcs://{package_name}"},
            "metadata": {"job_name": submission.spec.name},
        }

    # --- observation ----------------------------------------------------------------------------------------

    def _observe(
        self, handle: Handle, job: RayJob | None, find_head: Callable[[], str]
    ) -> Observation | Gone | Unseen:
        folder = self._find_folder(handle)
        record = read_record(folder) if folder else None
        if folder is None or record is None:
            return Gone.GONE
        if job is not None and job.is_active and not (folder / "claim").exists():
            self._admit_relay(folder, handle)
        return states.observe(folder, record, job, find_head)

    def _admit_relay(self, folder: Path, handle: Handle) -> None:
        """Read from the driver's log which token its relay has, as soon as it says so."""
        if (folder / relay_ingest.DIGEST_FILE).exists():
            return
        with suppress(Unreachable):
            for line in self._client.read_driver_log(handle).splitlines():
                words = line.split()
                if words[:1] == [RELAY_LINE] and len(words) == 2 and len(words[1]) == _DIGEST:
                    relay_ingest.admit(folder, words[1])
                    return

    def _close(self, handle: Handle) -> None:
        """See `FolderBackend`; and count what it needs no more."""
        (self._config.root / LIVE / handle).unlink(missing_ok=True)
        super()._close(handle)

    def _key(self, handle: Handle) -> str:
        return str(handle)

    def _open_sessions(self, handle: Handle, replica: ReplicaRef) -> ListenerSessions:
        return ListenerSessions(self._config, handle, replica, self._addresses)

    def _read_secrets(self, folder: Path) -> Mapping[str, str]:
        found: Mapping[str, str] = json.loads(attempts.read_text(folder / "secrets") or "{}").get("env", {})
        return found

    def _was_sent(self, key: str) -> bool:
        folder = self._find_folder(Handle(key))
        return folder is not None and (folder / SENT).exists()


def _list_bundles(spec: JobSpec, bundles: Sequence[Requirements]) -> list[Requirements]:
    """Return what each replica requires."""
    return [wanted for role, wanted in zip(spec.roles, bundles, strict=True) for _ in range(role.replicas)]


BACKEND: Final = RayBackend
