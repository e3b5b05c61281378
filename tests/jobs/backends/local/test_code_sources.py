"""Code and data from archives of the web, object stores and an HDFS, brought before the command.

The object store is moto's server; the HDFS is a stand-in that says so (`tests.jobs.backends.hdfs`).
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Refused
from jobs.backends.staging import authfile, remotes
from jobs.backends.staging.code_sources import without_login
from jobs.backends.staging.mounts import MountContext, MountPlanner, MountSettings
from jobs.data_mover import archives
from jobs.node.sandbox.folders import Folders, Requester
from jobs.node.sandbox.isolation import Isolation
from jobs.spec import CodeSource, Mount, MountPurpose, Resources
from jobs.states import ReasonCode, State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.hdfs import StandInHdfs, hdfs, served, tar
from tests.jobs.backends.local import goods
from tests.jobs.backends.local.buckets import Store, bucket
from tests.jobs.backends.local.test_code import Smart

__all__ = ["bucket", "hdfs"]

KEY = {"token": "s3cret"}
ROOM = Resources(cpu_milli=1000, memory_mib=512)


def link(path: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.linkname = kind, target
    return info


def zipped(**files: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file.getvalue()


class Web(BaseHTTPRequestHandler):
    """`files` by path, for whoever has the `login`, if there is one."""

    files: dict[str, bytes]
    login: str | None = None

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        is_known = self.login in (None, self.headers["Authorization"])
        body = self.files.get(self.path) if is_known else None
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def web() -> Iterator[tuple[str, dict[str, bytes]]]:
    files: dict[str, bytes] = {}
    with served(Web, files=files) as address:
        yield address, files


def code_dir(uri: str) -> Mount:
    return Mount(uri=uri, purpose=MountPurpose.CODE, read_only=True)


@pytest.mark.parametrize("mode", [None, Isolation.NONE], ids=["best", "none"])
def test_code_archive_and_hdfs_directories_are_brought_and_output_is_stored(
    tmp_path: Path, web: tuple[str, dict[str, bytes]], hdfs: StandInHdfs, mode: Isolation | None
) -> None:
    """One job: code from a zip file of the web, codeDir, dataDir and outputDir of an HDFS."""
    address, files = web
    files["/org/tool.zip"] = zipped(**{"src/say": "echo zip\n"})
    hdfs.files |= {"/code/x/main.py": b"code\n", "/code/x/sub/more": b"more\n", "/sets/a": b"data\n"}
    command = (
        "sh tool/src/say; cat $PAI_CODE_DIR/main.py $PAI_CODE_DIR/sub/more $PAI_DATA_DIR/a;"
        "(echo x > $PAI_DATA_DIR/b) 2>/dev/null;"
        "basename $PAI_CODE_DIR; stat -c %a $PAI_CODE_DIR/main.py; echo made > $PAI_OUTPUT_DIR/result"
    )
    bench = LocalBench(tmp_path, {"isolation": mode, "code_from": (address,), "hdfs": hdfs.settings})
    mounts = (
        code_dir(f"{hdfs.name}/code/x"),
        Mount(uri=f"{hdfs.name}/sets"),
        Mount(uri=f"{hdfs.name}/out/$PAI_JOB_NAME", purpose=MountPurpose.OUTPUT),
    )
    code = CodeSource(uri=f"{address}/org/tool.zip")
    handle = bench.backend.submit(bench.submission(role(command, resources=ROOM), mounts=mounts, code=code))
    seen = wait_until_over(bench.backend, handle, timeout=60)
    lines = log_of(bench.backend, handle).splitlines()
    assert seen.state is State.SUCCEEDED, lines
    assert [line for line in lines if ": " not in line][:5] == ["zip", "code", "more", "data", "x"]
    assert f"{address}/org/tool.zip: 1 files, 9 B, unpacked" in lines
    assert hdfs.files["/out/bench/result"] == b"made\n"
    assert "/sets/b" not in hdfs.files
    assert {user for _, _, user in hdfs.asked} == {"alice"}
    bench.close()


def test_code_from_object_store_is_unpacked_or_copied(tmp_path: Path, bucket: Store) -> None:
    bucket.put_at("code/tool.tar.gz", tar(("bin/say", "echo packed\n"), link("say", "bin/say")))
    bucket.put_at("tree/sub/file", "of the prefix\n")
    settings = {"data_from": ("s3://*",), "data_inside": (bucket.host,)}
    bench = LocalBench(tmp_path, settings)
    keys = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "s3cretkey"}
    keys["AWS_ENDPOINT_URL"] = bucket.endpoint
    spec = role("sh tool/say; cat tree/sub/file; touch tree/x 2>/dev/null || echo shut", resources=ROOM)
    submission = bench.submission(
        spec,
        env=keys,
        mounts=(code_dir("s3://sets/tree"),),
        code=CodeSource(uri="s3://sets/code/tool.tar.gz"),
    )
    handle = bench.backend.submit(submission)
    seen = wait_until_over(bench.backend, handle, timeout=60)
    lines = log_of(bench.backend, handle).splitlines()
    assert seen.state is State.SUCCEEDED, lines
    assert lines[2:4] == ["packed", "of the prefix"], lines
    bench.close()


def test_code_dir_by_git_is_read_only_and_named_by_its_repository(
    tmp_path: Path, place: Path, git_server: str
) -> None:
    bench = LocalBench(tmp_path, {"code_from": (without_login(git_server),)})
    command = "cat $PAI_CODE_DIR/file; basename $PAI_CODE_DIR; touch repo/x 2>/dev/null || echo shut"
    handle = bench.backend.submit(
        bench.submission(role(command), mounts=(code_dir(f"{git_server}/repo"),), secrets=KEY)
    )
    wait_until_over(bench.backend, handle)
    expected = ["two", "repo", "shut"] if bench.backend.isolation() is not Isolation.NONE else ["two", "repo"]
    assert log_of(bench.backend, handle).splitlines()[: len(expected)] == expected
    bench.close()


def test_code_that_cannot_be_brought_fails_job_or_is_refused(
    tmp_path: Path, web: tuple[str, dict[str, bytes]], hdfs: StandInHdfs
) -> None:
    address, files = web
    files["/out.zip"] = zipped(**{"../evil": "x"})
    files["/large.tar.gz"] = tar(("zeros", "0" * (2 << 20)))
    bench = LocalBench(tmp_path, {"code_from": (address,), "hdfs": hdfs.settings, "code_mib": 1})
    for uri, words in (
        (f"{address}/out.zip", "is no path of a file"),
        (f"{address}/large.tar.gz", "holds more than 1,048,576 bytes"),
        (f"{address}/absent.zip", "404"),
        (f"{hdfs.name}/absent", "there is nothing there"),
    ):
        handle = bench.backend.submit(
            bench.submission(role("echo ran", resources=ROOM), code=CodeSource(uri=uri))
        )
        seen = wait_until_over(bench.backend, handle, timeout=60)
        assert seen.reason.code is ReasonCode.CODE_FAILED
        assert words in str(seen.reason.params["error"])
    for uri, reason in (
        ("ftp://example.org/code", "code_elsewhere"),
        ("nfs://example.org/code", "code_elsewhere"),
        ("hdfs://other:9000/code", "code_not_allowed"),
        ("oss://bucket/code", "code_not_allowed"),
        ("https://git.example.org/x.git", "code_not_allowed"),
    ):
        with pytest.raises(Refused) as refused:
            bench.backend.submit(bench.submission(mounts=(code_dir(uri),)))
        assert refused.value.reason.params["why"] == reason, uri
    bench.close()


# --- submodules ------------------------------------------------------------------------------------------


@pytest.fixture
def git_server(place: Path) -> Iterator[str]:
    """A repository `repo`, and its submodules: `inner` of the same host, and on request one of another."""
    goods.repository(place / "inner")
    goods.repository(place / "repo")
    (place / "repo" / ".gitmodules").write_text('[submodule "inner"]\n\tpath = lib\n\turl = ../inner\n')
    goods.git(place / "repo", "update-index", "--add", "--cacheinfo", _gitlink(place / "inner"))
    goods.commit_all(place / "repo", "with a submodule")
    with served(Smart, root=str(place)) as address:
        yield address.replace("://", "://me:$SECRET:token@")


def _gitlink(repository: Path) -> str:
    return f"160000,{goods.git(repository, 'rev-parse', 'old')},lib"


def test_submodules_are_fetched_from_the_host_of_the_repository_alone(
    tmp_path: Path, place: Path, git_server: str
) -> None:
    bench = LocalBench(tmp_path, {"code_from": (without_login(git_server),)})
    for submodules, said in ((True, "one\n"), (False, "none\n")):
        code = CodeSource(uri=f"{git_server}/repo", path="src", submodules=submodules)
        spec = role("cat src/lib/file 2>/dev/null || echo none")
        handle = bench.backend.submit(bench.submission(spec, code=code, secrets=KEY))
        seen = wait_until_over(bench.backend, handle)
        assert log_of(bench.backend, handle) == said, seen.reason
        assert [one.commit for one in seen.replicas] == [goods.git(place / "repo", "rev-parse", "HEAD")]
    goods.git(place / "repo", "config", "--file", ".gitmodules", "submodule.inner.url", "ssh://x@127.0.0.1/x")
    goods.commit_all(place / "repo", "elsewhere")
    code = CodeSource(uri=f"{git_server}/repo", submodules=True)
    handle = bench.backend.submit(bench.submission(role("echo ran"), code=code, secrets=KEY))
    seen = wait_until_over(bench.backend, handle)
    assert seen.reason.code is ReasonCode.CODE_FAILED
    assert "transport 'ssh' not allowed" in str(seen.reason.params["error"])
    bench.close()


# --- the login for the image registry --------------------------------------------------------------------


def test_auth_file_of_hdfs_is_read_as_the_person(hdfs: StandInHdfs) -> None:
    hdfs.files["/auth"] = b"registry.example.org\nbot\ns3cret\n"
    hdfs.files["/wrong"] = b"one\n"
    rules = remotes.DataRules(inside=remotes.named_hosts((hdfs.endpoint,)), hdfs=hdfs.settings)
    layer = MountPlanner(
        MountSettings(Folders(), data=rules),
        MountContext(Requester("w", "alice"), (0, 0), "j", Isolation.PERSONS, True, True, True),
    )
    said = authfile.login(f"{hdfs.name}/auth", layer)
    assert said == {"registry": "registry.example.org", "username": "bot", "password": "s3cret"}
    assert {user for _, _, user in hdfs.asked} == {"alice"}
    for uri, reason in (("/wrong", "auth_file"), ("/absent", "auth_file")):
        with pytest.raises(Refused) as refused:
            authfile.login(f"{hdfs.name}{uri}", layer)
        assert refused.value.reason.params["why"] == reason
    with pytest.raises(Refused) as refused:
        authfile.login("hdfs://other:9000/auth", layer)
    assert refused.value.reason.params["why"] == "auth_elsewhere"


# --- archives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("archive", "words"),
    [
        (tar(("../x", "1")), "no path"),
        (tar(("/etc/x", "1")), "no path"),
        (tar(link("x", "/etc"), ("x/passwd", "1")), "outside"),
        (tar(link("x", "../.."), ("x/y", "1")), "outside"),
        (tar(("a/b", "1"), link("c", "a"), ("c/b", "2")), "c/b: "),
        (tar(("a", "1"), link("b", "../x", tarfile.LNKTYPE)), "no path"),
        (tar(link("x", "", tarfile.FIFOTYPE)), "neither"),
        (tar(("a", "1"), ("a", "2")), "exists"),
        (tar(("a", "0" * 101)), "holds more than 100 bytes"),
        (b"no archive", "no archive"),
    ],
    ids=[
        "parent",
        "absolute",
        "link",
        "link up",
        "link in path",
        "hard link",
        "fifo",
        "twice",
        "large",
        "text",
    ],
)
def test_hostile_archive_writes_nothing_outside_its_folder(
    tmp_path: Path, archive: bytes, words: str
) -> None:
    from jobs.data_mover import main  # noqa: PLC0415 it changes sys.path

    (tmp_path / "target").mkdir()
    target = main.Folder(str(tmp_path / "target"))
    with pytest.raises((archives.BadArchive, main.Trouble), match=words):
        archives.unpack(io.BytesIO(archive), "x.tar.gz", target.around, 100)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
