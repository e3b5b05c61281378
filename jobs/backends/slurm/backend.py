"""Jobs on a Slurm cluster (DESIGN section 4)."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from jobs.backends import base
from jobs.backends.accounts import Books, Ceilings
from jobs.backends.base import (
    Checked,
    Gone,
    Handle,
    Inventory,
    LogSlice,
    LogState,
    NotSent,
    Observation,
    Person,
    Refused,
    Submission,
    TaskRef,
    Tried,
    Unknown,
    Unreachable,
    Unseen,
)
from jobs.backends.sessions import Barrier, NoEntry, Session, Wanted
from jobs.backends.slurm.client import (
    accepted,
    associations,
    dryrun,
    history,
    listing,
    nodes,
    prerequisites,
    trial,
)
from jobs.backends.slurm.client.commands import Commands
from jobs.backends.slurm.client.controller import Controller
from jobs.backends.slurm.client.history import Past
from jobs.backends.slurm.client.listing import Listed
from jobs.backends.slurm.client.programs import Expected, Programs
from jobs.backends.slurm.client.rest.acting import ByToken
from jobs.backends.slurm.client.rest.controller import Rest
from jobs.backends.slurm.config import JWT, SUDO, SlurmConfig
from jobs.backends.slurm.identity import shared, visible, whom
from jobs.backends.slurm.identity.acting import acting
from jobs.backends.slurm.identity.helper import Helper
from jobs.backends.slurm.identity.whom import Account
from jobs.backends.slurm.relay import delivered
from jobs.backends.slurm.script import environment, layout, ontonodes, script, showing, staging
from jobs.backends.slurm.script.layout import NotOurs, Sent
from jobs.backends.slurm.sessions.entering import Replica
from jobs.backends.slurm.status import (
    evidence,
    forgotten,
    leftovers,
    readlog,
    rewound,
    serving,
    sight,
    unsaved,
)
from jobs.backends.slurm.status.evidence import Kept
from jobs.backends.slurm.status.rewound import ToDo
from jobs.backends.slurm.status.whereabouts import Whereabouts
from jobs.faults import fault
from jobs.node.clearing import clear
from jobs.spec import JobSpec
from jobs.states import TERMINAL, Reason, ReasonCode

T = TypeVar("T")

SECRETS: Final = ("secrets", "login", "code-key", "door", "door-key")
"""Files that are there until a job's end."""

OVERDUE_S: Final = 15
"""A job whose script has not ended it so long after its time was up is ended by Slurm."""

AT_ONCE: Final = 500
"""So many jobs are named to one program at a time."""

SUBMITTERS: Final = 4
"""So many jobs are handed over at the same time: Slurm's controller does it one after the other all the same,
and everything before and behind takes longer than that.
"""


