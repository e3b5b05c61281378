"""What a tree may hold, and its one spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.spec import CodeSource, Mount, MountPurpose
from jobs.trees import BadTree, Entry, Kind, Tree, address, find_trees, tree_id_of
from tests.factories import make_spec

SHA = "a" * 64


def file(path: str) -> Entry:
    return Entry(path, Kind.FILE, SHA, 1)


def link(path: str, target: str) -> Entry:
    return Entry(path, Kind.LINK, target=target)


def why(*entries: Entry) -> tuple[str, str]:
    with pytest.raises(BadTree) as bad:
        Tree.of(entries)
    return bad.value.code, bad.value.path


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/"), min_size=1, max_size=20
)
PATHS = st.lists(NAMES.filter(lambda name: name not in {".", ".."}), min_size=1, max_size=3).map("/".join)


@given(
    st.lists(PATHS, unique=True, max_size=8).map(
        lambda paths: [one for one in paths if not any(other.startswith(f"{one}/") for other in paths)]
    )
)
def test_tree_dump_is_same_for_any_entry_order(paths: list[str]) -> None:
    tree = Tree.of(map(file, paths))
    assert Tree.of(map(file, reversed(paths))).dump() == tree.dump()
    assert Tree.load(json.loads(tree.dump())) == tree


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a/..", ".", "a/./b", "a//b", "a/"])
def test_tree_rejects_paths_outside_itself(path: str) -> None:
    assert why(file(path)) == ("path", path)


@pytest.mark.parametrize(
    "path", ["a\0b", "a\nb", "\x7f", "\udce9", "x" * 256, "中" * 86, "/".join(["xx"] * 700)]
)
def test_tree_rejects_names_invalid_for_file_systems(path: str) -> None:
    assert why(file(path)) == ("name", path)


def test_tree_accepts_names_in_any_script_or_differing_in_case() -> None:
    paths = ["训练/模型 一.py", "README", "readme", "données.txt", "back\\slash", "-rf", "~"]
    assert {entry.path for entry in Tree.of(map(file, paths)).entries} == set(paths)


def test_tree_rejects_duplicate_path_and_entry_below_file() -> None:
    assert why(file("a"), file("a")) == ("twice", "a")
    assert why(file("a"), file("a/b")) == ("below_a_file", "a")
    assert why(link("a", "b"), file("a/b/c")) == ("below_a_file", "a")
    assert len(Tree.of([Entry("a", Kind.FOLDER), file("a/b")]).entries) == 2


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../x", "sub/../../x", "up/.."])
def test_tree_rejects_links_leading_outside_through_other_links(target: str) -> None:
    assert why(link("here", target), link("up", "../.." if target == "up/.." else "sub")) in {
        ("link_out", "here"),
        ("link_out", "up"),
    }


def test_tree_resolves_nested_links_before_checking_target() -> None:
    down = link("one/two/three/short", "../../../flat")
    out = link("out", "one/two/three/short/../../x")
    assert why(down, out, file("flat/x")) == ("link_out", "out")
    inside = link("in", "one/two/three/short/x")
    assert inside in Tree.of([down, inside, file("flat/x")]).entries


def test_tree_accepts_circular_and_dangling_links() -> None:
    circle = [link("a", "b"), link("b", "a"), link("c", "nothing/there")]
    assert Tree.of(circle).entries == tuple(circle)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"format": 2, "entries": []},
        {"format": 1},
        {"format": 1, "entries": {}},
        {"format": 1, "entries": [], "more": 1},
        *(
            {"format": 1, "entries": [entry]}
            for entry in (
                "a",
                [],
                ["a"],
                ["a", "file"],
                ["a", "file", SHA, -1],
                ["a", "file", SHA, True],
                ["a", "file", "x", 1],
                ["a", "link"],
                ["a", "device", SHA, 1],
                ["a", "folder", ""],
                [1, "folder"],
            )
        ),
    ],
)
def test_tree_load_rejects_invalid_manifest(value: Any) -> None:
    with pytest.raises(BadTree):
        Tree.load(value)


def test_tree_addresses_are_found_in_code_and_mounts() -> None:
    assert tree_id_of(address(SHA)) == SHA
    assert (tree_id_of("upload://x"), tree_id_of("https://example.org/x.git")) == ("", None)
    spec = make_spec(
        code=CodeSource(id=address(SHA)),
        mounts=(Mount(uri="/data"), Mount(uri=address("b" * 64), purpose=MountPurpose.CODE)),
    )
    assert list(find_trees(spec)) == [("/code/id", SHA), ("/mounts/1/uri", "b" * 64)]
