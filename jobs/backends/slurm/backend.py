"""The Slurm backend."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from jobs.backends import base, origins, probe_job
from jobs.backends.accounts import AccountLimits, AccountTree
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
from jobs.backends.measures import AccountedUse
from jobs.backends.metrics_source import MetricsSource
from jobs.backends.remote import attempts, records, relay_ingest, tombstones
from jobs.backends.remote.attempt_view import check_plausible
from jobs.backends.remote.attempts import InvalidKey
from jobs.backends.remote.credential_files import CredentialFolders
from jobs.backends.remote.records import AttemptRecord, read_record
from jobs.backends.remote.submission_lock import hold_lock
from jobs.backends.slurm.client import (
    associations,
    history,
    listing,
    nodes,
    prerequisites,
    usage,
)
from jobs.backends.slurm.client.addresses import SlurmAddresses
from jobs.backends.slurm.client.commands import CommandController
from jobs.backends.slurm.client.controller import Controller, JobActions
from jobs.backends.slurm.client.history import AccountingAnswer
from jobs.backends.slurm.client.listing import ListedJob
from jobs.backends.slurm.client.programs import ExpectedStart, Programs
from jobs.backends.slurm.client.rest.controller import RestController
from jobs.backends.slurm.client.rest.user_actions import TokenActions
from jobs.backends.slurm.config import JWT, SUDO, SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.identity import folder_access, unix_users, visibility
from jobs.backends.slurm.identity.helper import SudoHelper
from jobs.backends.slurm.identity.unix_users import Account
from jobs.backends.slurm.script import (
    containers,
    job_script,
    node_preflight,
    preview,
    staging,
)
from jobs.backends.slurm.sessions import StepSessions
from jobs.backends.slurm.status import cleanup, recovery, states
from jobs.backends.slurm.status.recovery import PendingActions
from jobs.backends.staging import tracking, tree_archives
from jobs.faults import fault
from jobs.node.supervisor import checkpoints
from jobs.node.wrapper.environment import as_shell

T = TypeVar("T")

BATCH: Final = 500
"""So many jobs are named to one program at a time."""

SUBMITTERS: Final = 4
"""So many jobs are submitted in parallel.

