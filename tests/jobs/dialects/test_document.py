"""A document: read once, and silent about what stands in it."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251 to see that it is refused
from collections import Counter

import pytest

from jobs import dialects
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.dialects.reading_cache import read_once

SECRET = "s3cret-value"
DLC = (
    '{"DisplayName": "a", "JobType": "PyTorchJob", "UserCommand": "c", "Envs": {"MY_TOKEN": "s3cret-value"},'
    ' "JobSpecs": [{"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "ecs.c6.large"}]}'
)


def test_document_repr_shows_no_text_and_no_secret() -> None:
    document = Document(DLC)
    assert SECRET in document.parsed.secrets.values()
    for shown in (repr(document), str(document), f"{document}", repr(document.parsed)):
        assert SECRET not in shown
        assert "DisplayName" not in repr(document)


def test_document_inside_other_objects_shows_no_secret() -> None:
    document = Document(DLC)
    assert SECRET not in repr(dialects.convert(document, "aihc"))
    assert SECRET not in repr(document.render(document.parsed.spec))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_document_refuses_pickling(protocol: int) -> None:
    with pytest.raises(TypeError, match="never stored"):
        pickle.dumps(Document("{}"), protocol)


def test_document_refuses_copies() -> None:
    with pytest.raises(TypeError, match="never stored"):
        copy.deepcopy(Document("{}"))


def test_read_once_calls_reader_once_per_document_and_argument() -> None:
    asked: Counter[str] = Counter()

    @read_once
    def read(document: Document, suffix: str = "") -> list[str]:
        asked[document.text + suffix] += 1
        if not document.text:
            raise Refused((Problem("empty_text"),))
        return [document.text, suffix]

    one, other, empty = Document("a"), Document("a"), Document("")
    assert read(one) is read(one)
    assert read(one) is not read(other)
    assert read(one, "b") == ["a", "b"]
    for _time in range(2):
        with pytest.raises(Refused):
            read(empty)
    assert asked == {"a": 2, "ab": 1, "": 1}


def test_pinned_document_shares_parsed_result() -> None:
    document = Document(DLC)
    pinned = document.pin("dlc")
    assert pinned.given == "dlc"
    assert pinned.parsed is document.parsed
    assert pinned.pin("dlc") is pinned


def test_sealed_document_has_placeholders_for_secrets() -> None:
    document = Document(DLC)
    assert SECRET not in document.sealed.text
    assert document.sealed.fill(document.parsed.secrets).parsed.secrets == document.parsed.secrets
    assert document.sealed.sealed.text == document.sealed.text


def test_document_without_job_file_is_refused_each_time() -> None:
    document = Document("{")
    for _time in range(2):
        with pytest.raises(Refused):
            _parsed = document.parsed
    assert [each.code for each in document.problems] == ["unclosed_bracket"]
