"""Squashed migrations, beside those that they replace."""

from __future__ import annotations

import pytest
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

OURS = {"jobs", "quotas"}


def models(*, squashed: bool) -> ProjectState:
    """What the migrations of our applications lead to, one way or the other."""
    loader = MigrationLoader(None, replace_migrations=squashed)
    loader.build_graph()
    leaves = [
        leaf
        for leaf in loader.graph.leaf_nodes()
        if squashed or leaf[0] not in OURS or "squashed" not in leaf[1]
    ]
    state: ProjectState = loader.graph.make_state(nodes=leaves)
    return state


@pytest.mark.once
def test_squashed_migrations_lead_to_the_same_models_as_the_originals() -> None:
    squashed, originals = models(squashed=True), models(squashed=False)
    assert {key for key in originals.models if key[0] in OURS} == {
        key for key in squashed.models if key[0] in OURS
    }
    changes = MigrationAutodetector(originals, squashed).changes(MigrationLoader(None).graph)
    assert {app: [each.operations for each in changes[app]] for app in changes.keys() & OURS} == {}
