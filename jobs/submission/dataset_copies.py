"""Folders of ended jobs saved as datasets: requested as rows, copied by a worker.

The copy is an uploaded tree, with the limits of uploads, that counts as the requester's.  A task copies for
SLICE_S; what it has stored is in a progress file, so that the next task, also after one was killed, goes on
from there.  Links are not followed; what is no ordinary file, or is closed to the job's user, is skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from jobs.access.folders import file_audit, names
from jobs.access.folders.client import Asker, FolderClient, FolderRefused, OpenFile, connect
from jobs.access.folders.locations import FolderLocation
from jobs.assets import changes
from jobs.assets.uploads import arrivals, store, uploaded_trees
from jobs.assets.uploads.store import MIB, ContentPiece, NotTaken
from jobs.live import triggers
from jobs.messages.dataset_copies import FOLDER, UPLOAD
from jobs.models import Dataset, DatasetCopy
from jobs.node.sftp_packets import LONGEST_DATA
from jobs.submission.access import Forbidden, require
from jobs.trees import BadTree, Entry, Kind, Tree, address
from quotas.access import Verb, may_submit
from quotas.models import Action, User
from quotas.models.expressions import Literal

log = structlog.get_logger(__name__)

SLICE_S: Final = 20.0
STALE: Final = timedelta(seconds=120)
"""A copy whose worker has recorded no progress for so long is taken over."""

MOST_RESTARTS: Final = 3
MOST_OPEN: Final = 3
LONGEST_NAME: Final = 200
_TOUCH_S: Final = 2.0
_ROWS: Final = 1000
_SKIPPED: Final = frozenset({"link", "special", "linked", "denied", "mounted", "absent"})
_NO_CONTENT: Final = hashlib.sha256().hexdigest()

_State = DatasetCopy.State


class CopyRefused(Exception):
    """The folder can't be saved; `code` is one of `jobs.messages.dataset_copies`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Stopped(Exception):
    """The copy was removed, or another worker has it."""


def request_copy(user: User, place: FolderLocation, name: str) -> DatasetCopy:
    """Request that a folder of an ended job becomes a dataset of its workspace.

    The person must be allowed to enter the job and to submit in the workspace.  The name of a dataset of
    theirs whose copy failed starts that one again.  Raises Forbidden, CopyRefused.
    """
    job, attempt, name = place.job, place.replica.attempt, name.strip()
    require(user, Verb.ENTER, job)
    if not may_submit(user, job.workspace_id):
        raise Forbidden
    if attempt.ended_at is None:
        raise CopyRefused("running")
    if attempt.forgotten_at is not None:
        raise CopyRefused(f"{FOLDER}gone")
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise CopyRefused("name")
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # one request at a time, so that the limit holds
        if _open_copies().filter(person=user).count() >= MOST_OPEN:
            raise CopyRefused("too_many")
        copy = _find_failed(user, job.workspace_id, name) or _begin(user, place, name)
        copy.job, copy.replica = job, place.replica
        copy.root, copy.path = place.root, names.way(place.names)
        copy.state, copy.code, copy.detail = _State.WAITING, "", ""
        copy.files = copy.size = copy.copied = copy.skipped = copy.restarts = 0
        copy.touched_at = None
        copy.save()
        file_audit.record(user, place, Action.FILE_SAVE, [name])
        triggers.trigger_on_commit("copy_folders")
    return copy


def _begin(user: User, place: FolderLocation, name: str) -> DatasetCopy:
    """Return a copy into a new dataset, not saved yet."""
    folder = names.legible("/".join([place.root, *place.names]))
    dataset = Dataset.objects.create(
        name=name,
        workspace=place.job.workspace,
        source=Dataset.Source.UPLOAD,
        description=f"{place.job.public_id}: {folder}",
        created_by=user,
    )
    return DatasetCopy(dataset=dataset, person=user)


def _find_failed(user: User, workspace: int, name: str) -> DatasetCopy | None:
    """Return the person's failed copy under the name.  Raises CopyRefused when something else has it."""
    taken = Dataset.objects.filter(workspace=workspace, name=name, retired_at=None).first()
    if taken is None:
        return None
    failed = DatasetCopy.objects.select_for_update().filter(dataset=taken, person=user, state=_State.FAILED)
    copy = failed.select_related("dataset").first()
    if copy is None:
        raise CopyRefused("name_taken")
    _progress_path(copy).unlink(missing_ok=True)
    return copy


def is_due() -> bool:
    """Tell whether a copy waits for a worker, or has lost its own."""
    return _due_copies().exists()


def copy_next() -> bool:
    """Copy one folder, or a part of it; tell whether more is to do."""
    copy = _take()
    if copy is None:
        return False
    try:
        _FolderCopy(copy).run()
    except _Stopped:
        log.info("dataset_copy_stopped", copy=copy.pk)
    except FolderRefused as refused:
        _fail(copy, f"{FOLDER}{refused.code}", names.legible(refused.name))
    except NotTaken as refused:
        _fail(copy, f"{UPLOAD}{refused.code}", str(refused.most))
    except BadTree as bad:
        _fail(copy, f"{UPLOAD}{bad.code}", names.legible(bad.path))
    except uploaded_trees.ContentMissing:
        _fail(copy, f"{UPLOAD}missing")
    except SoftTimeLimitExceeded:
        _fail(copy, "slow")
    return is_due()


