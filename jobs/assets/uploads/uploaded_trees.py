"""Uploaded trees: their missing content, and trees made of what their person sent."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from django.conf import settings
from django.db import transaction

from jobs.assets import visibility
from jobs.assets.uploads import store
from jobs.assets.uploads.store import MIB, NotTaken, batches, enough, until
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.positions import FieldPositions
from jobs.models import AssetKind, Blob, HeldBlob, HeldTree, Job, TreeUse, UploadedTree
from jobs.spec import JobSpec
from jobs.trees import Tree, find_trees
from quotas.access import Verb, those
from quotas.models import User


class ContentMissing(Exception):
    """The tree names content that the person has not sent."""

    def __init__(self, digests: Collection[str]) -> None:
        super().__init__(len(digests))
        self.digests = digests


def find_missing(person: User, contents: Mapping[str, int]) -> list[str]:
    """Return the contents that the person has not sent, or with another size; keep the rest on."""
    found: set[str] = set()
    for batch in batches(contents):
        rows = HeldBlob.objects.filter(person=person, blob__sha256__in=batch)
        sizes = dict(rows.values_list("blob__sha256", "blob__size"))
        found |= {digest for digest, size in sizes.items() if contents[digest] == size}
        _extend(sizes, [person.pk])
    return [digest for digest in contents if digest not in found]


def size_of(person: User, sha256: str) -> int | None:
    """The bytes of content that the person has sent; None for what they have not."""
    return (
        HeldBlob.objects.filter(person=person, blob__sha256=sha256)
        .values_list("blob__size", flat=True)
        .first()
    )


def _extend(digests: Iterable[str], people: Collection[int]) -> None:
    """Prolong content, and its owners' claims; rows that are kept long enough are left alone."""
    soon, later, named = enough(), until(), list(digests)
    Blob.objects.filter(sha256__in=named, kept_until__lt=soon).update(kept_until=later)
    HeldBlob.objects.filter(blob__sha256__in=named, person__in=people, kept_until__lt=soon).update(
        kept_until=later
    )


def knows(person: User, tree: str) -> UploadedTree | None:
    """The person's own tree with that id; it is kept on."""
    row = UploadedTree.objects.filter(sha256=tree, held__person=person).first()
    if row is None or row.kept_until >= enough():
        return row
    return row if keep_on(row) else None


def keep_on(row: UploadedTree) -> bool:
    """Prolong a tree and its content; False when it has been removed."""
    contents = load(row).contents()
    with transaction.atomic():
        if not UploadedTree.objects.filter(pk=row.pk).update(kept_until=until()):
            return False
        people = list(HeldTree.objects.filter(tree=row).values_list("person_id", flat=True))
        for batch in batches(contents):
            _extend(batch, people)
    return True


def make(person: User, tree: Tree) -> UploadedTree:
    """The person's tree.  Raises ContentMissing, NotTaken for more than may be, BadTree."""
    _check_size(tree)
    if (mine := knows(person, tree.id)) is not None:
        return mine
    contents = tree.contents()
    if lacking := find_missing(person, contents):
        raise ContentMissing(lacking)
    row = _row(tree)
    with transaction.atomic():
        kept = UploadedTree.objects.filter(pk=row.pk).update(kept_until=until())
        if not kept or not _all_there(person, contents):
            raise ContentMissing(list(contents))
        HeldTree.objects.get_or_create(person=person, tree=row)
    return row


def _check_size(tree: Tree) -> None:
    if len(tree.entries) > settings.CONSOLE_CODE_FILES:
        raise NotTaken("tree_files", most=settings.CONSOLE_CODE_FILES)
    if tree.size > settings.CONSOLE_CODE_MIB * MIB:
        raise NotTaken("tree_large", most=settings.CONSOLE_CODE_MIB)


def _all_there(person: User, contents: Mapping[str, int]) -> bool:
    """Tell whether all of it is there still, now that nothing can be removed any more."""
    count = 0
    for batch in batches(contents):
        rows = HeldBlob.objects.filter(person=person, blob__sha256__in=batch)
        count += len(rows.select_for_update().values_list("pk", flat=True))
    return count == len(contents)


def _row(tree: Tree) -> UploadedTree:
    row = UploadedTree.objects.filter(sha256=tree.id).first()
    if row is not None:
        return row
    around: Path = settings.CONSOLE_SHARED_FOLDER / "uploads"
    around.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=around, prefix=".manifest-")
    with os.fdopen(handle, "wb") as file:
        file.write(tree.dump())
        file.flush()
        os.fsync(handle)
    try:
        manifest = store.store_file(Path(name), "trees")
    finally:
        Path(name).unlink(missing_ok=True)
    columns = {
        "files": len(tree.entries),
        "size": tree.size,
        "manifest": manifest,
        "kept_until": until(),
    }
    return UploadedTree.objects.get_or_create(sha256=tree.id, defaults=columns)[0]


def load(row: UploadedTree) -> Tree:
    """The tree as it was sent."""
    return Tree.load(json.loads(store.read(row.manifest.name)))


# --- trees in jobs ---------------------------------------------------------------------------------------


def usable(person: User, tree: str) -> UploadedTree | None:
    """Return the tree with that id; None for one that there is not, or not for them.

    The person may use what they sent, what a job that they may read has, and what a dataset that they may
    name is made of.
    """
    row = UploadedTree.objects.filter(sha256=tree).first()
    if row is None:
        return None
    if HeldTree.objects.filter(person=person, tree=row).exists():
        return row
    datasets = visibility.visible_to(person, AssetKind.DATASET).filter(retired_at=None)
    if datasets.filter(copy__tree=row).exists():
        return row
    jobs = Job.objects.visible_to(person).filter(trees__tree=row).order_by("-pk")
    return row if those(person, Verb.READ, jobs[:200]) else None


def problems(person: User, document: Document) -> tuple[Problem, ...]:
    """The places of the job that name no tree which the person may use, each with its place in the text."""
    wrong = [
        (where, tree) for where, tree in find_trees(document.parsed.spec) if usable(person, tree) is None
    ]
    found = document.places
    return tuple(_problem(where, found) for where, _tree in wrong)


def _problem(where: str, found: FieldPositions) -> Problem:
    line, column = found.of_field(where) or (None, None)
    return Problem("no_such_upload", pointer=where, line=line, column=column)


def use(person: User, job: Job, spec: JobSpec) -> None:
    """Attach its trees to the job; in the transaction that makes the job.

    Raises Refused when one was removed since `problems` looked.
    """
    for tree in {tree for _where, tree in find_trees(spec)}:
        row = UploadedTree.objects.select_for_update().filter(sha256=tree).first()
        if row is None or usable(person, tree) is None:
            raise Refused((Problem("no_such_upload"),))
        TreeUse.objects.create(tree=row, job=job)


def of_job(job: Job) -> Iterator[UploadedTree]:
    """The trees that a job has."""
    for row in job.trees.all():
        yield row.tree
