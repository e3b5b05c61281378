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
def test_whatever_order_it_comes_in_a_tree_has_one_spelling(paths: list[str]) -> None:
    tree = Tree.of(map(file, paths))
    assert Tree.of(map(file, reversed(paths))).dump() == tree.dump()
    assert Tree.load(json.loads(tree.dump())) == tree


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a/..", ".", "a/./b", "a//b", "a/"])
def test_a_path_leads_through_the_tree_alone(path: str) -> None:
    assert why(file(path)) == ("path", path)


@pytest.mark.parametrize(
    "path", ["a\0b", "a\nb", "\x7f", "\udce9", "x" * 256, "中" * 86, "/".join(["xx"] * 700)]
)
def test_names_that_no_file_system_takes_are_refused(path: str) -> None:
    assert why(file(path)) == ("name", path)


def test_names_of_every_script_and_such_as_differ_in_case_alone_are_taken() -> None:
    paths = ["训练/模型 一.py", "README", "readme", "données.txt", "back\\slash", "-rf", "~"]
    assert {entry.path for entry in Tree.of(map(file, paths)).entries} == set(paths)


def test_each_path_is_there_once_and_nothing_lies_below_a_file() -> None:
    assert why(file("a"), file("a")) == ("twice", "a")
    assert why(file("a"), file("a/b")) == ("below_a_file", "a")
    assert why(link("a", "b"), file("a/b/c")) == ("below_a_file", "a")
    assert len(Tree.of([Entry("a", Kind.FOLDER), file("a/b")]).entries) == 2


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../x", "sub/../../x", "up/.."])
def test_links_lead_nowhere_outside_whatever_links_they_pass(target: str) -> None:
    assert why(link("here", target), link("up", "../.." if target == "up/.." else "sub")) in {
        ("link_out", "here"),
        ("link_out", "up"),
    }


def test_a_link_through_a_link_is_followed_before_it_is_believed() -> None:
    down = link("one/two/three/short", "../../../flat")
    out = link("out", "one/two/three/short/../../x")
    assert why(down, out, file("flat/x")) == ("link_out", "out")
    inside = link("in", "one/two/three/short/x")
    assert inside in Tree.of([down, inside, file("flat/x")]).entries


def test_links_in_a_circle_and_to_nothing_are_the_jobs_own_affair() -> None:
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
def test_what_is_no_list_of_files_is_refused(value: Any) -> None:
    with pytest.raises(BadTree):
        Tree.load(value)


def test_addresses_are_found_wherever_a_job_may_name_code() -> None:
    assert tree_id_of(address(SHA)) == SHA
    assert (tree_id_of("upload://x"), tree_id_of("https://example.org/x.git")) == ("", None)
    spec = make_spec(
        code=CodeSource(id=address(SHA)),
        mounts=(Mount(uri="/data"), Mount(uri=address("b" * 64), purpose=MountPurpose.CODE)),
    )
    assert list(find_trees(spec)) == [("/code/id", SHA), ("/mounts/1/uri", "b" * 64)]