def _open_copies() -> QuerySet[DatasetCopy]:
    return DatasetCopy.objects.filter(state__in=(_State.WAITING, _State.COPYING))


def _due_copies() -> QuerySet[DatasetCopy]:
    # As in the condition of the index, which SQLite must find in the statement.
    is_open = Q(state__in=[Literal(_State.WAITING), Literal(_State.COPYING)])
    abandoned = Q(state=_State.COPYING, touched_at__lt=timezone.now() - STALE)
    return DatasetCopy.objects.filter(is_open, Q(state=_State.WAITING) | abandoned, person__isnull=False)


def _take() -> DatasetCopy | None:
    """Take the copy that was worked on longest ago; no other worker takes it before it is stale."""
    for row in _due_copies().order_by(F("touched_at").asc(nulls_first=True), "id")[:20]:
        mine = DatasetCopy.objects.filter(pk=row.pk, state=row.state, touched_at=row.touched_at)
        restarts = row.restarts + (row.state == _State.COPYING)
        if mine.update(state=_State.COPYING, touched_at=Now(), restarts=restarts):
            copy = DatasetCopy.objects.select_related("person", "dataset", "replica").get(pk=row.pk)
            if restarts <= MOST_RESTARTS:
                return copy
            _fail(copy, "lost")
    return None


def _fail(copy: DatasetCopy, code: str, detail: str = "") -> None:
    DatasetCopy.objects.filter(pk=copy.pk, state=_State.COPYING).update(
        state=_State.FAILED, code=code, detail=detail.replace("\0", "")[:500]
    )
    _progress_path(copy).unlink(missing_ok=True)


def _progress_path(copy: DatasetCopy) -> Path:
    assert copy.person is not None  # others are not taken
    return arrivals.folder(copy.person) / f"copy-{copy.pk}"


@dataclass(slots=True)
class _Listing:
    """What a folder has: `files` with their sizes by their paths below it, and its empty folders."""

    files: dict[str, int] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    skipped: int = 0

    def check(self) -> None:
        """Raise NotTaken or BadTree for what can't be an uploaded tree, before a byte is read."""
        if len(self.files) + len(self.folders) > settings.CONSOLE_CODE_FILES:
            raise NotTaken("tree_files", most=settings.CONSOLE_CODE_FILES)
        if max(self.files.values(), default=0) > settings.CONSOLE_CODE_FILE_MIB * MIB:
            raise NotTaken("file_large", most=settings.CONSOLE_CODE_FILE_MIB)
        if sum(self.files.values()) > settings.CONSOLE_CODE_MIB * MIB:
            raise NotTaken("tree_large", most=settings.CONSOLE_CODE_MIB)
        Tree.of([*(Entry(path, Kind.FILE, _NO_CONTENT) for path in self.files), *self.empty_folders()])

    def empty_folders(self) -> Iterator[Entry]:
        return (Entry(path, Kind.FOLDER) for path in self.folders)


