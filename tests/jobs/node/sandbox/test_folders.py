"""Which folders of a machine jobs may use, by an admin's word alone."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.node.sandbox.folders import NEVER, FolderGrant, Folders, Requester, SharedFolderRule, parts_of

ALICE = Requester("vision", "alice")
ALL = {"workspaces": ["*"]}


def folders(said: dict[str, dict[str, Any]], *hidden: str) -> Folders:
    return Folders((SharedFolderRule.from_settings(path, more) for path, more in said.items()), hidden)


def test_nothing_is_granted_that_is_not_named() -> None:
    assert folders({}).grant("/data", ALICE) is None
    assert folders({"/data": {}}).grant("/data", ALICE) is None
    assert folders({"/data": {"workspaces": ["speech"]}}).grant("/data", ALICE) is None
    assert folders({"/data": ALL}).grant("/database", ALICE) is None
    assert folders({"/data/sets": ALL}).grant("/data", ALICE) is None


def test_a_named_folder_and_what_is_in_it_is_granted_for_reading_unless_more_is_said() -> None:
    named = folders({"/data": {"workspaces": ["vision"]}, "/out": {"workspaces": ["*"], "write": True}})
    assert named.grant("/data//sets/./x/", ALICE) == FolderGrant("/data/sets/x", write=False, steady=False)
    assert named.grant("/data", ALICE) == FolderGrant("/data", write=False, steady=True)
    assert named.grant("/out", ALICE) == FolderGrant("/out", write=True, steady=True)


def test_the_most_specific_folder_decides_and_is_not_had_by_asking_for_the_one_around_it() -> None:
    named = folders({"/data": {**ALL, "write": True}, "/data/secret": {"workspaces": ["speech"]}})
    assert named.grant("/data/secret/x", ALICE) is None
    assert named.grant("/data", ALICE) is None
    assert named.grant("/data/open", ALICE) == FolderGrant("/data/open", write=True, steady=False)
    assert named.grant("/data", Requester("speech", "bob")) == FolderGrant("/data", write=False, steady=True)


def test_a_folder_for_each_person_is_nobody_elses() -> None:
    named = folders({"/home/{user}/work": {**ALL, "write": True}})
    assert named.grant("/home/alice/work/run", ALICE) == FolderGrant(
        "/home/alice/work/run", write=True, steady=False
    )
    for path in ("/home/bob/work", "/home/bob", "/home/alice", "/home", "/home/alice/../bob/work"):
        assert named.grant(path, ALICE) is None, path
    assert named.grant("/home/../work", Requester("vision", "..")) is None


def test_a_folder_inside_one_that_may_be_written_to_is_not_steady() -> None:
    named = folders({"/data": {**ALL, "write": True}, "/data/sets": ALL, "/more": ALL, "/more/x": ALL})
    found = [named.grant(path, ALICE) for path in ("/data/sets", "/more/x")]
    assert [grant.steady for grant in found if grant] == [False, True]


def test_links_in_the_names_are_followed_once_by_us_and_never_by_who_asks(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "secret").mkdir(parents=True)
    (tmp_path / "data").symlink_to(disk)
    (tmp_path / "everything").symlink_to("/")
    named = folders(
        {
            str(tmp_path / "data"): ALL,
            str(disk / "secret"): {"workspaces": ["speech"]},
            str(tmp_path / "everything"): ALL,
        }
    )
    assert named.grant(str(tmp_path / "data/x"), ALICE) == FolderGrant(
        str(disk / "x"), write=False, steady=False
    )
    assert named.grant(str(tmp_path / "data/secret"), ALICE) is None
    assert named.grant(str(tmp_path / "everything/home"), ALICE) is None
    assert named.grant("/home", ALICE) is None


def test_what_makes_the_machine_is_never_granted_nor_what_is_around_it(tmp_path: Path) -> None:
    everywhere = {str(path): ALL for path in (*Path("/").iterdir(), *NEVER)}
    named = folders(everywhere, str(tmp_path / "console"))
    for path in (
        *NEVER,
        "/",
        "/var/lib",
        "/proc/self/root",
        "/run/docker.sock",
        "/etc/ssh",
        str(tmp_path / "console"),
        str(tmp_path / "console/keys"),
        str(tmp_path),
    ):
        assert named.grant(path, ALICE) is None, path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("data", ALL),
        ("/", ALL),
        ("/data/../etc", ALL),
        ("/{user}", ALL),
        ("/data", {"workspaces": "vision"}),
        ("/data", {"workspace": ["vision"]}),
    ],
)
def test_settings_that_make_no_sense_are_not_guessed_at(path: str, said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="folders"):
        SharedFolderRule.from_settings(path, said)


NAMES = st.sampled_from(["data", "a", "b", "..", ".", "", "{user}", "alice", "bob", "etc", "x\0y"])
PATHS = st.lists(NAMES, max_size=5).map(lambda names: "/" + "/".join(names))


@given(st.dictionaries(PATHS, st.booleans(), max_size=4), PATHS)
def test_whatever_is_asked_for_lies_in_a_named_folder(said: dict[str, bool], path: str) -> None:
    named = []
    for folder, write in said.items():
        try:
            named.append(SharedFolderRule.from_settings(folder, {**ALL, "write": write}))
        except ValueError:
            continue
    granted = Folders(named).grant(path, ALICE)
    if granted is None:
        return
    parts = parts_of(granted.path)
    assert ".." not in parts
    mine = [tuple(part.replace("{user}", "alice") for part in one.parts) for one in named]
    around = [one for one, parts_ in zip(named, mine, strict=True) if parts[: len(parts_)] == parts_]
    assert around
    assert not granted.write or any(one.write for one in around)
