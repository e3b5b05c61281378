"""Trees in jobs: whose may be named, and that a job keeps its own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jobs import submission
from jobs.assets.uploads import uploaded_trees
from jobs.assets.uploads.arrivals import Pack
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job, TreeUse, UploadedTree, Visibility
from jobs.trees import address
from quotas.models import User
from tests.jobs.api.conftest import file
from tests.jobs.assets.uploads.conftest import People, packed, tree_of


def sent(user: User, files: Mapping[str, bytes]) -> str:
    """Files as that person sends them; the tree's address."""
    body = packed(*files.values())
    pack = Pack(user, len(body))
    pack.write(body)
    pack.finish()
    pack.close()
    return address(uploaded_trees.make(user, tree_of(files)).sha256)


def submit(user: User, uri: str) -> Job:
    return submission.submit(user, Document(file(codeDir=uri)), keep_original=True).job


def refused(user: User, uri: str) -> list[tuple[str, int | None]]:
    with pytest.raises(Refused) as error:
        submit(user, uri)
    return [(problem.code, problem.line) for problem in error.value.problems]


def test_job_records_use_of_its_tree_until_deleted(people: People) -> None:
    uri = sent(people.owner, {"a": b"1"})
    job = submit(people.owner, uri)
    assert TreeUse.objects.get().job == job
    again = submission.retry(people.owner, job, second_copy=True).job
    assert [row.sha256 for row in uploaded_trees.of_job(again)] == [uri.removeprefix("upload://")]
    job.delete()
    again.delete()
    assert (TreeUse.objects.count(), UploadedTree.objects.count()) == (0, 1)


def test_submission_rejects_tree_of_another_person(people: People) -> None:
    uri = sent(people.owner, {"a": b"1"})
    for other in (people.member, people.manager):
        assert refused(other, uri) == [("no_such_upload", 1)]
        assert refused(other, address("0" * 64)) == [("no_such_upload", 1)]
        assert refused(other, "upload://nonsense") == [("no_such_upload", 1)]
    assert not TreeUse.objects.exists()


def test_retry_by_job_reader_reuses_uploaded_tree(people: People) -> None:
    job = submit(people.owner, sent(people.owner, {"a": b"1"}))
    with pytest.raises(submission.Forbidden):
        submission.retry(people.member, job, second_copy=True)
    submission.share(people.owner, job, Visibility.PUBLIC)
    job.refresh_from_db()
    copy = submission.retry(people.member, job, second_copy=True).job
    assert TreeUse.objects.filter(job=copy).exists()
    assert uploaded_trees.find_missing(people.member, dict.fromkeys(tree_of({"a": b"1"}).contents(), 1)), (
        "not theirs"
    )
