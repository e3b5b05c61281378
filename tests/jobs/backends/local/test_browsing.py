"""What lies in a job's folders, asked for as the file browser does: whole, as its user, and nothing else."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import threading
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.access.folders.client import FolderClient, FolderRefused, OpenFile
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.local.backend import LocalBackend
from jobs.backends.sessions import Barrier, NoEntry, SessionKind, SessionRequest
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.spec import Mount, MountPurpose, Resources
from tests import required
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.beside import folder_client
from tests.waiting import wait_for

MODES: dict[str, dict[str, Any]] = {
    "persons": {},
    "namespaces": {"isolation": Isolation.NAMESPACES},
    "none": {"isolation": Isolation.NONE},
}
REPLICA = ReplicaRef("worker", 0)


@pytest.fixture(params=MODES)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalBench]:
    if os.geteuid() != 0 and request.param == "persons":
        pytest.skip("user ids for every person need root")
    made = LocalBench(tmp_path, MODES[request.param])
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBench]:
    """The best isolation that there is here, with one agent for a job after the other."""
    made = LocalBench(tmp_path_factory.mktemp("bench"), {} if os.geteuid() == 0 else MODES["namespaces"])
    yield made
    made.close()


@pytest.fixture
def only(shared: LocalBench) -> Iterator[LocalBench]:
    """The shared bench; its jobs end with the test."""
    backend = shared.backend
    yield shared
    shared.backend = backend
    for handle in shared.handles():
        backend.stop(handle, grace_s=0, signal="KILL")
    for handle in shared.handles():
        wait_until_over(backend, handle)


@dataclass
class Answer:
    """Everything that was said: what was told, the bytes, and why nothing, or not all."""

    told: dict[str, Any] = field(default_factory=dict)
    data: bytes = b""
    trouble: str = "None"

    @property
    def whole(self) -> bool:
        return self.trouble == "None"

    def names(self) -> list[str]:
        return [row["name"] for row in self.told["rows"]]

    def zip(self) -> zipfile.ZipFile:
        assert self.whole
        found = zipfile.ZipFile(io.BytesIO(self.data))
        assert found.testzip() is None
        return found


@dataclass
class Job:
    """A running job whose folder can be asked about, and reached into from outside."""

    bench: LocalBench
    handle: Handle
    _open: FolderClient | None = field(default=None, init=False)

    @property
    def work(self) -> Path:
        return self.bench.attempt(self.handle) / "work/worker-0"

    def make(self, name: str) -> None:
        """An empty file of the job's user."""
        path = self.work / name
        path.touch()
        os.chown(path, self.work.stat().st_uid, self.work.stat().st_gid)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[FolderClient]:
        if self._open is not None:
            yield self._open
            return
        async with folder_client(self.bench, self.handle) as client:
            yield client

    @asynccontextmanager
    async def one_session(self) -> AsyncIterator[None]:
        """Ask everything in one session; nothing may stream in it but the last answer."""
        async with folder_client(self.bench, self.handle) as client:
            self._open = client
            try:
                yield
            finally:
                self._open = None

    async def ask(self, do: str, *names: str, root: str = "work", **more: Any) -> Answer:
        answer = Answer()
        try:
            async with self.client() as client:
                answer.told = {"live": client.live, "roots": client.roots}
                if do == "pack":
                    chosen, said = more.get("chosen", ()), more.get("said", {})
                    pieces = await asyncio.to_thread(client.archive, [root, *names], chosen, said)
                    answer.data = b"".join([piece async for piece in pieces])
                elif do == "look":
                    page = {"sort": "name", "offset": 0, "limit": 200, "down": False, **more}
                    found = await asyncio.to_thread(partial(client.look, [root, *names], **page))
                    await _take(client, found, answer)
                elif do == "read":
                    await _take(client, await asyncio.to_thread(client.open_file, [root, *names]), answer)
                else:
                    await asyncio.to_thread(partial(getattr(client, do), [root, *names], **more))
        except FolderRefused as shut:
            answer.trouble = shut.code
        return answer

    async def put(
        self, *names: str, body: Iterable[bytes], most: int = 1 << 30, replace: bool = False
    ) -> Answer:
        answer = Answer()
        try:
            async with self.client() as client:
                send = await asyncio.to_thread(partial(client.upload, ["work", *names], replace=replace))
                answer.told["size"] = await send(_sent(body), most)
        except FolderRefused as shut:
            answer.trouble = shut.code
        return answer

    async def trouble(self, do: str, *names: str, **more: Any) -> str:
        answer = await self.ask(do, *names, **more)
        assert not answer.data or answer.whole
        return answer.trouble

    def end(self) -> None:
        self.bench.backend.stop(self.handle, grace_s=0, signal="KILL")
        wait_until_over(self.bench.backend, self.handle)