Slurm's controller takes one after the other, and the work before and after it takes longer.
"""


class SlurmBackend(CredentialFolders):
    """One cluster.  All state is Slurm's, or lies in the folder that the console shares with the nodes."""

    at_once: Final = SUBMITTERS
    has_scheduler: Final = True
    can_shrink: Final = False

    def __init__(self, config: SlurmConfig) -> None:
        super().__init__(config.root)
        self._config = config
        self._controller: Controller = (
            RestController(config) if config.way == "rest" else CommandController(config)
        )
        self._addresses = SlurmAddresses(config, self._controller)

    @property
    def metrics_source(self) -> MetricsSource | None:
        """See `measures.MeasuredElsewhere`."""
        return self._config.metrics

    def engine_number(self, handle: Handle) -> str:
        """Return Slurm's number for the job."""
        return str(SlurmJob.of(handle).number)

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        """See `base.Backend`.  The rest of a refused submission is no job."""
        if not keys:
            return {}
        found: dict[str, Sequence[Handle]] = {}
        listed: dict[str, list[ListedJob]] = {}
        users = {key: self._user(key) for key in keys}
        for few in _batches(list(keys)):
            listed |= listing.by_name(self._controller.list_jobs(few))
        for key in keys:
            known = [each.number for each in listed.get(key, ()) if each.is_of(users[key])]
            number = self._submitted_number(key)
            found[key] = [SlurmJob(each, key).handle for each in ([number] if number else known)]
        began = self._find_unrecorded({key: users[key] for key in keys if not found[key]})
        return {**found, **{key: [SlurmJob(number, key).handle] for key, number in began.items()}}

    def _find_unrecorded(self, users: Mapping[str, str]) -> dict[str, int]:
        """Return the numbers of jobs that were submitted, not recorded, and began, by one call."""
        since = {key: at for key in users if (at := history.submitted_at(self._config.root, key))}
        return history.find_started(self._controller, {key: users[key] for key in since}, since)

    def submit(self, submission: Submission) -> Handle:
        """See `base.Backend`.  The job is held until `release`."""
        number = self._submitted_number(submission.key) or self._forgotten_number(submission.key)
        if number:
            return SlurmJob(number, submission.key).handle
        account = self._account(submission)
        job_script.check(submission, self._config)
        folder = self._folder(submission.key)
        fault("slurm.before_lock")
        try:
            if account:
                folder_access.prepare(folder, account.pw_uid)
            else:
                folder.parent.mkdir(mode=0o700, parents=self._config.own, exist_ok=True)
                folder.mkdir(mode=0o700, exist_ok=True)
            if not self._config.apart:
                _make_checkpoints(checkpoints.folder_of(folder), account)
            with hold_lock(folder):
                fault("slurm.locked")
                return self._submit(submission, folder, account)
        except OSError as error:
            raise NotSubmitted.not_sent(error) from error

    def release(self, handles: Sequence[Handle]) -> None:
        """See `base.Holding`.  No job is released that has the number of one that Slurm forgot."""
        by_user: dict[str, list[SlurmJob]] = {}
        for job in map(SlurmJob.of, handles):
            by_user.setdefault(self._user(job.key), []).append(replace(job, number=self._number(job)))
        errors: list[Unreachable] = []
        for user, jobs in by_user.items():
            try:
                self._release(user, jobs)
            except Unreachable as error:  # perhaps of this user alone
                errors.append(error)
        if errors:
            raise errors[0]

    def _release(self, user: str, jobs: list[SlurmJob]) -> None:
        for few in _batches(jobs):
            known = {
                (each.number, each.name) for each in self._controller.find_named(few) if each.user == user
            }
            ours = [sent for sent in few if (sent.number, sent.key) in known]
            if ours:
                self._actions(user).release([sent.number for sent in ours])
            for sent in ours:
                with suppress(FileNotFoundError):
                    attempts.create(self._folder(sent.key) / "released", "")
            if any(sent not in ours and self._is_hidden(sent) for sent in few):
                raise Unreachable(visibility.hidden_message(self._config))

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        """See `base.Backend`.

        Second copies of a job that were submitted late, and never released, are cancelled, and releases that
        Slurm forgot are repeated.
        """
        todo = PendingActions()
        rows = list(self._controller.list_jobs()) if handles else []
        listed = listing.by_name(rows)
        answer = self._ask_accounting(handles, listed)
        seen = {handle: self._observe(handle, listed, answer, todo) for handle in handles}
        users = {each.number: each.user for each in rows}
        self._act(todo.cancel, users, lambda actions, few: actions.cancel(few, waiting_only=True))
        self._act(self._overdue(rows, todo), users, lambda actions, few: actions.cancel(few))
        self._act(todo.release, users, lambda actions, few: actions.release(few))
        for job in todo.again:
            with suppress(NotSubmitted, Unknown, Refused), _ignoring_users_errors(self._user(job.key)):
                if self._is_hidden(job):
                    seen[job.handle] = Unseen(visibility.hidden_message(self._config))
                else:
                    self._submit_again(job)  # the next observation finds it
        return self._complete(seen, self._addresses.of_node)

    def _end_by_engine(self, handle: Handle, record: AttemptRecord, *, is_early: bool) -> None:
        """See `FolderBackend`."""
        job = SlurmJob.of(handle)
        self._actions(record.user).cancel([self._number(job)], waiting_only=is_early, name=job.key)

    def inventory(self) -> Inventory:
        """See `base.Backend`."""
        prerequisites.check(self._config)
        with prerequisites.explaining_errors():
            seen = nodes.read_inventory(self._controller.nodes(), self._controller.reservations())
            queue = tuple(self._controller.queue())
        if self._config.identity == JWT:
            cleanup.retry(self._config)
        return replace(seen, jobs=queue, facilities=self._config.facilities())

    def check(self) -> CheckReport:
        """See `base.Checking`.  By the command line always: REST starts nothing at once."""
        seen = self.inventory()
        free = sum(node.schedulable and node.free_cpu_milli > 0 for node in seen.nodes)
        with prerequisites.explaining_errors():
            tried = node_preflight.check_nodes(self._config, free)
        if self._config.tells_apart:  # Slurm checks each job's own user: see try_as
            return replace(tried, lacking=(*tried.lacking, *cleanup.describe_leftovers(self._config)))
        programs, user = Programs(self._config), visibility.asking_user(self._config)
        lacking = tuple(prerequisites.find_refused(self._config, programs, user))
        hidden = tuple(filter(None, [visibility.describe_hidden(self._config)]))
        return replace(tried, lacking=tried.lacking + lacking, remarks=tried.remarks + hidden)

    def try_as(self, person: Person) -> str:
        """See `base.Checking`."""
        prerequisites.check(self._config)
        if self._config.identity == SUDO:
            user = unix_users.resolve_account(person, unix_users.slurm_user(self._config)).pw_name
            if lacking := list(
                prerequisites.find_refused(self._config, SudoHelper(self._config, user), user)
            ):
                raise Unreachable("\n".join(lacking))
        return probe_job.run(self, person)

    def forget(self, handle: Handle) -> None:
        """See `base.Backend`."""
        sent = SlurmJob.of(handle)
        tombstones.write(self._config.root, sent.key, str(sent.number))
        folder = self._folder(sent.key)
        user = self._user(sent.key)
        _take_checkpoints(folder)
        if self._config.identity == JWT:
            cleanup.remove(self._config, sent.key, user)
        else:
            if user:
                SudoHelper(self._config, user).remove(sent.key)
            self._remove(folder)

    def render(self, submission: Submission) -> base.RenderedJob:
        """See `base.Rendering`."""
        return preview.render_preview(submission, self._config)

    def dry_run(self, submission: Submission) -> Sequence[DryRunCheck]:
        """See `base.Trying`.  By the command line always: REST has no such request."""
        return list(preview.dry_run(lambda: self._estimate_start(preview.mask_secrets(submission))))

    def _estimate_start(self, submission: Submission) -> tuple[str, ExpectedStart | None]:
        """Return the job's user and Slurm's estimate, None where Slurm can't be asked as that user.

        Raises what `submit` does.
        """
        account = self._account(submission)
        job_script.check(submission, self._config)
        text = job_script.render(submission, None, self._config, self._choosable(submission))
        if account is None:
            return str(os.geteuid()), Programs(self._config).test(text)
        if self._config.identity == JWT:
            return account.pw_name, None
        return account.pw_name, SudoHelper(self._config, account.pw_name).test(text)

    def read_accounts(self) -> AccountTree:
        """See `accounts.Accounting`.  By the command line always."""
        return associations.read_accounts(Programs(self._config))

    def read_usage(self, handles: Sequence[Handle]) -> Mapping[Handle, Sequence[AccountedUse]]:
        """See `measures.Accounted`.  By the command line always."""
        jobs = {job: self._number(job) for job in map(SlurmJob.of, handles)}
        found: dict[Handle, Sequence[AccountedUse]] = {}
        for few in _batches(list(jobs)):
            steps = usage.read_steps(Programs(self._config), [jobs[job] for job in few])
            for job in few:
                record = read_record(self._folder(job.key))
                if record is not None and jobs[job] in steps:
                    found[job.handle] = usage.by_role(record, steps[jobs[job]])
        return found

    def limit(self, account: str, limits: AccountLimits, jobs_of_one: int | None) -> None:
        """See `accounts.Accounting`."""
        associations.write_limits(Programs(self._config), account, limits, jobs_of_one)

    def _key(self, handle: Handle) -> str:
        return SlurmJob.of(handle).key

    def _open_sessions(self, handle: Handle, replica: ReplicaRef) -> StepSessions:
        return StepSessions(self._config, SlurmJob.of(handle), replica, self._addresses)

    def _read_secrets(self, folder: Path) -> Mapping[str, str]:
        secrets = attempts.read_text(folder / "secrets") or ""
        words = (each.partition("=") for each in shlex.split(secrets) if "=" in each)
        return {name: value for name, _equal, value in words}

    def _submitted_number(self, key: str) -> int | None:
        """Return Slurm's number for a submitted attempt, as far as that is recorded."""
        try:
            number = attempts.read_text(self._folder(key) / "sent")
        except InvalidKey:
            return None
        return int(number) if number and number.strip().isdigit() else None

    def _forgotten_number(self, key: str) -> int | None:
        """Return Slurm's number for a forgotten attempt, None for any other."""
        text = tombstones.find(self._config.root, key)
        return int(text) if text else None

    def _submit(self, submission: Submission, folder: Path, account: Account | None) -> Handle:
        """Submit it under the attempt's lock."""
        key, user = submission.key, account.pw_name if account else ""
        number = self._submitted_number(key)
        if number is None and not attempts.create(folder / "begun", "", durable=True):
            number = self._find_submitted(key, user)
        if number is None:
            number = self._hand_over(submission, folder, account)
        fault("slurm.accepted")
        is_first = attempts.create(folder / "sent", str(number))
        if not is_first and (first := self._submitted_number(key)) not in (None, number):
            self._actions(user).cancel([number], waiting_only=True, name=key)
            return SlurmJob(first or number, key).handle
        fault("slurm.noted")
        return SlurmJob(number, key).handle

    def _find_submitted(self, key: str, user: str) -> int | None:
        """Return the number of a submission that was begun and not recorded: Slurm may have it."""
        try:
            found = self._jobs_of_name(key, user)
            return found[0].number if found else self._find_unrecorded({key: user}).get(key)
        except Unreachable as error:
            raise Unknown(str(error)) from error

    def _hand_over(self, submission: Submission, folder: Path, account: Account | None) -> int:
        text = self._script(submission, folder)
        user, mode = (account.pw_name, records.READABLE) if account else ("", 0o600)
        attempts.write_text(folder / records.FILE, job_script.render_record(submission, self._config, user))
        attempts.write_text(folder / origins.FILE, json.dumps(origins.render(submission)))
        attempts.write_text(folder / "script", text)
        secret = submission.secret_variables()
        if tracking.is_offered(submission, self._config.console_url):
            secret[tracking.TOKEN] = submission.tracking_token
        hidden = as_shell(secret)
        if hidden := hidden + containers.secret_lines(submission.spec, submission.secrets):
            attempts.write_text(folder / "secrets", hidden, mode)
        for name, content in (*staging.login_files(submission), *staging.bucket_files(submission)):
            attempts.write_text(folder / name, content, mode)
        for tree, supply in submission.uploads.items():
            tree_archives.write(supply, folder / "trees" / f"{tree}.tar")
        fault("slurm.before_sbatch")
        if account:
            folder_access.grant_access(folder, account.pw_uid)
        return self._actions(user).submit(submission.key, text)

    def _script(self, submission: Submission, folder: Path) -> str:
        """Return the script, for a shared folder or one of each node's own."""
        nodes = self._choosable(submission)
        if not self._config.apart:
            return job_script.render(submission, folder, self._config, nodes)
        there = attempts.node_folder(self._config.nodes_folder, submission.key)
        token = relay_ingest.attempt_token(self._config.root, submission.key)
        return job_script.render(submission, there, self._config, nodes, token)

    def _choosable(self, submission: Submission) -> list[str]:
        """Return the cluster's nodes, where the job chooses among them."""
        if not job_script.needs_nodes(submission.spec):
            return []
        try:
            return [node["NodeName"] for node in self._controller.nodes()]
        except Unreachable as error:
            raise NotSubmitted.not_sent(error) from error

    def _ask_accounting(
        self, handles: Sequence[Handle], listed: Mapping[str, list[ListedJob]]
    ) -> AccountingAnswer:
        """Ask accounting for jobs that Slurm's controller has forgotten and that have no end in their
        files.
        """
        missing: dict[int, str] = {}
        for handle in handles:
            with suppress(InvalidKey):
                job = SlurmJob.of(handle)
                number, folder = self._number(job), self._folder(job.key)
                known = {each.number for each in listed.get(job.key, ())}
                if known & {job.number, number} or read_record(folder) is None:
                    continue
                if not self._has_end(folder):
                    missing[number] = job.key
        return history.read_forgotten(self._controller, missing)

    def _has_end(self, folder: Path) -> bool:
        try:
            return states.has_end(folder)
        except (OSError, ValueError, LookupError):
            if not attempts.is_open_to_owner(folder):
                raise
            return False

    def _observe(
        self,
        handle: Handle,
        listed: Mapping[str, list[ListedJob]],
        answer: AccountingAnswer,
        todo: PendingActions,
    ) -> Observation | Gone | Unseen:
        try:
            job = SlurmJob.of(handle)
        except InvalidKey:
            return Gone.GONE
        folder = self._folder(job.key)
        record = read_record(folder)
        if record is None:
            return Gone.GONE
        same = [each for each in listed.get(job.key, ()) if each.user == record.user]
        mine = self._choose(folder, job, same, answer, todo)
        todo.cancel += [each.number for each in same if each is not mine and each.is_held]
        try:
            if mine is None:
                number = self._number(job)
                seen = (
                    recovery.observe_forgotten(folder, record, number)
                    or answer.observe(folder, record, number)
                    or recovery.observe_vanished(folder, record, ListedJob(number, job.key, "", ""), todo)
                )
            else:
                recovery.note_saved(folder, mine)
                observed = recovery.observe_lost_state(folder, record, mine, todo)
                seen = observed or states.from_listed(folder, record, mine)
            if record.user and isinstance(seen, Observation):
                check_plausible(seen)
            return seen or Gone.GONE
        except (OSError, ValueError, LookupError):
            if not record.user:
                raise
            nothing = folder / ".nothing"  # the user's own files can't be read, and are ignored
            return states.from_listed(nothing, record, mine) if mine else Gone.GONE

    def _overdue(self, rows: Sequence[ListedJob], todo: PendingActions) -> Iterator[int]:
        """See `recovery.overdue_jobs`; files of one user decide nothing about jobs of others."""
        if not self._config.tells_apart:
            yield from recovery.overdue_jobs(self._config.root, rows, todo)
            return
        for row in rows:
            with suppress(OSError, ValueError):
                if row.state == "RUNNING" and row.user == self._user(row.name):
                    yield from recovery.overdue_jobs(self._config.root, [row], todo)

    def _choose(
        self,
        folder: Path,
        job: SlurmJob,
        same: Sequence[ListedJob],
        answer: AccountingAnswer,
        todo: PendingActions,
    ) -> ListedJob | None:
        """Return the listed job that is the handle's.  One that Slurm has lost is submitted again."""
        numbers = {each.number: each for each in same}
        number = recovery.current_number(folder, job)
        mine = numbers.get(job.number) or numbers.get(number)
        if mine is not None or answer.decides(number) or not recovery.may_be_unsaved(folder):
            return mine
        if (copy := recovery.find_copy(folder, same)) is not None:
            todo.release.append(copy.number)
            return replace(copy, reason="None")
        todo.again.append(job)
        return ListedJob(job.number, job.key, "PENDING", "None")

    def _submit_again(self, job: SlurmJob) -> None:
        folder, user = self._folder(job.key), self._user(job.key)
        with hold_lock(folder):
            if self._jobs_of_name(job.key, user):
                return
            script = (folder / "script").read_text(encoding="utf-8")
            number = self._actions(user).submit(job.key, script)
            attempts.write_text(folder / "again", str(number))
        self._actions(user).release([number])

    def _account(self, submission: Submission) -> Account | None:
        """Return the UNIX user of the job, None for the console's own.  Raises Refused or NotSent."""
        if not self._config.tells_apart:
            return None
        try:
            if self._config.identity == SUDO:
                visibility.check(self._config)
            return unix_users.resolve_account(submission.person, unix_users.slurm_user(self._config))
        except Unreachable as error:
            raise NotSubmitted.not_sent(error) from error

    def _user(self, key: str) -> str:
        """Return the UNIX user of an attempt, "" for the console's own."""
        try:
            record = read_record(self._folder(key))
        except InvalidKey:
            return ""
        return record.user if record else ""

    def _is_hidden(self, job: SlurmJob) -> bool:
        """Return whether Slurm has a job that it hides from the console."""
        user = self._user(job.key)
        return bool(user) and self._config.identity == JWT and bool(self._jobs_of_name(job.key, user))

    def _jobs_of_name(self, key: str, user: str) -> list[ListedJob]:
        """Return the user's jobs of that name; by their token also jobs that Slurm hides from the console."""
        if user and self._config.identity == JWT:
            found = TokenActions(self._config, user).jobs_of_name(key)
            return [each for each in found if not each.was_refused]
        listed = listing.by_name(self._controller.list_jobs([key]))
        return [each for each in listed.get(key, ()) if each.is_of(user)]

    def _actions(self, user: str) -> JobActions:
        """Return the actions as a user, "" for the console's own."""
        if not user:
            return self._controller
        return (TokenActions if self._config.identity == JWT else SudoHelper)(self._config, user)

    def _act(
        self,
        numbers: Iterable[int],
        users: Mapping[int, str],
        act: Callable[[JobActions, list[int]], None],
    ) -> None:
        """Act on jobs by their numbers as their users, "" for the console's own."""
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(users.get(number, ""), []).append(number)
        for user, theirs in found.items():
            for few in _batches(theirs):
                with _ignoring_users_errors(user):
                    act(self._actions(user), few)

    def _number(self, job: SlurmJob) -> int:
        return recovery.current_number(self._folder(job.key), job)


def _take_checkpoints(folder: Path) -> None:
    """Put the job's checkpoints into the folder of its last attempt, with which they are removed."""
    saved = checkpoints.folder_of(folder)
    if saved.exists() and {path.name for path in folder.parent.iterdir()} == {folder.name, saved.name}:
        saved.rename(folder / saved.name)


def _make_checkpoints(folder: Path, account: Account | None) -> None:
    """Make the folder for the checkpoints of a job, for its user where it has one of its own."""
    if account:
        folder_access.prepare(folder, account.pw_uid)
        folder_access.grant_access(folder, account.pw_uid)
    else:
        folder.mkdir(mode=0o700, exist_ok=True)


def _ignoring_users_errors(user: str) -> AbstractContextManager[None]:
    """Suppress errors of actions as one user, so that those of others follow."""
    return suppress(Unreachable) if user else nullcontext()


def _batches(values: list[T]) -> Iterator[list[T]]:
    return (values[first : first + BATCH] for first in range(0, len(values), BATCH))


BACKEND: Final = SlurmBackend