class SlurmBackend:
    """One cluster.  Its memory is Slurm's, and the folder that the console shares with it."""

    has_scheduler: Final = True
    can_shrink: Final = False

    def __init__(self, config: SlurmConfig) -> None:
        self._config = config
        self._controller: Controller = Rest(config) if config.way == "rest" else Commands(config)
        self._where = Whereabouts(config, self._controller)

    @property
    def at_once(self) -> int:
        """See `base.Several`."""
        return SUBMITTERS

    def find(self, keys: Sequence[str]) -> Mapping[str, Sequence[Handle]]:
        """See `base.Backend`.  What a refused sbatch left behind is nobody's job."""
        if not keys:
            return {}
        found: dict[str, Sequence[Handle]] = {}
        listed: dict[str, list[Listed]] = {}
        whose = {key: self._user(key) for key in keys}
        for few in _in_parts(list(keys)):
            listed |= listing.by_name(self._controller.listing(few))
        for key in keys:
            number = self._sent(key)
            numbers = (
                [number]
                if number
                else [each.number for each in listed.get(key, ()) if each.is_of(whose[key])]
            )
            found[key] = [Sent(each, key).handle for each in numbers]
        began = self._remembered({key: whose[key] for key in keys if not found[key]})
        return {**found, **{key: [Sent(number, key).handle] for key, number in began.items()}}

    def _remembered(self, whose: Mapping[str, str]) -> dict[str, int]:
        """The numbers of those that were handed over, were never noted, and began: by one call."""
        since = {key: at for key in whose if (at := history.handed_over(self._config.root, key))}
        return history.began(self._controller, {key: whose[key] for key in since}, since)

    def submit(self, submission: Submission) -> Handle:
        """See `base.Backend`.  The job is held until `release`."""
        number = self._sent(submission.key) or forgotten.number(self._config.root, submission.key)
        if number:
            return Sent(number, submission.key).handle
        account = self._account(submission)
        script.check(submission, self._config)
        folder = self._folder(submission.key)
        fault("slurm.before_lock")
        try:
            if account:
                shared.prepare(folder, account.pw_uid)
            else:
                folder.parent.mkdir(mode=0o700, parents=self._config.own, exist_ok=True)
                folder.mkdir(mode=0o700, exist_ok=True)
            with _locked(folder):
                fault("slurm.locked")
                return self._submit(submission, folder, account)
        except OSError as error:
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": str(error)})) from error

    def release(self, handles: Sequence[Handle]) -> None:
        """Let jobs go that were submitted and noted (see `base.Holding`), and none that has been given the
        number of one that Slurm forgot.
        """
        now = [replace(sent, number=self._number(sent)) for sent in map(Sent.of, handles)]
        troubles: list[Unreachable] = []
        for user, mine in self._by_user(now).items():
            try:
                self._let_go(user, mine)
            except Unreachable as error:  # which may be this user's alone
                troubles.append(error)
        if troubles:
            raise troubles[0]

    def _let_go(self, user: str, mine: list[Sent]) -> None:
        for few in _in_parts(mine):
            known = {(each.number, each.name) for each in self._controller.known(few) if each.user == user}
            ours = [sent for sent in few if (sent.number, sent.key) in known]
            if ours:
                self._release(user, [sent.number for sent in ours])
            for sent in ours:
                with suppress(FileNotFoundError):
                    layout.publish(self._folder(sent.key) / "released", "")
            if any(sent not in ours and self._is_hidden(sent) for sent in few):
                raise Unreachable(visible.of_people(self._config))

    def observe(self, handles: Sequence[Handle]) -> Mapping[Handle, Observation | Gone | Unseen]:
        """See `base.Backend`.  Second copies of a job that were submitted late, and never released, are
        cancelled on the way, and what Slurm forgot of a release is made good.
        """
        todo = ToDo()
        rows = list(self._controller.listing()) if handles else []
        listed = listing.by_name(rows)
        past = self._past(handles, listed)
        seen = {handle: self._seen(handle, listed, past, todo) for handle in handles}
        self._clear_secrets(seen)
        whose = {each.number: each.user for each in rows}
        for user, few in _grouped(todo.cancel, whose):
            with _of_one(user):
                self._cancel(user, few, waiting_only=True)
        for user, few in _grouped(list(self._left(rows, todo)), whose):
            with _of_one(user):
                self._cancel(user, few)
        for user, few in _grouped(todo.release, whose):
            with _of_one(user):
                self._release(user, few)
        for sent in todo.again:
            with suppress(NotSent, Unknown, Refused), _of_one(self._user(sent.key)):
                if self._is_hidden(sent):
                    seen[sent.handle] = Unseen(visible.of_people(self._config))
                else:
                    self._hand_over_again(sent)  # the next look finds it as it is
        looked = serving.Looked(seen, self._serves, self._where.of_node)
        return {
            handle: looked.at(handle, what) if isinstance(what, Observation) else what
            for handle, what in seen.items()
        }

    def stop(self, handle: Handle, *, grace_s: int, signal: str) -> None:
        """See `base.Backend`.  The job's own script sends the signal and counts the time; where it does not,
        Slurm is asked.
        """
        try:
            sent = Sent.of(handle)
        except NotOurs:
            return
        folder = self._folder(sent.key)
        kept = evidence.kept(folder)
        if kept is None:
            return
        until = time.time() + grace_s
        mode = shared.READABLE if kept.user else 0o600
        earlier = (layout.text(folder / "stop") or "").split()
        if len(earlier) < 3 or float(earlier[2]) > until:
            layout.put(folder / "stop", f"{signal} {grace_s} {until:.3f}\n", mode)
            self._cancel(kept.user, [self._number(sent)], waiting_only=True, name=sent.key)
        elif time.time() > float(earlier[2]) + OVERDUE_S:
            self._cancel(kept.user, [self._number(sent)], name=sent.key)

    def read_log(self, handle: Handle, task: TaskRef, cursor: str, limit: int) -> LogSlice:
        """See `base.Backend`."""
        try:
            folder = self._folder(Sent.of(handle).key)
        except NotOurs:
            return LogSlice(b"", cursor, LogState.GONE)
        return readlog.read(self._config.root, folder, task, cursor, limit)

    def inventory(self) -> Inventory:
        """See `base.Backend`."""
        prerequisites.check(self._config)
        try:
            seen = nodes.read(self._controller.nodes(), self._controller.reservations())
            queue = tuple(self._controller.queue())
            seen = replace(seen, jobs=queue, facilities=self._config.facilities())
        except Unreachable as error:
            raise prerequisites.explained(error) from error
        if self._config.identity == JWT:
            leftovers.look_after(self._config)
        return seen

    def check(self) -> Checked:
        """See `base.Checking`.  By the command line, whichever way jobs go: REST starts nothing at once."""
        seen = self.inventory()
        free = sum(node.schedulable and node.free_cpu_milli > 0 for node in seen.nodes)
        try:
            tried = ontonodes.tried(self._config, free)
        except Unreachable as error:
            raise prerequisites.explained(error) from error
        if self._config.tells_apart:  # each job's own user is asked for by Slurm: see try_as
            return replace(tried, lacking=(*tried.lacking, *leftovers.told(self._config)))
        programs, user = Programs(self._config), visible.asking(self._config)
        lacking = tuple(accepted.lacking(self._config, programs, user))
        hidden = tuple(filter(None, [visible.hidden(self._config)]))
        return replace(tried, lacking=tried.lacking + lacking, remarks=tried.remarks + hidden)

    def try_as(self, person: Person) -> str:
        """See `base.Checking`."""
        prerequisites.check(self._config)
        if self._config.identity == SUDO:
            user = whom.account(person, whom.slurm_user(self._config)).pw_name
            if lacking := list(accepted.lacking(self._config, Helper(self._config, user), user)):
                raise Unreachable("\n".join(lacking))
        return trial.run(self, person)

    def forget(self, handle: Handle) -> None:
        """See `base.Backend`."""
        sent = Sent.of(handle)
        forgotten.remember(self._config.root, sent)
        folder = self._folder(sent.key)
        user = self._user(sent.key)
        if self._config.identity == JWT:
            leftovers.remove(self._config, sent.key, user)
        else:
            if user:
                Helper(self._config, user).remove(sent.key)
            clear(folder)
        if folder.parent.exists() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()

    def render(self, submission: Submission) -> base.Sent:
        """See `base.Rendering`."""
        return showing.rendered(submission, self._config)

    async def exec(self, handle: Handle, task: TaskRef, wanted: Wanted) -> Session:
        """By a step of Slurm's beside the replica, whoever begins it (see `sessions.Enterable`)."""
        return await self._entered(handle, task).exec(wanted)

    async def reach(self, handle: Handle, task: TaskRef, host: str, port: int) -> tuple[str, int]:
        """A port is the replica's if one of its processes listens there (see `sessions.Enterable`)."""
        return await self._entered(handle, task).reach(host, port)

    async def listener(self, handle: Handle, task: TaskRef, host: str, port: int) -> str:
        """By the word of its node, which is believed for a moment (see `sessions.Enterable`)."""
        return await self._entered(handle, task).listener(host, port)

    def _serves(self, handle: Handle, task: TaskRef, port: int) -> bool | None:
        return self._entered(handle, task).serves(port)

    def _entered(self, handle: Handle, task: TaskRef) -> Replica:
        try:
            return Replica(self._config, Sent.of(handle), task, self._where)
        except NotOurs as error:
            raise NoEntry(Barrier.GONE) from error

    def dry_run(self, submission: Submission) -> Sequence[Tried]:
        """See `base.Trying`.  By the command line, whichever way jobs go: REST has nothing like it."""
        return list(dryrun.tried(lambda: self._expected(showing.masked(submission))))

    def _expected(self, asked: Submission) -> tuple[str, Expected | None]:
        """As whom it would run, and when and where, None where Slurm can't be asked as that user.  Raises
        what `submit` does.
        """
        account = self._account(asked)
        script.check(asked, self._config)
        text = script.written(asked, None, self._config, self._choosable(asked))
        if account is None:
            return str(os.geteuid()), Programs(self._config).test(text)
        if self._config.identity == JWT:
            return account.pw_name, None
        return account.pw_name, Helper(self._config, account.pw_name).test(text)

    def books(self) -> Books:
        """See `accounts.Accounting`.  By the command line, whichever way jobs go."""
        return associations.read(Programs(self._config))

    def limit(self, account: str, ceilings: Ceilings, jobs_of_one: int | None) -> None:
        """See `accounts.Accounting`."""
        associations.write(Programs(self._config), account, ceilings, jobs_of_one)

    def _folder(self, key: str) -> Path:
        return layout.attempt(self._config.root, key)

    def _sent(self, key: str) -> int | None:
        """Slurm's number for an attempt that was handed over, as far as that is written down."""
        try:
            told = layout.text(self._folder(key) / "sent")
        except NotOurs:
            return None
        return int(told) if told and told.strip().isdigit() else None

    def _submit(self, submission: Submission, folder: Path, account: Account | None) -> Handle:
        """Hand it over, while nobody else does."""
        key, user = submission.key, account.pw_name if account else ""
        if (number := self._sent(key)) is None and not layout.publish(folder / "begun", "", durable=True):
            number = self._already_there(key, user)
        if number is None:
            number = self._hand_over(submission, folder, account)
        fault("slurm.accepted")
        if not layout.publish(folder / "sent", str(number)) and (first := self._sent(key)) not in (
            None,
            number,
        ):
            self._cancel(user, [number], waiting_only=True, name=key)
            return Sent(first or number, key).handle
        fault("slurm.noted")
        return Sent(number, key).handle

    def _already_there(self, key: str, user: str) -> int | None:
        """Somebody began to hand it over and did not note its number: Slurm may have it."""
        try:
            found = self._called(key, user)
            return found[0].number if found else self._remembered({key: user}).get(key)
        except Unreachable as error:
            raise Unknown(str(error)) from error

    def _hand_over(self, submission: Submission, folder: Path, account: Account | None) -> int:
        text = self._script(submission, folder)
        user, mode = (account.pw_name, shared.READABLE) if account else ("", 0o600)
        layout.put(folder / "job.json", script.kept(submission, self._config, user))
        layout.put(folder / "script", text)
        if secrets := _secrets(submission):
            layout.put(folder / "secrets", environment.as_shell(secrets), mode)
        for name, content in staging.files(submission):
            layout.put(folder / name, content, mode)
        for tree, supply in submission.uploads.items():
            staging.pack(supply, folder / "trees" / f"{tree}.tar")
        fault("slurm.before_sbatch")
        if account:
            shared.open_to(folder, account.pw_uid)
        return self._send(user, submission.key, text)

    def _script(self, submission: Submission, folder: Path) -> str:
        """The script, for a folder that nodes see, or for one of each node's own."""
        nodes = self._choosable(submission)
        if not self._config.apart:
            return script.written(submission, folder, self._config, nodes)
        there = layout.on_nodes(self._config.nodes_folder, submission.key)
        token = delivered.token(self._config.root, submission.key)
        return script.written(submission, there, self._config, nodes, token)

    def _choosable(self, submission: Submission) -> list[str]:
        """The cluster's nodes, where the job chooses among them."""
        if not script.needs_nodes(submission.spec):
            return []
        try:
            return [node["NodeName"] for node in self._controller.nodes()]
        except Unreachable as error:
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": str(error)})) from error

    def _past(self, handles: Sequence[Handle], listed: Mapping[str, list[Listed]]) -> Past:
        """What accounting has of those that Slurm's controller has forgotten and that left no end behind."""
        missing: dict[int, str] = {}
        for handle in handles:
            with suppress(NotOurs):
                sent = Sent.of(handle)
                number, folder = self._number(sent), self._folder(sent.key)
                known = {each.number for each in listed.get(sent.key, ())}
                if known & {sent.number, number} or evidence.kept(folder) is None:
                    continue
                if not self._is_told(folder):
                    missing[number] = sent.key
        return history.past(self._controller, missing)

    def _is_told(self, folder: Path) -> bool:
        try:
            return sight.is_told(folder)
        except (OSError, ValueError, LookupError):
            if not layout.is_shared(folder):
                raise
            return False

    def _seen(
        self, handle: Handle, listed: Mapping[str, list[Listed]], past: Past, todo: ToDo
    ) -> Observation | Gone | Unseen:
        try:
            sent = Sent.of(handle)
        except NotOurs:
            return Gone.GONE
        folder = self._folder(sent.key)
        kept = evidence.kept(folder)
        if kept is None:
            return Gone.GONE
        same = [each for each in listed.get(sent.key, ()) if each.user == kept.user]
        mine = self._mine(folder, sent, same, past, todo)
        todo.cancel += [each.number for each in same if each is not mine and each.is_held]
        try:
            if mine is None:
                lost = Listed(self._number(sent), sent.key, "", "")
                told = self._of_files(folder, kept, lost, past, todo)
                return Gone.GONE if told is None else whom.plausible(told, kept.user)
            unsaved.note(folder, mine)
            return whom.plausible(
                rewound.seen(folder, kept, mine, todo) or sight.of_listed(folder, kept, mine), kept.user
            )
        except (OSError, ValueError, LookupError):
            if not kept.user:
                raise
            nothing = folder / ".nothing"  # what its person wrote there can't be read, and is left aside
            return sight.of_listed(nothing, kept, mine) if mine else Gone.GONE

    def _left(self, rows: Sequence[Listed], todo: ToDo) -> Iterator[int]:
        """See `rewound.left`; what people wrote of their own jobs decides nothing about others'."""
        if not self._config.tells_apart:
            yield from rewound.left(self._config.root, rows, todo)
            return
        for row in rows:
            with suppress(OSError, ValueError):
                if row.state == "RUNNING" and row.user == self._user(row.name):
                    yield from rewound.left(self._config.root, [row], todo)

    def _clear_secrets(self, seen: Mapping[Handle, Observation | Gone | Unseen]) -> None:
        """A job that runs as its owner, or elsewhere, can't remove the console's own files at its end."""
        for handle, what in seen.items():
            if isinstance(what, Observation) and what.state in TERMINAL:
                folder = self._folder(Sent.of(handle).key)
                kept = evidence.kept(folder)
                if kept is not None and (kept.user or kept.apart):
                    for name in SECRETS:
                        (folder / name).unlink(missing_ok=True)
                if kept is not None and kept.apart:
                    delivered.close(folder)

    def _of_files(
        self, folder: Path, kept: Kept, listed: Listed, past: Past, todo: ToDo
    ) -> Observation | Unseen | None:
        """A job that Slurm's controller does not know, by what it left behind and by accounting."""
        told = rewound.ended(folder, kept, listed.number) or past.seen(folder, kept, listed.number)
        return told or rewound.vanished(folder, kept, listed, todo)

    def _mine(
        self, folder: Path, sent: Sent, same: Sequence[Listed], past: Past, todo: ToDo
    ) -> Listed | None:
        """Which of the jobs of that name it is.  One that Slurm has forgotten is handed over again."""
        numbers = {each.number: each for each in same}
        number = unsaved.number(folder, sent)
        mine = numbers.get(sent.number) or numbers.get(number)
        if mine is not None or past.decides(number) or not unsaved.is_one(folder):
            return mine
        if (copy := unsaved.copy(folder, same)) is not None:
            todo.release.append(copy.number)
            return replace(copy, reason="None")
        todo.again.append(sent)
        return Listed(sent.number, sent.key, "PENDING", "None")

    def _hand_over_again(self, sent: Sent) -> None:
        folder = self._folder(sent.key)
        with _locked(folder):
            user = self._user(sent.key)
            if self._called(sent.key, user):
                return
            number = self._send(user, sent.key, (folder / "script").read_text(encoding="utf-8"))
            layout.put(folder / "again", str(number))
        self._release(user, [number])

    def _account(self, submission: Submission) -> Account | None:
        """The UNIX user as whom it runs, None for the console itself.  Raises Refused, or NotSent."""
        if not self._config.tells_apart:
            return None
        try:
            if self._config.identity == SUDO:
                visible.check(self._config)
            return whom.account(submission.person, whom.slurm_user(self._config))
        except Unreachable as error:
            raise NotSent(Reason(ReasonCode.NOT_SENT, {"detail": str(error)})) from error

    def _user(self, key: str) -> str:
        """As whom an attempt was sent, '' for the console itself."""
        try:
            kept = evidence.kept(self._folder(key))
        except NotOurs:
            return ""
        return kept.user if kept else ""

    def _by_user(self, some: Sequence[Sent]) -> dict[str, list[Sent]]:
        found: dict[str, list[Sent]] = {}
        for sent in some:
            found.setdefault(self._user(sent.key), []).append(sent)
        return found

    def _is_hidden(self, sent: Sent) -> bool:
        """Whether Slurm has a job after all that it does not tell the console of."""
        user = self._user(sent.key)
        return bool(user) and self._config.identity == JWT and bool(self._called(sent.key, user))

    def _called(self, key: str, user: str) -> list[Listed]:
        """That user's jobs of that name.  With a token of theirs also what Slurm hides from the console."""
        if user and self._config.identity == JWT:
            return [each for each in ByToken(self._config, user).called(key) if not each.was_refused]
        listed = listing.by_name(self._controller.listing([key]))
        return [each for each in listed.get(key, ()) if each.is_of(user)]

    def _send(self, user: str, key: str, text: str) -> int:
        return acting(self._config, user).submit(key, text) if user else self._controller.submit(text)

    def _release(self, user: str, numbers: Sequence[int]) -> None:
        if user:
            acting(self._config, user).release(numbers)
        else:
            self._controller.release(numbers)

    def _cancel(
        self, user: str, numbers: Sequence[int], *, waiting_only: bool = False, name: str = ""
    ) -> None:
        if user:
            acting(self._config, user).end(numbers, waiting_only=waiting_only, name=name)
        else:
            self._controller.cancel(numbers, waiting_only=waiting_only, name=name)

    def _number(self, sent: Sent) -> int:
        return unsaved.number(self._folder(sent.key), sent)


