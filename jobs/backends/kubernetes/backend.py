"""The Kubernetes backend."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from jobs.backends import base, origins, probe_job
from jobs.backends.base import (
    CheckReport,
    DryRunCheck,
    Gone,
    Handle,
    Inventory,
    LogSlice,
    LogState,
    NotSubmitted,
    Observation,
    Person,
    ReplicaRef,
    Submission,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.backends.kubernetes import discovery, nodes, preview, rights, sessions
from jobs.backends.kubernetes.client.api import Api, ApiError, Expired, Object
from jobs.backends.kubernetes.config import KubernetesConfig
from jobs.backends.kubernetes.discovery import Operators
from jobs.backends.kubernetes.handles import INSTALLATION_LABEL, KEY_LABEL, AttemptRef, core_path
from jobs.backends.kubernetes.logs import copies
from jobs.backends.kubernetes.logs.follower import Follower
from jobs.backends.kubernetes.logs.log_file import read_position
from jobs.backends.kubernetes.objects import attempt as attempt_objects
from jobs.backends.kubernetes.objects.attempt import ClaimState
from jobs.backends.kubernetes.objects.environment import Peers
from jobs.backends.kubernetes.objects.kubeflow import choose_kind
from jobs.backends.kubernetes.objects.pods import checkpoint_name, name_main
from jobs.backends.kubernetes.sessions import ContainerRef
from jobs.backends.kubernetes.status import records
from jobs.backends.kubernetes.status.observation import log_path
from jobs.backends.kubernetes.status.observer import Observer, list_pods, note_version
from jobs.backends.kubernetes.status.records import StopRequest
from jobs.backends.kubernetes.submitter import Submitter
from jobs.backends.origins import Origin
from jobs.backends.remote import attempts
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.remote.records import read_record
from jobs.backends.sessions import Barrier, NoEntry, Session, SessionKind, SessionRequest
from jobs.backends.staging.transfer_orders import sign_buckets
from jobs.backends.thread_pool import ThreadPool
from jobs.dialects.kubeflow.kinds import BY_NAME
from jobs.faults import fault
from jobs.node.folder_removal import remove_folder

T = TypeVar("T")

AT_ONCE: Final = 8
"""So many attempts are worked on in parallel: each is a dozen requests, most of which wait for etcd."""

KEYS_AT_ONCE: Final = 50
"""So many keys are named in one label selector, which is a part of a URL."""


class KubernetesBackend:
    """One cluster.  All state is the API server's, or lies in the console's folder of the attempt."""

    at_once: Final = AT_ONCE
    has_scheduler: Final = False
    can_shrink: Final = True

    def __init__(self, config: KubernetesConfig) -> None:
        self._config = config
        self._room_lock = threading.Lock()
        self._room: tuple[float, Inventory | None] = 0.0, None
        """When the last inventory for a submission was begun, and that inventory."""

    @property
    def _api(self) -> Api:
        """Return the API server.  Raises Unreachable where the settings name none."""
        return Api(self._config.connection(), self._config.timeout_s)

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        """See `base.Backend`.  An attempt whose claim was not submitted starts nothing, and is none."""
        found: dict[str, Sequence[Handle]] = {key: [] for key in keys}
        by_namespace: dict[str, list[str]] = {}
        for key in keys:
            for namespace in self._namespaces(key):
                by_namespace.setdefault(namespace, []).append(key)
        for namespace, few in by_namespace.items():
            for claim in self._list_claims(namespace, few):
                key = claim["metadata"]["name"]
                state = attempt_objects.state_of(claim)
                if key in found and state not in (ClaimState.PREPARING, ClaimState.FORGOTTEN):
                    found[key] = [AttemptRef(namespace, key).handle]
        return found

    def submit(self, submission: Submission) -> Handle:
        """See `base.Backend`.  The job is held until `release`, which creates its pods."""
        attempt = AttemptRef(self._config.namespace_of(submission.workspace), submission.key)
        is_new = read_record(self._folder(attempt)) is None
        try:
            self._submit(attempt, submission)
        except (ApiError, OSError, Unreachable) as error:
            detail = error.message if isinstance(error, ApiError) else str(error)
            if is_new or isinstance(error, ApiError):
                raise NotSubmitted.not_sent(detail) from error
            raise Unknown(detail) from error  # an earlier submission may have reached it
        return attempt.handle

    def release(self, handles: Sequence[Handle]) -> None:
        """See `base.HeldSubmission`.  What a quota refuses now is created by a later observation."""
        submitter = Submitter(self._api, self._config)

        def release(attempt: AttemptRef) -> None:
            with suppress(ApiError):
                done = submitter.release(attempt)
                if attempt_objects.state_of(done) is ClaimState.RELEASED:
                    note_version(self._folder(attempt), done["metadata"]["resourceVersion"], time.time())

        _call_each(release, [AttemptRef.of(handle) for handle in handles])

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        """See `base.Backend`.

        Objects of an attempt that its submitter could not create are created, and the rest of one that its
        replicas' ends have decided is deleted.
        """
        found: dict[Handle, Observation | Gone | Unseen] = {}
        live: list[AttemptRef] = []
        for handle in handles:
            try:
                attempt = AttemptRef.of(handle)
            except InvalidKey:
                found[handle] = Gone.GONE
                continue
            folder = self._folder(attempt)
            ended = records.read_end(folder)
            if ended is not None:
                found[handle] = ended
            elif read_record(folder) is None:
                found[handle] = Gone.GONE
            else:
                live.append(attempt)
        if not live:
            return found
        api = self._api
        pods, version = self._list_pods(api, live)
        observer = Observer(api, self._config, version)

        def observe(attempt: AttemptRef) -> Observation | Gone | Unseen:
            return observer.observe(attempt, self._folder(attempt), pods.get(attempt.key, {}))

        seen = _call_each(observe, live)
        return found | {attempt.handle: each for attempt, each in zip(live, seen, strict=True)}

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        """See `base.Backend`.  From now on no container of the attempt starts."""
        try:
            attempt = AttemptRef.of(handle)
        except InvalidKey:
            return
        folder = self._folder(attempt)
        record = read_record(folder)
        if record is None or records.read_end(folder) is not None:
            return
        now = time.time()
        request = StopRequest(signal, now, now + grace_s)
        earlier = records.read_stop(folder)
        if earlier is None or earlier.until > request.until:
            records.write_stop(folder, request)
        fault("kubernetes.stop_written")
        api = self._api
        pods, version = self._list_pods(api, [attempt])
        Observer(api, self._config, version).stop(attempt, folder, pods.get(attempt.key, {}))

    def read_log(self, handle: Handle, replica: ReplicaRef, cursor: str, limit: int) -> LogSlice:
        """See `base.Backend`.  The copy in the attempt's folder is read, once it has caught up."""
        found = self._find_replica(handle, replica)
        if found is None:
            return LogSlice(b"", cursor, LogState.GONE)
        folder, name, ref = found
        log, offset = log_path(folder, name), int(cursor or 0)
        if not read_position(log).is_complete:
            status = records.read_status(folder).replicas.get(name)
            has_begun = status is not None and status.started_at is not None
            with suppress(Unreachable):
                is_last = copies.has_ended(self._api, ref, was_there=has_begun)
                copies.catch_up(self._api, ref, log, is_last=is_last)
        is_complete = read_position(log).is_complete
        with suppress(FileNotFoundError), log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if offset > size:
                return LogSlice(b"", str(size), LogState.TRUNCATED)
            data = os.pread(file.fileno(), limit, offset)
            is_complete = is_complete and offset + len(data) >= size
            state = LogState.COMPLETE if is_complete else LogState.OPEN
            return LogSlice(data, str(offset + len(data)), state)
        return LogSlice(b"", cursor, LogState.COMPLETE if is_complete else LogState.OPEN)

    def follow(self, ended: threading.Event, changed: Callable[[], None]) -> None:
        """See `base.Following`."""
        Follower(lambda: self._api, self._config.root, changed).run(ended)

    async def exec(self, handle: Handle, replica: ReplicaRef, wanted: SessionRequest) -> Session:
        """See `sessions.Enterable`.  The folders of a replica end with it."""
        folder, name, ref = self._find_container(handle, replica)
        try:
            return await sessions.begin(self._config.connection(), ref, wanted)
        except NoEntry as error:
            status = records.read_status(folder).replicas.get(name)
            is_over = error.barrier is Barrier.NOT_RUNNING and status is not None and status.has_ended
            if is_over and wanted.kind is SessionKind.FOLDERS:
                raise NoEntry(Barrier.GONE) from error
            raise

    async def connect(self, handle: Handle, replica: ReplicaRef, host: str, port: int) -> socket.socket:
        """See `sessions.Enterable`.  A pod knows itself by its address and by its host name."""
        folder, name, ref = self._find_container(handle, replica)
        known = records.read_status(folder).replicas.get(name)
        key = AttemptRef.of(handle).key
        own = ref.pod.removeprefix(f"{key}-")
        if host in (own, f"{own}.{key}") or (known is not None and host == known.address != ""):
            host = "localhost"
        return await sessions.connect(self._config.connection(), ref, host, port)

    def _find_container(self, handle: Handle, replica: ReplicaRef) -> tuple[Path, str, ContainerRef]:
        """Return the attempt's folder, the replica's name in files and its container.  Raises NoEntry."""
        found = self._find_replica(handle, replica)
        if found is None:
            raise NoEntry(Barrier.NOT_RUNNING)
        return found

    def _find_replica(self, handle: Handle, replica: ReplicaRef) -> tuple[Path, str, ContainerRef] | None:
        """Return the attempt's folder, the replica's name in files and its container, None without one."""
        try:
            attempt = AttemptRef.of(handle)
        except InvalidKey:
            return None
        folder = self._folder(attempt)
        record = read_record(folder)
        name = record.replica_name(replica.role, replica.index) if record else None
        if record is None or name is None or replica.run != 1:
            return None
        pod = next(pod for _role, each, pod in list_pods(record, attempt.key) if each == name)
        return folder, name, ContainerRef(attempt.namespace, pod, name_main(record.kind))

    def inventory(self) -> Inventory:
        """See `base.Backend`."""
        api = self._api
        try:
            found = api.list("/api/v1/nodes").items
            pods = api.list("/api/v1/pods", fields="status.phase!=Succeeded,status.phase!=Failed").items
        except (ApiError, Expired) as error:
            raise Unreachable(str(error)) from error
        inventory = nodes.read_inventory(found, pods, self._config)
        operators = self._find_operators(api).names
        return replace(inventory, facilities=replace(self._config.facilities(), operators=operators))

    def forget(self, handle: Handle) -> None:
        """See `base.Backend`.  The claim stays as a tombstone, without which a late submitter would start it.

        Tombstones of earlier months are removed, and claims that were never released.
        """
        attempt = AttemptRef.of(handle)
        api = self._api
        try:
            submitter = Submitter(api, self._config)
            submitter.bury(attempt)
            submitter.remove_strays(attempt, time.time())
            self._remove_objects(api, attempt)
            folder = self._folder(attempt)
            remove_folder(folder)
            if folder.parent.exists() and not any(folder.parent.iterdir()):
                self._remove_checkpoints(api, attempt)
                folder.parent.rmdir()
        except ApiError as error:
            raise Unreachable(str(error)) from error

    def read_origin(self, key: str) -> Origin | None:
        """See `origins.OriginReader`.  Secret values can't be read again."""
        try:
            text = attempts.read_text(attempts.attempt_folder(self._config.root, key) / origins.FILE)
        except InvalidKey:
            return None
        return origins.parse(json.loads(text), {}) if text else None

    def render(self, submission: Submission) -> base.RenderedJob:
        """See `base.Rendering`."""
        try:
            known = self._find_usable_operators(self._api, submission)
        except Unreachable:
            known = Operators()
        return preview.render(submission, self._config, known)

    def dry_run(self, submission: Submission) -> Sequence[DryRunCheck]:
        """See `base.Trying`.  The API server checks a pod of each role, with its quotas and policies."""
        masked = preview.mask_secrets(submission)
        api = self._api
        known = self._find_usable_operators(api, submission)
        return list(preview.dry_run(api, masked, self._config, known, self.inventory))

    def check(self) -> CheckReport:
        """See `base.Checking`.  The console's rights are asked for one by one."""
        api = self._api
        known = self._find_operators(api, anew=True)
        found = self.inventory()
        lacking = rights.find_lacking(api, self._config, known)
        return CheckReport(tuple(node.name for node in found.nodes if node.schedulable), tuple(lacking))

    def try_as(self, person: Person) -> str:
        """See `base.Checking`.  The job runs in the first namespace of jobs that there is."""
        namespaces = self._list_namespaces()
        if not namespaces:
            raise Unreachable(f"No namespace begins with {self._config.namespace_prefix}.")
        return probe_job.run(self, person, namespaces[0].removeprefix(self._config.namespace_prefix))

    def _submit(self, attempt: AttemptRef, submission: Submission) -> None:
        """Submit an attempt that this or another worker may have submitted before."""
        api = self._api
        submitter = Submitter(api, self._config)
        claim = submitter.find_claim(attempt)
        if claim is not None and attempt_objects.state_of(claim) is not ClaimState.PREPARING:
            return
        record, known = read_record(self._folder(attempt)), self._find_usable_operators(api, submission)
        kind, queue = choose_kind(submission.spec, self._config, known)
        if record is not None:  # whoever wrote it may know other operators, and observers read it
            kind, queue = BY_NAME.get(record.kind), queue if record.kind else ""
        objects = attempt_objects.render(submission, self._config, kind, queue)
        if claim is None:
            if not queue:
                self._check_room(submission)
            submitter.try_pods(attempt, objects)
        objects = objects.with_signed(sign_buckets(submission))
        self._create_checkpoints(api, attempt, submission)
        peers = Peers.of(submission, self._config, kind)
        records.write_submission(self._folder(attempt), submission, self._config, peers)
        fault("kubernetes.recorded")
        submitter.submit(attempt, objects, claim)

    def _find_operators(self, api: Api, *, anew: bool = False) -> Operators:
        """Return what operators the cluster has, by an answer of lately or `anew`.  Raises Unreachable."""
        find = discovery.discover if anew else discovery.find_operators
        try:
            return find(api, self._config.connection().server)
        except ApiError as error:
            raise Unreachable(str(error)) from error

    def _find_usable_operators(self, api: Api, submission: Submission) -> Operators:
        """Return the operators whose objects the console may make for a job.  Raises Unreachable."""
        server, namespace = self._config.connection().server, self._config.namespace_of(submission.workspace)
        try:
            return rights.find_usable(api, server, namespace, self._find_operators(api))
        except ApiError as error:
            raise Unreachable(str(error)) from error

    def _check_room(self, submission: Submission) -> None:
        """Raise NotSubmitted where the job does not fit now: not all of its pods would be placed at once."""
        nodes.check_room(submission.spec, self._inventory_since(time.monotonic()))

    def _inventory_since(self, moment: float) -> Inventory:
        """Return an inventory that was begun after a moment; submissions that wait for one share it."""
        with self._room_lock:
            began_at, inventory = self._room
            if inventory is None or began_at < moment:
                began_at = time.monotonic()
                inventory = self.inventory()
                self._room = began_at, inventory
            return inventory

    def _create_checkpoints(self, api: Api, attempt: AttemptRef, submission: Submission) -> None:
        """Create the claim for the job's checkpoints, unless an earlier attempt has."""
        claim = attempt_objects.checkpoint_claim(submission, self._config)
        if claim is None:
            return
        try:
            api.create(attempt_objects.path_of(attempt.namespace, claim), claim)
        except ApiError as error:
            if not error.is_conflict:
                raise

    def _remove_checkpoints(self, api: Api, attempt: AttemptRef) -> None:
        """Remove what a job has saved, with the last of its attempts."""
        job_id = attempt.key.split("-")[1]
        api.delete(attempt.path("persistentvolumeclaims", checkpoint_name(attempt.installation, job_id)))

    def _remove_objects(self, api: Api, attempt: AttemptRef) -> None:
        """Remove all of an attempt but its claim."""
        submitter = Submitter(api, self._config)
        selector = f"{KEY_LABEL}={attempt.key}"
        record = read_record(self._folder(attempt))
        submitter.delete_job(attempt, record.kind if record else "")
        api.delete_many(attempt.path("pods"), labels=selector)
        submitter.remove_secrets(attempt)
        policies = f"/apis/networking.k8s.io/v1/namespaces/{attempt.namespace}/networkpolicies"
        api.delete(f"{policies}/{attempt.key}")
        api.delete(attempt.path("services", attempt.key))

    def _list_pods(self, api: Api, live: Sequence[AttemptRef]) -> tuple[dict[str, dict[str, Object]], str]:
        """Return the pods of attempts by key and name, by one call, and the list's resource version."""
        if len(live) <= KEYS_AT_ONCE:
            labels = f"{KEY_LABEL} in ({','.join(sorted(each.key for each in live))})"
        else:
            names = sorted({each.installation for each in live})
            labels = f"{INSTALLATION_LABEL} in ({','.join(names)})"
        try:
            listing = api.list("/api/v1/pods", labels=labels)
        except (ApiError, Expired) as error:
            raise Unreachable(str(error)) from error
        namespaces = {each.key: each.namespace for each in live}
        found: dict[str, dict[str, Object]] = {}
        for pod in listing.items:
            about = pod["metadata"]
            key = about["labels"].get(KEY_LABEL, "")
            if about["namespace"] == namespaces.get(key):  # labels are anybody's to write elsewhere
                found.setdefault(key, {})[about["name"]] = pod
        return found, listing.resource_version

    def _namespaces(self, key: str) -> Sequence[str]:
        """Return where the claim of an attempt may be: where that is recorded, else in all of them."""
        try:
            recorded = attempts.read_text(attempts.attempt_folder(self._config.root, key) / records.NAMESPACE)
        except InvalidKey:
            return ()
        return (recorded,) if recorded else self._list_namespaces()

    def _list_namespaces(self) -> Sequence[str]:
        """Return the namespaces of jobs.  Raises Unreachable."""
        try:
            return rights.list_namespaces(self._api, self._config)
        except (ApiError, Expired) as error:
            raise Unreachable(str(error)) from error

    def _list_claims(self, namespace: str, keys: Sequence[str]) -> Iterable[Object]:
        """Yield the claims with these keys in a namespace, by few calls."""
        api = self._api
        for at in range(0, len(keys), KEYS_AT_ONCE):
            labels = (
                f"{KEY_LABEL} in ({','.join(keys[at : at + KEYS_AT_ONCE])}),{attempt_objects.STATE_LABEL}"
            )
            try:
                yield from api.list(core_path(namespace, "configmaps"), labels=labels).items
            except ApiError as error:
                if not error.is_absent:
                    raise Unreachable(str(error)) from error
            except Expired as error:
                raise Unreachable(str(error)) from error

    def _folder(self, attempt: AttemptRef) -> Path:
        return attempts.attempt_folder(self._config.root, attempt.key)


def _call_each(act: Callable[[AttemptRef], T], attempts: Sequence[AttemptRef]) -> list[T]:
    """Call `act` for each attempt, several at a time, and return its results.

    Raises Unreachable like the first that does; those after it are left then.
    """
    is_away = threading.Event()

    def call(attempt: AttemptRef) -> T:
        if is_away.is_set():
            raise Unreachable("left, as the API server did not answer for another attempt")
        try:
            return act(attempt)
        except Unreachable:
            is_away.set()
            raise

    with ThreadPool(min(AT_ONCE, len(attempts))) as threads:
        calls = [threads.do(partial(call, attempt)) for attempt in attempts]
    return [each.result() for each in calls]


BACKEND: Final = KubernetesBackend
