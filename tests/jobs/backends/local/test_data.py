"""Data that is there before the command and taken back after it, by the job's own user.

The object store is moto's server, which speaks S3's own wire; the web is a server of this test.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.backends.base import Observation, Person, Refused
from jobs.backends.local.machine import detect_isolation
from jobs.backends.staging import remotes
from jobs.data_mover import guard, main
from jobs.facilities import StorageMapping
from jobs.messages import reason_message
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import data_transfer
from jobs.spec import CodeSource, Mount, MountPurpose, Resources
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.local.buckets import Store, bucket

__all__ = ["bucket"]

ROOM = Resources(cpu_milli=1000, memory_mib=512)
LOGIN = "AKIATEST:$SECRET:key"


@pytest.fixture(params=["best", "none"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, bucket: Store) -> Iterator[LocalBench]:
    mode = {"best": None, "none": Isolation.NONE}[request.param]
    settings = {"isolation": mode, "data_from": ("s3://*", "oss://*"), "data_inside": (bucket.host,)}
    made = LocalBench(tmp_path, settings)
    yield made
    made.close()


def place(bucket: Store, folder: str, path: str, scheme: str = "s3", **more: Any) -> Mount:
    options = {"endpoint": bucket.endpoint}
    return Mount(uri=f"{scheme}://{LOGIN}@sets/{folder}", path=path, options=options, **more)


def run(bench: LocalBench, command: str, *mounts: Mount, **more: Any) -> tuple[Observation, list[str]]:
    secrets = {"secrets": {"key": "s3cretkey"}, **more}
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM), mounts=mounts, **secrets))
    seen = wait_until_over(bench.backend, handle, timeout=90)
    assert (bench.attempt(handle) / "supervisor.log").read_text() == ""
    for path in bench.config.root.rglob("*"):
        assert not path.is_file() or b"s3cretkey" not in path.read_bytes(), path
    return seen, log_of(bench.backend, handle).splitlines()


# --- what a job sees -------------------------------------------------------------------------------------


def test_data_mount_is_fetched_for_job_and_changes_are_written_back(bench: LocalBench, bucket: Store) -> None:
    bucket.put_at("in/one.txt", "one\n")
    bucket.put_at("in/sub/two.txt", "two\n")
    bucket.put_at("inner/no.txt", "no\n")
    bucket.put_at("both/kept.txt", "kept\n")
    bucket.put_at("both/old.txt", "old\n")
    command = (
        "cat in/one.txt in/sub/two.txt; ls in; at=$(stat -c %Y both/old.txt); echo new > both/old.txt; "
        "touch -d @$at.5 both/old.txt; mkdir both/x; echo more > both/x/y;"  # changed within the same second
        "ln -s /etc/passwd both/link; echo out > out/result; env | grep -c -e s3c[r]etkey -e AKIATEST"
    )
    mounts = (
        place(bucket, "in/", "/job/in", scheme="oss", read_only=True),
        place(bucket, "both", "/job/both"),
        place(bucket, "out/", "/job/out", purpose=MountPurpose.OUTPUT),
    )
    _, lines = run(bench, command, *mounts)
    assert lines[:2] == ["oss://sets/in/: 2 files, 8 B", "s3://sets/both: 2 files, 9 B"]
    assert lines[2:7] == ["one", "two", "one.txt", "sub", "0"]
    assert lines[7:] == ["back to s3://sets/both: 2 files, 9 B", "back to s3://sets/out/: 1 files, 4 B"]
    assert bucket.read("both/old.txt") == "new\n"
    assert bucket.read("both/x/y") == "more\n"
    assert bucket.read("out/result") == "out\n"
    assert sorted(bucket.keys()) == [
        *("both/kept.txt", "both/old.txt", "both/x/y"),
        *("in/one.txt", "in/sub/two.txt", "inner/no.txt", "out/result"),
    ]


def test_mapped_address_is_copied_with_keys_of_settings(tmp_path: Path, bucket: Store) -> None:
    store: dict[str, Any] = {"endpoint": bucket.endpoint, "access_key": "AKIATEST", "secret_key": "s3cretkey"}
    storage = {
        "oss://vendor.oss-cn-beijing.aliyuncs.com": StorageMapping(bucket="s3://sets/team", **store),
        "oss://vendor.oss-cn-beijing.aliyuncs.com/public": StorageMapping(
            bucket="s3://sets/public", read_only=True, **store
        ),
    }
    bench = LocalBench(tmp_path, storage=storage)
    bucket.put_at("team/in/one.txt", "one\n")
    bucket.put_at("public/two.txt", "two\n")
    host = "oss://vendor.oss-cn-beijing.aliyuncs.com"
    mounts = (
        Mount(uri=f"{host}/in/", path="/job/in"),
        Mount(uri=f"{host}/public/", path="/job/public"),
        Mount(uri=f"{host}/out", path="/job/out", purpose=MountPurpose.OUTPUT),
    )
    bucket.put_at("team/tool/say", "echo said\n")
    command = (
        "cat in/one.txt public/two.txt; echo new > in/new; (echo x > public/x) 2>/dev/null;"
        "sh tool/say; echo out > out/result; env | grep -c -e s3c[r]etkey -e AKIATEST || true"
    )
    seen, lines = run(bench, command, *mounts, secrets={}, code=CodeSource(uri=f"{host}/tool"))
    assert seen.state is State.SUCCEEDED, lines
    fetched = [f"{host}/in/: 1 files, 4 B", f"{host}/public/: 1 files, 4 B", f"{host}/tool: 1 files, 10 B"]
    assert lines[:7] == [*fetched, "one", "two", "said", "0"]
    assert bucket.read("team/in/new") == "new\n"
    assert bucket.read("team/out/result") == "out\n"
    assert "public/x" not in list(bucket.keys())
    with pytest.raises(Refused):
        bench.backend.submit(bench.submission(mounts=(Mount(uri=f"{host}/../x", path="/job/in"),)))
    bench.close()


def test_read_only_data_is_write_protected_and_served_from_cache(tmp_path: Path, bucket: Store) -> None:
    if detect_isolation(sys.executable) is Isolation.NONE:
        pytest.skip("nothing keeps a folder read-only here")
    bench = LocalBench(tmp_path, {"data_from": ("s3://*",), "data_inside": (bucket.host,)})
    bucket.put_at("in/one.txt", "one\n")
    mount = place(bucket, "in/", "/mnt/in", read_only=True)
    command = "touch /mnt/in/x || echo shut; cat /mnt/in/one.txt; ls -A /job-console/cache | wc -l"
    told = []
    for person in (Person("alice", 7), Person("alice", 7), Person("bob", 8)):
        seen, lines = run(bench, command, mount, person=person)
        assert seen.state is State.SUCCEEDED, lines
        assert lines[-3:] == ["shut", "one", "0"], "the command finds no cache"
        told.append(lines[0])
    usual = "s3://sets/in/: 1 files, 4 B"
    assert told == [usual, f"{usual}, 1 of them as they were fetched before", usual]
    for number in (7, 8):
        folder = bench.home / "cache" / str(number)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.stat().st_uid == bench.config.uid_of(number, bench.backend.isolation())
    bucket.put_at("in/one.txt", "two\n")
    assert run(bench, command, mount)[1][-2] == "two", "the store's own tag has changed"
    bench.close()


def test_failed_data_fetch_fails_job_with_library_error(bench: LocalBench, bucket: Store) -> None:
    seen, lines = run(
        bench, "echo ran", place(bucket, "x", "/job/in").model_copy(update={"uri": f"s3://{LOGIN}@absent/x"})
    )
    assert seen.reason.code is ReasonCode.MOUNT_FAILED
    assert "ran" not in lines
    assert "NoSuchBucket" in lines[0] or "does not exist" in lines[0]
    told = reason_message(seen.reason.code, seen.reason.params)
    assert told.startswith("A mount of replica worker-0 could not be used: ")


def test_data_above_size_limit_is_not_fetched(tmp_path: Path, bucket: Store) -> None:
    settings = {"data_from": ("s3://*",), "data_inside": (bucket.host,), "data_mib": 1}
    bench = LocalBench(tmp_path, settings)
    bucket.put_at("in/large", b"x" * ((1 << 20) + 1))
    seen, lines = run(bench, "echo ran", place(bucket, "in/", "/job/in"))
    assert seen.reason.code is ReasonCode.MOUNT_FAILED
    assert lines == ["s3://sets/in/: it is 1 MiB, and may be 1 MiB"]
    bench.close()


def test_internal_data_store_is_refused_unless_allowed_by_name(tmp_path: Path, bucket: Store) -> None:
    bench = LocalBench(tmp_path, {"data_from": ("s3://*",)})
    seen, lines = run(bench, "echo ran", place(bucket, "in/", "/job/in"))
    assert seen.reason.code is ReasonCode.MOUNT_FAILED
    assert "is inside a network and not allowed here" in lines[0]
    bench.close()


@pytest.mark.parametrize(
    "uri",
    [
        *("simplecache::s3://sets/x", "s3://sets/x::file:///etc/passwd", "ftp://example.org/x"),
        *("s3://sets/../x", "https://sets/x", "oss://other/x", "s3://sets/a?versionId=1", "github://a:b@c/x"),
    ],
)
def test_data_from_disallowed_address_is_refused(tmp_path: Path, uri: str) -> None:
    bench = LocalBench(tmp_path, {"data_from": ("s3://*", "oss://sets")})
    with pytest.raises(Refused) as caught:
        bench.backend.submit(bench.submission(mounts=(Mount(uri=uri, path="/job/in"),)))
    assert caught.value.reason.params["why"] == "mount_elsewhere"
    bench.close()


def test_check_inspects_data_without_fetching(bench: LocalBench, bucket: Store) -> None:
    bucket.put_at("in/one.txt", "one\n")
    submission = bench.submission(
        role("ls -A /job/in in 2>/dev/null | grep one", resources=ROOM),
        mounts=(place(bucket, "in/", "/job/in"),),
        secrets={"key": "s3cretkey"},
    )
    handle = bench.backend.submit(replace(submission, is_check=True))
    wait_until_over(bench.backend, handle, timeout=60)
    lines = log_of(bench.backend, handle).splitlines()
    assert [" ".join(line.split()) for line in lines] == ["4 B one.txt", "s3://sets/in/: 1 files, 4 B"]


# --- the web ---------------------------------------------------------------------------------------------


class Web(BaseHTTPRequestHandler):
    """`/file` is one; `/to/<address>` leads there."""

    asked: list[tuple[str, str | None]]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.send_header("ETag", '"1"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(b"text\n")

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def web() -> Iterator[tuple[str, type[Web]]]:
    handler = type("Handler", (Web,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}", handler
        served.shutdown()
        thread.join()


REFUSALS = ("is inside a network and not allowed", "is not allowed", "where nothing is fetched from")


def test_web_file_is_fetched_and_internal_redirects_are_refused(
    tmp_path: Path, web: tuple[str, type[Web]]
) -> None:
    host, handler = web
    bench = LocalBench(tmp_path, {"data_from": (host,)})
    ok = Mount(uri=f"{host.replace('://', '://me:$SECRET:key@')}/file", path="/job/in")
    seen, lines = run(bench, "cat /job/in/file in/file 2>/dev/null", ok)
    assert "text" in lines, lines
    assert {login for _, login in handler.asked} == {"Basic bWU6czNjcmV0a2V5"}
    for to in (
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
    ):
        seen, lines = run(bench, "echo ran", Mount(uri=f"{host}/to/{to}", path="/job/in"))
        assert seen.reason.code is ReasonCode.MOUNT_FAILED, lines
        assert any(why in lines[0] for why in REFUSALS), lines
    bench.close()


# --- the program itself ----------------------------------------------------------------------------------


def order(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    for name in ("target", "cache"):
        (tmp_path / name).mkdir(exist_ok=True)
    usual = {"name": "set", "uri": "s3://sets/in/", "user": "", "password": "", "endpoint": "", "region": ""}
    folders = {"folder": str(tmp_path / "target"), "cache": str(tmp_path / "cache")}
    limits = {"most": 0, "cache_most": 1 << 20, "inside": [], "addressing": "auto"}
    return {**usual, **folders, **limits, **changes}


class Given:
    """A place with these objects."""

    def __init__(self, **objects: bytes) -> None:
        self.objects = objects
        self.read: list[str] = []

    def entries(self) -> list[main.Entry]:
        return [main.Entry(path, len(body), f"{path}|1", path) for path, body in self.objects.items()]

    def pieces(self, entry: main.Entry) -> Iterator[bytes]:
        self.read.append(entry.path)
        yield self.objects[entry.path]


@pytest.mark.parametrize(
    "key",
    ["../x", "a/../../x", "/etc/x", "a//x", "./x", "a/./x", "x\0y", "..", "a/" + "b" * 300],
)
def test_object_keys_leading_outside_fetch_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(main, "place_of", lambda _: Given(**{"fine": b"1", key: b"2"}))
    with pytest.raises(main.Trouble):
        main.fetch(order(tmp_path))
    assert list((tmp_path / "target").iterdir()) == []


def test_entry_as_both_file_and_folder_is_refused() -> None:
    entries = [main.Entry(path, 1, path, path) for path in ("a/b/c", "a")]
    with pytest.raises(main.Trouble, match="a file and a folder"):
        main.check_entries(entries, 0)


def test_links_in_target_and_cache_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"xx")
    given = Given(**{"sub/file": b"ab"})
    monkeypatch.setattr(main, "place_of", lambda _: given)
    told = order(tmp_path)
    (tmp_path / "target" / "sub").symlink_to(outside)
    with pytest.raises(OSError, match="sub"):
        main.fetch(told)
    assert [path.name for path in outside.iterdir()] == ["secret"]
    (tmp_path / "target" / "sub").unlink()
    kept = tmp_path / "cache" / "objects" / main._cache_name(given.entries()[0])
    kept.unlink(missing_ok=True)
    kept.symlink_to(outside / "secret")
    main.fetch(told)
    assert (tmp_path / "target" / "sub" / "file").read_bytes() == b"ab"
    assert (outside / "secret").read_bytes() == b"xx"


def test_data_cache_with_links_or_foreign_files_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Given(file=b"ab")
    monkeypatch.setattr(main, "place_of", lambda _: given)
    told = order(tmp_path)
    main.fetch(told)
    (tmp_path / "target" / "file").unlink()
    main.fetch(told)
    assert given.read == ["file"], "the second time from the cache"
    (tmp_path / "target" / "file").unlink()
    kept = next((tmp_path / "cache" / "objects").iterdir())
    kept.write_bytes(b"longer")
    main.fetch(told)
    assert given.read == ["file", "file"]
    (tmp_path / "cache" / "objects").rename(tmp_path / "moved")
    (tmp_path / "cache" / "objects").symlink_to(tmp_path / "moved")
    with pytest.raises(OSError, match="objects"):
        main.fetch(told)


def test_data_cache_evicts_least_recently_used(tmp_path: Path) -> None:
    cache = main.Cache(str(tmp_path), 25)
    for number in range(4):
        entry = main.Entry(str(number), 10, str(number), str(number))
        with cache.keep_copy(entry) as file:
            assert file is not None
            file.write(b"x" * 10)
        os.utime(tmp_path / "objects" / main._cache_name(entry), (number, number))
    cache.evict()
    found = [
        (tmp_path / "objects" / main._cache_name(main.Entry("", 0, str(number), ""))).exists()
        for number in range(4)
    ]
    assert found == [False, False, True, True]


@pytest.mark.parametrize(
    ("address", "port", "inside", "fine"),
    [
        ("93.184.216.34", 443, (), True),
        ("169.254.169.254", 80, ("169.254.169.254:80",), False),
        ("10.0.0.5", 9000, (), False),
        ("10.0.0.5", 9000, ("10.0.0.5:9000",), True),
        ("10.0.0.5", 22, ("10.0.0.5:9000",), False),
        ("::1", 80, (), False),
        ("::ffff:169.254.169.254", 80, ("::ffff:a9fe:a9fe:80",), False),
        ("fe80::1%eth0", 80, (), False),
        ("100.100.100.200", 80, (), False),
        ("0.0.0.0", 80, ("0.0.0.0:80",), False),
    ],
)
def test_network_guard_allows_only_permitted_addresses(
    address: str, port: int, inside: tuple[str, ...], *, fine: bool
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    allowed = guard.Allowed(inside)
    if fine:
        allowed.check(family, (address, port))
    else:
        with pytest.raises(PermissionError):
            allowed.check(family, (address, port))


def test_network_guard_restricts_allowed_internal_name_to_its_port() -> None:
    allowed = guard.Allowed(["minio.example.org:9000"])
    row = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.5", 9000))
    allowed.record_lookup("evil.example", 9000, [(*row[:4], ("10.0.0.6", 9000))])
    allowed.record_lookup("minio.example.org", 9000, [row])
    allowed.check(socket.AF_INET, ("10.0.0.5", 9000))
    for other in (("10.0.0.5", 22), ("10.0.0.6", 9000)):
        with pytest.raises(PermissionError):
            allowed.check(socket.AF_INET, other)
    with pytest.raises(PermissionError):
        allowed.check(socket.AF_UNIX, "/run/docker.sock")


def test_transfer_order_is_deleted_after_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "order"
    told = {"site": "", "inside": [], "password": "s3cret", "do": "x s3cret", "name": "n"}
    path.write_text(json.dumps(told))
    monkeypatch.setattr("guard.keep_to", lambda _: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    umask = os.umask(0o022)
    assert main.carry(str(path)) == 1
    os.umask(umask)
    assert not path.exists()
    assert "s3cret" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("uri", "options", "found"),
    [
        (
            "oss://sets.oss-cn-beijing.aliyuncs.com/a/",
            {},
            ("s3://sets/a/", "https://oss-cn-beijing.aliyuncs.com", "virtual"),
        ),
        (
            "oss://sets/a",
            {"region": "cn-hangzhou"},
            ("s3://sets/a", "https://oss-cn-hangzhou.aliyuncs.com", "virtual"),
        ),
        ("bos://sets/a", {"region": "gz"}, ("s3://sets/a", "https://s3.gz.bcebos.com", "virtual")),
        ("s3://k:p@sets/a", {"endpoint": "minio:9000"}, ("s3://sets/a", "https://minio:9000", "path")),
        ("s3://sets/a", {}, ("s3://sets/a", "", "auto")),
        ("https://me:pw@example.org/x?y=1", {}, ("https://example.org/x?y=1", "", "auto")),
    ],
)
def test_vendor_addresses_are_read_as_s3(
    uri: str, options: dict[str, str], found: tuple[str, str, str]
) -> None:
    remote = remotes.read(uri, options)
    assert remote is not None
    assert (remote.uri, remote.endpoint, remote.addressing) == found
    assert "pw" not in remote.shown


def test_half_made_data_cache_is_given_to_its_person(tmp_path: Path) -> None:
    """Two replicas make it at once: between the folder and its owner there is a moment."""
    half = tmp_path / "cache" / "7"
    half.mkdir(mode=0o700, parents=True)
    owner = (os.geteuid() or 2007, os.getegid() or 2007)
    launch = SimpleNamespace(plan=SimpleNamespace(cache=str(half)), owner=owner)
    assert data_transfer.cache(cast("Any", launch)) == str(half)
    assert half.stat().st_uid == owner[0]