async def _sent(body: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in body:
        yield piece


async def _take(client: FolderClient, found: Mapping[str, Any] | OpenFile, answer: Answer) -> None:
    if isinstance(found, OpenFile):
        answer.told |= {"size": found.size, "tag": found.tag}
        answer.data = b"".join([piece async for piece in client.download(found, 0, found.size)])
    else:
        answer.told |= found


def start(bench: LocalBench, command: str = ":", **more: Any) -> Job:
    line = f"{command}\necho up; exec sleep 600"
    room = Resources(cpu_milli=1000, memory_mib=512)
    handle = bench.backend.submit(bench.submission(role(line, resources=room), **more))
    wait_for(lambda: log_of(bench.backend, handle).endswith("up\n"))
    return Job(bench, handle)


def fill(folder: Path, count: int) -> None:
    """Files called 000001 and so on."""
    for number in range(1, count + 1):
        os.close(os.open(folder / f"{number:06}", os.O_CREAT, 0o644))


# --- what it is for ---------------------------------------------------------------------------------------


async def test_file_browser_lists_and_reads_during_and_after_job(bench: LocalBench) -> None:
    job = start(bench, "mkdir sub; echo hello > sub/x; touch a B .dot; ln -s sub/x l")
    for live in (True, False):
        answer = await job.ask("look")
        assert (answer.names(), answer.told["total"], answer.told["live"]) == (
            ["sub", ".dot", "a", "B", "l"],
            5,
            live,
        )
        assert [row["kind"] for row in answer.told["rows"]] == ["folder", "file", "file", "file", "link"]
        assert answer.told["rows"][-1]["target"] == "sub/x"
        assert answer.told["roots"][0] == {"name": "work", "label": "/job"}
        read = await job.ask("look", "sub", "x")
        assert (read.data, read.whole, read.told["size"]) == (b"hello\n", True, 6)
        if live:
            job.end()


async def test_file_browser_acts_as_job_user(bench: LocalBench) -> None:
    job = start(bench, "echo mine > mine; touch theirs closed; chmod 0 closed")
    if os.geteuid() == 0:
        (job.work / "theirs").chmod(0o600)
        os.chown(job.work / "theirs", 0, 0)
        expected = "denied" if MODES["persons"] == bench.settings else "None"
        assert await job.trouble("look", "theirs") == expected
    put = await job.put("new", body=[b"1", b"2"])
    assert put.told["size"] == 2
    assert (job.work / "new").stat().st_uid == job.work.stat().st_uid
    job.end()
    if os.geteuid() == 0 and not bench.settings:
        assert await job.trouble("look", "theirs") == "denied"
    assert await job.trouble("make_folder", "x") == "ended"
    assert await job.trouble("remove", names=["mine"]) == "ended"
    assert (job.work / "mine").exists()


async def test_partial_file_read_returns_range_and_changed_tag_after_rewrite(only: LocalBench) -> None:
    job = start(only, "printf 0123456789 > d")

    async def part(first: int, count: int) -> tuple[bytes, str]:
        async with job.client() as client:
            file = await asyncio.to_thread(client.open_file, ["work", "d"])
            data = await asyncio.to_thread(client.read, file, first, count)
            assert b"".join([piece async for piece in client.download(file, first, count)]) == data
            return data, file.tag

    found, tag = await part(2, 3)
    assert found == b"234"
    assert await part(8, 2) == (b"89", tag)
    assert (await part(10, 0))[0] == b""
    with pytest.raises(FolderRefused, match="changed"):
        await part(8, 3)
    (job.work / "d").write_bytes(b"9876543210")
    assert (await part(2, 3))[1] != tag


async def test_folder_listing_of_20000_files_is_paged(only: LocalBench) -> None:
    job = start(only, "mkdir big; printf 1 > big/000007")
    fill(job.work / "big", 20_000)
    async with job.one_session():
        first = await job.ask("look", "big", limit=3)
        assert (first.names(), first.told["total"]) == (["000001", "000002", "000003"], 20_000)
        last = await job.ask("look", "big", limit=3, offset=19_998)
        assert last.names() == ["019999", "020000"]
        assert (await job.ask("look", "big", limit=1, sort="size", down=True)).names() == ["000007"]
        assert (await job.ask("look", "big", limit=1, sort="name", down=True)).names() == ["020000"]


async def test_upload_is_atomic_and_replaces_files_only_on_request(only: LocalBench) -> None:
    job = start(only, "mkdir sub; echo old > old; chmod 640 old; ln -s /etc/hosts link")
    assert (await job.put("sub", "new", body=[b"a" * 70_000, b"b"])).told["size"] == 70_001
    assert (job.work / "sub/new").read_bytes() == b"a" * 70_000 + b"b"
    assert (await job.put("old", body=[b"x"])).trouble == "exists"
    assert (await job.put("old", body=[b"new"], replace=True)).told["size"] == 3
    assert ((job.work / "old").read_text(), (job.work / "old").stat().st_mode & 0o777) == ("new", 0o640)
    assert (await job.put("link", body=[b"x"], replace=True)).told["size"] == 1
    assert not (job.work / "link").is_symlink()
    assert (await job.put("sub", body=[b"x"], replace=True)).trouble == "is_folder"
    assert (await job.put("much", body=[b"x" * 11], most=10)).trouble == "too_large"
    assert sorted(path.name for path in job.work.iterdir()) == ["link", "old", "sub"]


async def test_interrupted_upload_leaves_no_file(only: LocalBench) -> None:
    job = start(only)

    def is_half_there() -> bool:
        return any(path.stat().st_size for path in job.work.glob(".half.upload-*"))

    async def half() -> AsyncIterator[bytes]:
        yield b"half"
        await asyncio.to_thread(wait_for, is_half_there)
        raise ConnectionError

    async with job.client() as client:
        send = await asyncio.to_thread(partial(client.upload, ["work", "half"], replace=False))
        with pytest.raises(FolderRefused, match="broke_off"):
            await send(half(), 99)
    wait_for(lambda: not list(job.work.iterdir()))


async def test_folders_are_created_and_entries_renamed_and_removed(only: LocalBench) -> None:
    job = start(only, "mkdir -p a/b/c; touch a/b/x taken")
    async with job.one_session():
        assert await job.trouble("make_folder", "a", "new") == "None"
        assert await job.trouble("make_folder", "a", "b") == "exists"
        assert await job.trouble("rename", "a", "new", to=["work", "a", "newer"]) == "None"
        assert await job.trouble("rename", "a", to=["work", "taken"]) == "exists"
        assert await job.trouble("rename", "taken", to=["work", "a"]) == "exists"
        assert await job.trouble("remove", names=["a", "nothing"]) == "absent"
    assert [path.name for path in job.work.iterdir()] == ["taken"]


async def test_output_mount_remains_root_after_job_and_shared_mount_does_not(
    only: LocalBench, place: Path
) -> None:
    named = SharedFolderRule.from_settings(str(place / "out"), {"workspaces": ["*"], "write": True})
    only.backend = LocalBackend(replace(only.config, folders=(named,)))
    mounts = (
        Mount(uri=f"file://{place}/out/mine", path="/out", purpose=MountPurpose.OUTPUT),
        Mount(uri=f"file://{place}/out", path="/lent"),
    )
    job = start(only, "echo result > /out/model; ls /lent", mounts=mounts)
    roots = (await job.ask("look")).told["roots"]
    assert [root["label"] for root in roots] == ["/job", "/out", "/lent", "/job-checkpoints"]
    assert (await job.ask("look", "model", root=roots[1]["name"])).data == b"result\n"
    job.end()
    left = (await job.ask("look")).told["roots"]
    assert [root["label"] for root in left] == ["/job", "/out", "/job-checkpoints"]
    assert (await job.ask("look", "model", root=left[1]["name"])).data == b"result\n"


async def test_output_in_working_folder_is_listed_as_root(bench: LocalBench) -> None:
    output = Mount(uri="$PAI_DEFAULT_FS_URI/Output/alice/x", purpose=MountPurpose.OUTPUT)
    job = start(bench, 'echo result > "$PAI_OUTPUT_DIR/model"', mounts=(output,))
    for live in (True, False):
        told = (await job.ask("look")).told
        assert [root["label"] for root in told["roots"][:2]] == ["/job", "/job/output"], live
        assert [root["label"].endswith("checkpoints") for root in told["roots"][2:]] == [True], live
        assert (await job.ask("look", "model", root=told["roots"][1]["name"])).data == b"result\n"
        if live:
            job.end()
    (job.work / "output").rename(job.work / "moved")
    (job.work / "output").symlink_to("/etc")
    assert "/job/output" not in [root["label"] for root in (await job.ask("look")).told["roots"]]


# --- zip --------------------------------------------------------------------------------------------------


async def test_folder_zip_has_stable_entry_order(only: LocalBench) -> None:
    job = start(
        only, "mkdir -p b/c; echo 1 > b/x; echo 2 > a; head -c 700000 /dev/urandom > b/c/r.pt; ln -s a l"
    )
    answer = await job.ask("pack", said={"link": "a link", "note": "left out.txt"})
    packed = answer.zip()
    assert packed.namelist() == ["a", "b/", "b/c/", "b/c/r.pt", "b/x", "left out.txt"]
    assert packed.read("b/c/r.pt") == (job.work / "b/c/r.pt").read_bytes()
    assert packed.read("left out.txt") == b"l\ta link\n"
    assert (await job.ask("pack")).data[:1000] == (await job.ask("pack")).data[:1000]
    chosen = (await job.ask("pack", "b", chosen=["x"])).zip()
    assert chosen.namelist() == ["x"]
    assert await job.trouble("pack", chosen=["nowhere"]) == "absent"


async def test_folder_zip_unpacks_with_unzip_program(only: LocalBench, tmp_path: Path) -> None:
    required.skip_without("unzip", "unzip")
    job = start(only, "mkdir '数据'; echo 中文 > '数据/文件 名.txt'")
    (tmp_path / "x.zip").write_bytes((await job.ask("pack")).data)
    unzip = ["unzip", "-q", "x.zip", "-d", "x"]
    subprocess.run(unzip, cwd=tmp_path, check=True, env={"LC_ALL": "C.UTF-8"})  # noqa: ASYNC221 nothing else runs
    assert (tmp_path / "x/数据/文件 名.txt").read_text() == "中文\n"


async def test_folder_zip_supports_more_than_65535_files(only: LocalBench) -> None:
    job = start(only)
    fill(job.work, 65_600)
    assert len((await job.ask("pack")).zip().namelist()) == 65_600


async def test_folder_zip_sanitizes_unsafe_entry_names(only: LocalBench) -> None:
    job = start(only)
    names = [rb"..\..\evil", b"C:evil", b"new\nline", b"bad\xff", "\u202egpj.exe".encode(), b"_", b"-rf"]
    for name in names:
        job.make(os.fsdecode(name))
    found = (await job.ask("pack")).zip().namelist()
    assert len(set(found)) == len(names)
    assert not any(set("\\:\n\u202e") & set(name) or name.startswith("/") for name in found)
    assert {"-rf", "new_line", "C_evil", ".._.._evil"} <= set(found)


# --- attacks ----------------------------------------------------------------------------------------------


INVALID = [("..",), ("sub", "..", ".."), (".",), ("",), ("/etc/passwd",), ("sub/x",), ("a\0b",), ("x" * 256,)]


async def test_file_browser_rejects_invalid_names(only: LocalBench) -> None:
    job = start(only, "mkdir sub; echo x > sub/x")
    async with job.one_session():
        for names in INVALID:
            for do in ("look", "read", "pack"):
                assert await job.trouble(do, *names) == "name", (do, names)
            name = names[-1]
            assert (await job.put(name, body=[b"x"])).trouble == "name", name
            assert await job.trouble("make_folder", name) == "name", name
            assert await job.trouble("rename", "sub", to=["work", name]) == "name", name
            assert await job.trouble("remove", names=[name]) == "name", name
            assert await job.trouble("pack", chosen=[name]) == "name", name
            assert await job.trouble("pack", chosen=["sub", name]) == "name", name
        assert await job.trouble("look", root="/etc") == "no_root"


async def test_file_browser_follows_no_links(bench: LocalBench) -> None:
    job = start(
        bench, "mkdir sub; ln -s /etc etc; ln -s /etc/passwd pw; ln -s .. sub/up; ln -s /proc/self/root r"
    )
    key = bench.home / "key"
    key.write_text("secret")
    (job.work / "key").symlink_to(key)
    links = [("pw",), ("key",), ("etc", "passwd"), ("sub", "up"), ("r", "etc", "passwd"), ("etc",)]
    for live in (True, False):
        async with job.one_session():
            for names in links:
                assert await job.trouble("look", *names) == "link", (live, names)
                assert await job.trouble("read", *names) == "link", (live, names)
            assert await job.trouble("pack", "etc") == "link"
            if live:
                assert (await job.put("etc", "new", body=[b"x"])).trouble == "link"
                assert await job.trouble("make_folder", "etc", "new") == "link"
            packed = (await job.ask("pack")).zip()
            assert packed.namelist() == ["sub/", "left-out.txt"]
        if live:
            job.end()


async def test_remove_deletes_links_but_not_their_targets(only: LocalBench) -> None:
    job = start(only, "mkdir a; echo kept > kept; ln -s ../kept a/l; ln -s .. a/up")
    assert await job.trouble("remove", names=["a"]) == "None"
    assert [path.name for path in job.work.iterdir()] == ["kept"]


async def test_hard_link_to_file_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("somebody else's file needs root")
    bench = LocalBench(tmp_path)
    try:
        job = start(bench, "echo own > own; ln own second")
        theirs = bench.home / "theirs"
        theirs.write_text("secret")
        theirs.chmod(0o644)
        os.link(theirs, job.work / "hard")
        assert await job.trouble("look", "hard") == "linked"
        assert await job.trouble("read", "hard") == "linked"
        assert (await job.ask("read", "second")).data == b"own\n"
        assert (await job.ask("pack")).zip().namelist() == ["own", "second", "left-out.txt"]
    finally:
        bench.close()


async def test_special_file_is_never_opened(only: LocalBench) -> None:
    wait = "python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.bind('sock')\""
    job = start(only, f"mkfifo pipe; {wait}; echo written > pipe && echo opened > seen &")
    names = ["pipe", "sock"]
    if os.geteuid() == 0:
        os.mknod(job.work / "null", 0o20666, os.makedev(1, 3))
        names.append("null")
    async with job.one_session():
        for name in names:
            assert await job.trouble("look", name) == "special"
            assert await job.trouble("read", name) == "special"
        assert (await job.ask("pack")).zip().namelist() == ["left-out.txt"]
    assert not (job.work / "seen").exists()


async def test_folder_replaced_by_link_during_read_leads_nowhere(only: LocalBench) -> None:
    job = start(only, "mkdir real; echo inside > real/x")
    outside = only.judge / "outside"
    outside.mkdir()
    (outside / "x").write_text("outside")
    (job.work / "swap").symlink_to(outside)
    stop = threading.Event()

    def swapping() -> None:
        real, swap, spare = (job.work / name for name in ("real", "swap", "spare"))
        while not stop.is_set():
            real.rename(spare)
            swap.rename(real)
            real.rename(swap)
            spare.rename(real)

    racer = threading.Thread(target=swapping)
    racer.start()
    try:
        async with job.one_session(), job.client() as client:
            for _ in range(100):
                with suppress(FolderRefused):
                    file = await asyncio.to_thread(client.open_file, ["work", "real", "x"])
                    assert await asyncio.to_thread(client.read, file, 0, file.size) == b"inside\n"
                    await asyncio.to_thread(client.close_file, file)
        for _ in range(5):
            for do in ("read", "look"):
                assert (await job.ask(do, "real", "x")).data in (b"", b"inside\n")
            packed = (await job.ask("pack")).zip()
            assert all(packed.read(name) != b"outside" for name in packed.namelist())
    finally:
        stop.set()
        racer.join()


async def test_folder_zip_tolerates_file_changing_size(only: LocalBench) -> None:
    job = start(only, "head -c 60000000 /dev/zero > f.pt")
    file = job.work / "f.pt"
    answer = await _in_two(job, lambda: os.truncate(file, 30_000_000))
    packed = answer.zip()
    assert packed.getinfo("f.pt").file_size == 30_000_000
    assert packed.read("left-out.txt") == b"f.pt\tchanged\n"
    grown = await _in_two(job, lambda: os.truncate(file, 90_000_000))
    assert grown.zip().getinfo("f.pt").file_size == 30_000_000


async def _in_two(job: Job, meanwhile: Callable[[], None]) -> Answer:
    """A zip of everything, of which nothing more is read until `meanwhile` has been done."""
    async with job.client() as client:
        return await _broken_in_two(await asyncio.to_thread(client.archive, ["work"], (), {}), meanwhile)


async def _broken_in_two(pieces: AsyncIterator[bytes], meanwhile: Callable[[], None]) -> Answer:
    answer = Answer(data=await anext(pieces))
    meanwhile()
    try:
        answer.data += b"".join([piece async for piece in pieces])
    except FolderRefused as shut:
        answer.trouble = shut.code
    return answer


async def test_download_of_shrinking_file_reports_change(only: LocalBench) -> None:
    job = start(only, "head -c 60000000 /dev/zero > f")
    async with job.client() as client:
        file = await asyncio.to_thread(client.open_file, ["work", "f"])
        pieces = client.download(file, 0, file.size)
        answer = await _broken_in_two(pieces, lambda: os.truncate(job.work / "f", 10_000_000))
    assert answer.trouble == "changed"


async def test_file_names_preserve_raw_bytes(only: LocalBench) -> None:
    job = start(
        only, "printf x > \"$(printf 'bad\\377')\"; printf y > \"$(printf 'new\\nline')\"; printf z > 中文"
    )
    found = (await job.ask("look")).names()
    assert found == ["bad\udcff", "new\nline", "中文"]
    assert [(await job.ask("read", name)).data for name in found] == [b"x", b"y", b"z"]


async def test_removed_folder_and_unstarted_replica_are_distinguished(only: LocalBench) -> None:
    waiting = only.backend.submit(only.submission(role("exec sleep 600")))
    job = start(only)
    job.end()
    only.backend.forget(job.handle)
    with pytest.raises(NoEntry) as gone:
        await job.ask("look")
    assert gone.value.barrier is Barrier.GONE
    with pytest.raises(NoEntry) as absent:
        await only.backend.exec(waiting, ReplicaRef("worker", 9), SessionRequest(SessionKind.FOLDERS))
    assert absent.value.barrier is Barrier.NOT_RUNNING
