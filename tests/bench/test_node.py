"""The bench of a node gives every figure, at its smallest."""

from __future__ import annotations

import pytest

from tests import slurm
from tests.bench import node


def test_node_bench_measures_every_figure_of_each_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "missing", lambda: "a real Slurm takes too long here")
    monkeypatch.setattr(node, "SETTLED_S", 0.1)
    sizes = node.Sizes(rounds=1, sleeping=2, short=2, replicas=2, watched_s=0.2)
    figures = node.measure(sizes)
    assert len(figures) == 7 * len(node.networks())
    assert all(figure.value > 0 for figure in figures if figure.unit != "%")
