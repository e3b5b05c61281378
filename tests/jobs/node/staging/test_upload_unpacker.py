"""Uploaded code in a replica's own folder: laid in by the job's user, whatever the tree says."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Observation, Refused
from jobs.backends.local.backend import LocalBackend
from jobs.node import files as on_disk
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import upload_unpacker
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan
from jobs.spec import CodeSource, Mount, MountPurpose
from jobs.states import ReasonCode, State
from jobs.trees import Entry, Kind, Supplied, Tree, address
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over

FILES = {"train.py": b"print('hello')\n", "pkg/deep/er/x.txt": b"deep\n", "包/模块 一.py": "你好\n".encode()}


@pytest.fixture(params=["best", "none"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path, {"isolation": Isolation.NONE if request.param == "none" else None})
    yield made
    made.close()


def supply(bench: LocalBench, entries: list[Entry], contents: Mapping[str, bytes]) -> Supplied:
    """What the console has of a tree: all of its contents in one file, that only the console may read."""
    store = bench.home / f"pack-{secrets.token_hex(4)}"
    where = {}
    with store.open("wb") as file:
        for data in contents.values():
            where[hashlib.sha256(data).hexdigest()] = (str(store), file.tell())
            file.write(data)
    store.chmod(0o600)
    tree = Tree(tuple(entries))
    return Supplied(tree.size, tree, where)


def files(contents: Mapping[str, bytes]) -> list[Entry]:
    return [
        Entry(path, Kind.FILE, hashlib.sha256(data).hexdigest(), len(data)) for path, data in contents.items()
    ]


def of_files(bench: LocalBench, contents: Mapping[str, bytes], *more: Entry) -> Supplied:
    tree = Tree.of([*files(contents), *more])
    return supply(bench, list(tree.entries), contents)


def run(
    bench: LocalBench, command: str, supplied: Supplied, path: str = "", trouble: str = "", **spec: Any
) -> tuple[Observation, str]:
    tree = supplied.tree.id
    spec = {"code": CodeSource(uri=address(tree), path=path), **spec}
    handle = bench.backend.submit(bench.submission(role(command), uploads={tree: supplied}, **spec))
    seen = wait_until_over(bench.backend, handle, 300)
    assert (bench.attempt(handle) / "supervisor.log").read_text() == trouble
    return seen, log_of(bench.backend, handle)


def test_upload_fills_working_folder_owned_by_job(bench: LocalBench) -> None:
    data = b"#!/bin/sh\necho ran\n"
    program = Entry("run.sh", Kind.PROGRAM, hashlib.sha256(data).hexdigest(), len(data))
    more = (program, Entry("last", Kind.LINK, target="pkg/deep"), Entry("empty", Kind.FOLDER))
    tree = Tree.of([*files(FILES), *more])
    supplied = supply(bench, list(tree.entries), {**FILES, "run.sh": data})
    command = (
        "cat train.py last/er/x.txt 包/*; ./run.sh; ls -d empty; echo x >> train.py; stat -c %u run.sh; id -u"
    )
    seen, log = run(bench, command, supplied)
    lines = log.splitlines()
    assert (seen.state, lines[:5]) == (State.SUCCEEDED, ["print('hello')", "deep", "你好", "ran", "empty"])
    assert lines[5] == lines[6]


@pytest.mark.parametrize(("path", "found"), [("src", "src"), ("/job/src/", "/job/src"), ("/job", ".")])
def test_upload_goes_to_place_named_by_job(bench: LocalBench, path: str, found: str) -> None:
    seen, log = run(bench, f"cat {found.removeprefix('/job/')}/train.py", of_files(bench, FILES), path)
    assert (seen.state, log) == (State.SUCCEEDED, "print('hello')\n")


def test_upload_as_code_mount_sets_code_dir_variable(bench: LocalBench) -> None:
    supplied = of_files(bench, FILES)
    mount = Mount(uri=address(supplied.tree.id), purpose=MountPurpose.CODE, read_only=True)
    seen, log = run(bench, "cat $PAI_CODE_DIR/train.py train.py", supplied, code=None, mounts=(mount,))
    assert (seen.state, log) == (State.SUCCEEDED, "print('hello')\n" * 2)


def test_upload_address_may_be_code_source_id(bench: LocalBench) -> None:
    supplied = of_files(bench, FILES)
    seen, _ = run(bench, "test -f train.py", supplied, code=CodeSource(id=address(supplied.tree.id)))
    assert seen.state is State.SUCCEEDED


def test_upload_keeps_names_differing_only_in_case(bench: LocalBench) -> None:
    seen, log = run(bench, "cat README readme", of_files(bench, {"README": b"A\n", "readme": b"b\n"}))
    assert (seen.state, log) == (State.SUCCEEDED, "A\nb\n")


HOSTILE: dict[str, list[tuple[str, str | None]]] = {
    "a step up": [("../../escaped", None)],
    "far up": [("/".join([".."] * 20) + "/tmp/escaped", None)],
    "absolute": [("/escaped", None)],
    "through a link": [("out", ".."), ("out/escaped", None)],
    "through an absolute link": [("out", "/"), ("out/escaped", None)],
    "over a link": [("here", "/escaped"), ("here", None)],
    "a folder that is a link": [("a/b", ".."), ("a/b/escaped", None)],
}


@pytest.mark.parametrize("how", HOSTILE)
def test_upload_of_unchecked_hostile_tree_fails_replica(bench: LocalBench, how: str) -> None:
    """The check of a tree is the first wall; this is what stands behind it."""
    data = b"escaped\n"
    digest = hashlib.sha256(data).hexdigest()
    entries = [
        Entry(path, Kind.LINK, target=target) if target else Entry(path, Kind.FILE, digest, len(data))
        for path, target in HOSTILE[how]
    ]
    seen, _log = run(bench, "true", supply(bench, entries, {"x": data}))
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.CODE_FAILED)
    assert not list(bench.folder.rglob("escaped"))
    assert not Path("/escaped").exists()
    assert not Path("/tmp/escaped").exists()


def test_upload_with_altered_content_fails_replica(bench: LocalBench) -> None:
    supplied = of_files(bench, FILES)
    store = Path(next(iter(supplied.where.values()))[0])
    store.write_bytes(store.read_bytes().replace(b"hello", b"HELLO"))
    seen, _ = run(bench, "true", supplied)
    assert seen.reason.code is ReasonCode.CODE_FAILED
    assert "train.py: not what was uploaded" in str(seen.reason.params["error"])
    store.write_bytes(b"")
    seen, _ = run(bench, "true", supplied, trouble="uploaded content is cut short\n")
    assert seen.reason.code is ReasonCode.CODE_FAILED


def test_upload_of_twenty_thousand_files_is_unpacked(bench: LocalBench) -> None:
    data = b"x\n"
    digest = hashlib.sha256(data).hexdigest()
    tree = Tree.of(Entry(f"{n % 100}/{n}", Kind.FILE, digest, 2) for n in range(20_000))
    seen, log = run(bench, "find . -type f | wc -l", supply(bench, list(tree.entries), {"x": data}))
    assert (seen.state, log.strip()) == (State.SUCCEEDED, "20000")


def test_upload_store_and_note_are_invisible_to_job(local: LocalBench) -> None:
    supplied = of_files(local, FILES)
    store = next(iter(supplied.where.values()))[0]
    command = f"cat {store} || cat {local.home}/jobs/*/*/trees/* || ls /proc/self/fd; true"
    _seen, log = run(local, command, supplied)
    assert "hello" not in log
    assert "pack" not in log.replace(store, "")


def test_upload_over_size_limit_is_rejected(bench: LocalBench) -> None:
    large = Supplied(3 << 30)
    with pytest.raises(Refused) as refused:
        run(bench, "true", large)
    assert refused.value.reason.params["why"] == "code_too_large"


def test_upload_preview_shows_mounts_without_files(bench: LocalBench) -> None:
    supplied = Supplied(5)
    uploads = {supplied.tree.id: supplied}
    mount = Mount(uri=address(supplied.tree.id), purpose=MountPurpose.CODE, path="/src")
    if bench.config.isolation is not Isolation.NONE:
        sent = bench.backend.render(bench.submission(role("true"), uploads=uploads, mounts=(mount,)))
        assert "/src" in [place for place, _source, _read_only in sent.roles[0].mounts]
    sent = bench.backend.render(
        bench.submission(role("true"), uploads=uploads, code=CodeSource(uri=address(supplied.tree.id)))
    )
    assert ("/job", address(supplied.tree.id), False) in sent.roles[0].mounts


def test_upload_never_supplied_is_rejected(bench: LocalBench) -> None:
    for code in (address("a" * 64), "upload://x"):
        with pytest.raises(Refused) as refused:
            bench.backend.submit(bench.submission(code=CodeSource(uri=code)))
        assert refused.value.reason.params == {"why": "code_no_upload", "place": code}


def test_uploads_sharing_the_working_folder_are_rejected(bench: LocalBench) -> None:
    supplied = of_files(bench, FILES)
    mount = Mount(uri=address(supplied.tree.id), purpose=MountPurpose.CODE)
    with pytest.raises(Refused) as refused:
        run(bench, "true", supplied, mounts=(mount,))
    assert refused.value.reason.params == {"why": "mount_twice", "path": "/job"}


def test_upload_interrupted_by_wrapper_death_restarts_cleanly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    bench = LocalBench(tmp_path)
    try:
        supplied = of_files(bench, {f"{n:05}": b"%d" % n for n in range(20_000)})
        tree = supplied.tree.id
        submission = bench.submission(
            role("ls | wc -l"), uploads={tree: supplied}, code=CodeSource(uri=address(tree))
        )
        handle = bench.backend.submit(submission)
        deadline = time.monotonic() + 60
        work = bench.attempt(handle) / "work" / "worker-0"
        while not (work.exists() and any(work.iterdir())):
            assert time.monotonic() < deadline
        for pid in bench.processes("jc-wrapper"):
            with suppress(ProcessLookupError):  # the first of them took it along
                os.kill(pid, signal.SIGKILL)
        seen = wait_until_over(bench.backend, handle, 300)
        assert (seen.state, log_of(bench.backend, handle).strip()) == (State.SUCCEEDED, "20000")
    finally:
        bench.close()


def test_plan_format_with_trees_is_used_only_for_uploads(bench: LocalBench) -> None:
    supplied = of_files(bench, FILES)
    tree = supplied.tree.id
    backend = LocalBackend(replace(bench.config, network="host"))  # an own network has a later format
    for uploads, number in (
        ({tree: supplied}, layout.FORMAT_WITH_TREES),
        ({}, layout.FORMAT_WITH_PROVISIONS),
    ):
        code = CodeSource(uri=address(tree)) if uploads else None
        handle = backend.submit(bench.submission(role("true"), uploads=uploads, code=code))
        wait_until_over(backend, handle)
        plan = on_disk.read(bench.attempt(handle) / layout.PLAN) or {}
        assert plan["format"] == number
        assert len(Plan.load(plan).codes) == len(uploads)


def test_upload_notes_are_private_to_console(bench: LocalBench) -> None:
    supplied = of_files(bench, FILES)
    bench.home.joinpath("a").mkdir()
    upload_unpacker.write_notes(bench.home / "a", {supplied.tree.id: supplied})
    found = upload_unpacker.note(bench.home / "a", supplied.tree.id)
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert len(found.read_text().splitlines()) == len(FILES)