def from_settings(home: Path, settings: Mapping[str, Any]) -> SlurmBackend:
    """The factory named in `jobs.engines`."""
    return SlurmBackend(SlurmConfig.from_settings(home, settings))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the attempt's lock; raises Unknown when another worker is handing it over."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Unknown("another worker is handing it over") from error
        yield
    finally:
        os.close(file)


def _secrets(submission: Submission) -> dict[str, str]:
    """The values that a replica is given by a file."""
    spec: JobSpec = submission.spec
    found = {name: submission.secrets[each.name] for name, each in spec.secret_env.items()}
    if submission.endpoint_token:
        found["JOB_CONSOLE_ENDPOINT_TOKEN"] = submission.endpoint_token
    return found


def _grouped(numbers: Sequence[int], whose: Mapping[int, str]) -> Iterator[tuple[str, list[int]]]:
    """Numbers of jobs by whose they are, '' for the console's own, and not too many at once."""
    found: dict[str, list[int]] = {}
    for number in numbers:
        found.setdefault(whose.get(number, ""), []).append(number)
    for user, theirs in found.items():
        yield from ((user, few) for few in _in_parts(theirs))


def _of_one(user: str) -> AbstractContextManager[None]:
    """What can't be done as one of the people is no reason to leave the others'."""
    return suppress(Unreachable) if user else nullcontext()


def _in_parts(values: list[T]) -> Iterator[list[T]]:
    return (values[first : first + AT_ONCE] for first in range(0, len(values), AT_ONCE))
