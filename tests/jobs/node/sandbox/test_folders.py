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


def test_unlisted_folder_is_not_granted() -> None:
    assert folders({}).grant("/data", ALICE) is None
    assert folders({"/data": {}}).grant("/data", ALICE) is None
    assert folders({"/data": {"workspaces": ["speech"]}}).grant("/data", ALICE) is None
    assert folders({"/data": ALL}).grant("/database", ALICE) is None
    assert folders({"/data/sets": ALL}).grant("/data", ALICE) is None


def test_listed_folder_is_granted_read_only_unless_writable() -> None:
    named = folders({"/data": {"workspaces": ["vision"]}, "/out": {"workspaces": ["*"], "write": True}})
    assert named.grant("/data//sets/./x/", ALICE) == FolderGrant("/data/sets/x", write=False, steady=False)
    assert named.grant("/data", ALICE) == FolderGrant("/data", write=False, steady=True)
    assert named.grant("/out", ALICE) == FolderGrant("/out", write=True, steady=True)


def test_folder_grant_follows_most_specific_rule_even_for_its_parent() -> None:
    named = folders({"/data": {**ALL, "write": True}, "/data/secret": {"workspaces": ["speech"]}})
    assert named.grant("/data/secret/x", ALICE) is None
    assert named.grant("/data", ALICE) is None
    assert named.grant("/data/open", ALICE) == FolderGrant("/data/open", write=True, steady=False)
    assert named.grant("/data", Requester("speech", "bob")) == FolderGrant("/data", write=False, steady=True)


def test_per_user_folder_is_denied_to_other_users() -> None:
    named = folders({"/home/{user}/work": {**ALL, "write": True}})
    assert named.grant("/home/alice/work/run", ALICE) == FolderGrant(
        "/home/alice/work/run", write=True, steady=False
    )
    for path in ("/home/bob/work", "/home/bob", "/home/alice", "/home", "/home/alice/../bob/work"):
        assert named.grant(path, ALICE) is None, path
    assert named.grant("/home/../work", Requester("vision", "..")) is None


def test_folder_inside_writable_folder_is_not_steady() -> None:
    named = folders({"/data": {**ALL, "write": True}, "/data/sets": ALL, "/more": ALL, "/more/x": ALL})
    found = [named.grant(path, ALICE) for path in ("/data/sets", "/more/x")]
    assert [grant.steady for grant in found if grant] == [False, True]


def test_folder_links_are_resolved_in_rules_but_not_in_requests(tmp_path: Path) -> None:
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


def test_system_folders_and_their_parents_are_never_granted(tmp_path: Path) -> None:
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
def test_folder_rule_rejects_invalid_settings(path: str, said: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="folders"):
        SharedFolderRule.from_settings(path, said)


NAMES = st.sampled_from(["data", "a", "b", "..", ".", "", "{user}", "alice", "bob", "etc", "x\0y"])
PATHS = st.lists(NAMES, max_size=5).map(lambda names: "/" + "/".join(names))


@given(st.dictionaries(PATHS, st.booleans(), max_size=4), PATHS)
def test_folder_grant_always_lies_within_a_listed_folder(said: dict[str, bool], path: str) -> None:
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
