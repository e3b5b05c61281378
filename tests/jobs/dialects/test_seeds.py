"""The vendors' own samples, as printed on their pages, are read and go to every other dialect."""

import pytest

from jobs import dialects
from jobs.dialects.document import Document
from tests.seeds import FOLDER, SEEDS, Seed, converted


def test_seed_list_matches_stored_files() -> None:
    assert {seed.file for seed in SEEDS} == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_seed_is_recognised_parsed_and_rendered_unchanged(seed: Seed) -> None:
    assert Document(seed.text).dialect == seed.dialect
    dialect = dialects.get(seed.dialect)
    parsed = dialect.parse(Document(seed.text))
    assert dialect.render(parsed.spec, parsed.extras, base=Document(seed.text)).text == seed.text
    again = dialect.parse(Document(dialect.render(parsed.spec, parsed.extras).text))
    assert (again.spec, again.extras) == (parsed.spec, parsed.extras)


@pytest.mark.parametrize("target", dialects.NAMES)
@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_seed_converts_to_any_other_dialect(seed: Seed, target: str) -> None:
    """What every dialect can say is still there: the command, the replicas, the image, the amounts."""
    there = converted(seed, target)
    assert [(role.replicas, role.command, role.image) for role in there.roles] == [
        (role.replicas, role.command, role.image) for role in seed.spec.roles
    ]
    for role, wanted in zip(there.roles, seed.spec.roles, strict=True):
        if not wanted.resources.instance_type:  # of a ready-made size not all is known
            assert role.resources.memory_mib == wanted.resources.memory_mib
        assert role.resources.gpus == wanted.resources.gpus
    assert there.time_limit_s in (seed.spec.time_limit_s, None)
    assert there.env == seed.spec.env