class _FolderCopy:
    """One task's work on a copy."""

    def __init__(self, copy: DatasetCopy) -> None:
        assert copy.person is not None  # others are not taken
        self._copy, self._person = copy, copy.person
        self._base = [copy.root, *map(names.unquote_name, names.parts(copy.path))]
        self._progress = _progress_path(copy)
        self._done: dict[str, Entry | None] = {}
        self._ends = time.monotonic() + SLICE_S
        self._touched = time.monotonic()
        self._bytes = 0

    def run(self) -> None:
        """Copy until SLICE_S are over or all is there.

        Raises FolderRefused, NotTaken, BadTree, ContentMissing, _Stopped.
        """
        copy = self._copy
        if copy.replica is None:
            raise FolderRefused("gone")
        self._progress.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._load_progress()
        with connect(Asker(self._person, copy=copy.pk), copy.replica) as client:
            listing = self._list(client)
            self._set(files=len(listing.files), size=sum(listing.files.values()))
            is_whole = self._store_files(client, listing)
        skipped = listing.skipped + sum(entry is None for entry in self._done.values())
        if is_whole:
            self._finish(listing, skipped)
        else:
            self._set(state=_State.WAITING, skipped=skipped)

    def _load_progress(self) -> None:
        with suppress(FileNotFoundError):
            for line in self._progress.read_text().splitlines():
                with suppress(ValueError):  # the last line may be cut
                    value = json.loads(line)
                    self._done[value[0]] = Entry.from_json(value) if len(value) > 1 else None
        self._bytes = sum(entry.size for entry in self._done.values() if entry is not None)

    def _set(self, **columns: object) -> None:
        """Record progress.  Raises _Stopped."""
        mine = DatasetCopy.objects.filter(pk=self._copy.pk, state=_State.COPYING)
        if not mine.update(touched_at=Now(), copied=self._bytes, **columns):
            raise _Stopped
        self._touched = time.monotonic()

    def _touch(self) -> None:
        if time.monotonic() - self._touched > _TOUCH_S:
            self._set()

    # --- listing ---------------------------------------------------------------------------------------

    def _list(self, client: FolderClient) -> _Listing:
        """List the folder with all that is below it; a file is a listing of itself."""
        listing = _Listing()
        ahead: list[tuple[str, ...]] = [()]
        while ahead:
            below = ahead.pop()
            rows = self._entries(client, below, listing)
            if rows is None:
                continue
            for name, kind, size in rows:
                path = (*below, name)
                if kind == "folder":
                    ahead.append(path)
                elif kind == "file":
                    listing.files["/".join(path)] = size
                else:
                    listing.skipped += 1
            if below and not rows:
                listing.folders.append("/".join(below))
            if len(listing.files) + len(ahead) > settings.CONSOLE_CODE_FILES:
                raise NotTaken("tree_files", most=settings.CONSOLE_CODE_FILES)
        listing.check()
        return listing

    def _entries(
        self, client: FolderClient, below: Sequence[str], listing: _Listing
    ) -> list[tuple[str, str, int]] | None:
        """Return name, kind and bytes of a folder's entries; None for one that is skipped."""
        found: list[tuple[str, str, int]] = []
        while True:
            self._touch()
            try:
                page = client.look([*self._base, *below], "name", len(found), _ROWS, down=False)
            except FolderRefused as refused:
                if not below or refused.code not in _SKIPPED:
                    raise
                listing.skipped += 1
                return None
            if isinstance(page, OpenFile):
                raise FolderRefused("name", self._base[-1])
            if page["cut"] or page["total"] > settings.CONSOLE_CODE_FILES:
                raise NotTaken("tree_files", most=settings.CONSOLE_CODE_FILES)
            found += [(row["name"], row["kind"], row["size"] or 0) for row in page["rows"]]
            if not page["rows"] or len(found) >= page["total"]:
                return found

    # --- content ---------------------------------------------------------------------------------------

    def _store_files(self, client: FolderClient, listing: _Listing) -> bool:
        """Store the files that are not stored yet; tell whether those were all."""
        ahead = [path for path in listing.files if path not in self._done]
        while ahead and time.monotonic() < self._ends:
            self._store_some(client, ahead)
        return not ahead

    def _store_some(self, client: FolderClient, ahead: list[str]) -> None:
        """Store files of at least PACK_BYTES together as one object, and record them."""
        entries: list[Entry] = []
        skipped: list[str] = []
        pieces: list[ContentPiece] = []
        handle, name = tempfile.mkstemp(dir=self._progress.parent, prefix="copy-")
        draft = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                while ahead and file.tell() < arrivals.PACK_BYTES and time.monotonic() < self._ends:
                    path, offset = ahead.pop(), file.tell()
                    digest = hashlib.sha256()
                    try:
                        for data in self._read(client, path):
                            digest.update(data)
                            file.write(data)
                    except FolderRefused as refused:
                        if refused.code not in _SKIPPED:
                            raise
                        skipped.append(path)
                        continue
                    piece = ContentPiece(digest.hexdigest(), file.tell() - offset, offset)
                    pieces.append(piece)
                    entries.append(Entry(path, Kind.FILE, piece.sha256, piece.size))
                file.flush()
                os.fsync(handle)
            if pieces:
                arrivals.check_room(self._person, 0)  # which counts the draft
                store.keep(self._person, draft, "packs", pieces)
        finally:
            draft.unlink(missing_ok=True)
        self._record(entries, skipped)

    def _read(self, client: FolderClient, path: str) -> Iterator[bytes]:
        """Yield the bytes of a file; it is refused before the first one, or fails on the way."""
        file = client.open_file([*self._base, *path.split("/")])
        if file.size > settings.CONSOLE_CODE_FILE_MIB * MIB:
            raise NotTaken("file_large", most=settings.CONSOLE_CODE_FILE_MIB)
        for first in range(0, file.size, LONGEST_DATA):
            yield client.read(file, first, min(LONGEST_DATA, file.size - first))
            self._bytes += min(LONGEST_DATA, file.size - first)
            self._touch()
        client.close_file(file)

    def _record(self, entries: Sequence[Entry], skipped: Sequence[str]) -> None:
        lines = [*(entry.to_json() for entry in entries), *([path] for path in skipped)]
        with self._progress.open("a") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines)
        self._done |= {entry.path: entry for entry in entries} | dict.fromkeys(skipped)
        self._set()

    def _finish(self, listing: _Listing, skipped: int) -> None:
        entries = [entry for path, entry in self._done.items() if entry is not None and path in listing.files]
        tree = uploaded_trees.make(self._person, Tree.of([*entries, *listing.empty_folders()]))
        with transaction.atomic():
            if (
                DatasetCopy.objects.select_for_update().filter(pk=self._copy.pk, state=_State.COPYING).first()
                is None
            ):
                raise _Stopped
            changes.add_version(self._copy.dataset, address(tree.sha256), by=self._person)
            self._set(state=_State.READY, tree=tree, files=len(entries), size=tree.size, skipped=skipped)
        self._progress.unlink(missing_ok=True)
