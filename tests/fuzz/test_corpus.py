"""What the fuzzer once found worth keeping is read without harm."""

import pytest

from jobs import dialects
from tests.fuzz.target import corpus, try_text


@pytest.mark.parametrize("name", dialects.NAMES)
def test_dialect_parser_accepts_or_refuses_each_corpus_text(name: str) -> None:
    texts = corpus(name)
    assert texts, "run `python -m tests.fuzz --keep`"
    for text in texts:
        try_text(name, text)
