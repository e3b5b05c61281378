"""Samples of ours use every field of every dialect, and each survives being read and written anew."""

from collections.abc import Iterator

import pytest

from jobs import dialects
from jobs.dialects.document import Document
from jobs.dialects.text_renderer import OF_THE_TARGET
from tests.jobs.dialects.sample_fields import samples, spellings, used


def every_sample() -> Iterator[tuple[str, str]]:
    for name in dialects.NAMES:
        for file_name in samples(name):
            yield name, file_name


@pytest.mark.parametrize("name", dialects.NAMES)
def test_sample_files_use_every_field(name: str) -> None:
    there = {key for file_name, text in samples(name).items() for key in used(file_name, text)}
    missing = [key for row in dialects.fields(name) for key in sorted(spellings(row)) if key not in there]
    assert not missing, f"no sample of {name} uses {', '.join(missing)}"


@pytest.mark.parametrize(("name", "file_name"), list(every_sample()))
def test_sample_files_survive_being_rewritten(name: str, file_name: str) -> None:
    dialect, text = dialects.get(name), samples(name)[file_name]
    assert Document(text).dialect == name
    parsed = dialect.parse(Document(text))
    rendered = dialect.render(parsed.spec, parsed.extras)
    again = dialect.parse(Document(rendered.text))
    assert (again.spec, again.extras) == (parsed.spec, parsed.extras)
    assert [note for note in rendered.notes if note.code not in OF_THE_TARGET] == []
    assert used(file_name, text) - used(file_name, rendered.text) == set()
    assert dialect.render(parsed.spec, parsed.extras, base=Document(text)).text == text
