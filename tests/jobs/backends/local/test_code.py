"""Code that is in its place before the command: copied, or fetched by git as the job's user."""

import base64
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Observation, Person, Refused
from jobs.backends.local.machine import detect_isolation
from jobs.backends.staging import code_sources
from jobs.backends.staging.code_sources import CodeRules, RegisteredCode
from jobs.backends.staging.mounts import MountContext, MountPlanner, MountSettings
from jobs.messages import reason_message
from jobs.node.sandbox.folders import Folders, Requester, SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.node.staging import git
from jobs.node.staging.mount_specs import CodeSpec
from jobs.spec import CodeSource, Mount, MountPurpose, Resources
from jobs.states import Phase, ReasonCode, State
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.jobs.backends.local import goods
from tests.waiting import wait_for

ALL = {"workspaces": ["*"]}


@pytest.fixture
def repo(place: Path) -> Path:
    goods.repository(place / "repo")
    return place / "repo"


@pytest.fixture(params=["best", "none"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, place: Path) -> Iterator[LocalBench]:
    mode = {"best": None, "none": Isolation.NONE}[request.param]
    made = LocalBench(tmp_path, settings_for(place, isolation=mode))
    yield made
    made.close()


def settings_for(place: Path, **more: Any) -> dict[str, Any]:
    return {
        "folders": (SharedFolderRule.from_settings(str(place), ALL),),
        "code_sources": {"code-1": RegisteredCode(f"file://{place}/repo", branch="old", path="/job/known")},
        **more,
    }


def run(bench: LocalBench, command: str, **spec: Any) -> tuple[Observation, str]:
    handle = bench.backend.submit(bench.submission(role(command), **spec))
    seen = wait_until_over(bench.backend, handle)
    assert (bench.attempt(handle) / "supervisor.log").read_text() == ""
    return seen, log_of(bench.backend, handle)


def why(bench: LocalBench, **spec: Any) -> dict[str, Any]:
    with pytest.raises(Refused) as refused:
        bench.backend.submit(bench.submission(**spec))
    return dict(refused.value.reason.params)


@pytest.mark.parametrize("ref", ["head", "branch", "tag", "commit", "short commit"])
def test_local_repository_is_fetched_at_requested_ref(bench: LocalBench, repo: Path, ref: str) -> None:
    first = goods.git(repo, "rev-parse", "old")
    asked: dict[str, dict[str, Any]] = {
        "head": {"path": "src"},
        "branch": {"branch": "old", "path": "/job/src"},
        "tag": {"branch": "v1", "path": "src/"},
        "commit": {"commit": first, "path": "src"},
        "short commit": {"commit": first[:9].upper(), "path": "src"},
    }
    source = CodeSource(uri=f"{repo}/.git" if ref == "head" else f"file://{repo}", **asked[ref])
    seen, log = run(
        bench, "cat src/file; touch src/mine && git -C src log --format=%s | head -n 1", code=source
    )
    there = goods.git(repo, "rev-parse", "HEAD") if ref == "head" else first
    assert [one.commit for one in seen.replicas] == [there]
    said = "two" if ref == "head" else "one"
    assert (seen.state, log.splitlines()) == (State.SUCCEEDED, [said, said])


def test_code_without_path_is_placed_under_repository_name(bench: LocalBench, repo: Path) -> None:
    seen, log = run(bench, "cat repo/file", code=CodeSource(uri=f"file://{repo}/", branch="old"))
    assert (seen.state, log) == (State.SUCCEEDED, "one\n")


def test_registered_code_is_found_by_id_and_overridden_by_job_file(bench: LocalBench, repo: Path) -> None:
    assert run(bench, "cat known/file", code=CodeSource(id="code-1"))[1] == "one\n"
    assert run(bench, "cat x/file", code=CodeSource(id="code-1", branch="main", path="x"))[1] == "two\n"
    assert why(bench, code=CodeSource(id="code-2")) == {
        "why": "code_unknown",
        "id": "code-2",
        "setting": "code_sources",
    }


def test_fetched_commit_is_read_as_data_without_following_links(tmp_path: Path) -> None:
    head = tmp_path / ".git" / "HEAD"
    assert git.commit_in(str(tmp_path)) == ""
    head.parent.mkdir()
    head.write_text("a" * 40 + "\n")
    assert git.commit_in(str(tmp_path)) == "a" * 40
    for said in ("ref: refs/heads/main", "a" * 41, "", "x" * 40):
        head.write_text(said)
        assert git.commit_in(str(tmp_path)) == ""
    head.unlink()
    (tmp_path / "elsewhere").write_text("b" * 40)
    head.symlink_to(tmp_path / "elsewhere")
    assert git.commit_in(str(tmp_path)) == ""
    head.unlink()
    os.mkfifo(head)
    assert git.commit_in(str(tmp_path)) == ""


def test_code_folder_copy_belongs_to_job_and_leaves_source_unchanged(bench: LocalBench, place: Path) -> None:
    (place / "sets" / "link").symlink_to("file")
    (place / "sets" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (place / "sets" / "run.sh").chmod(0o755)
    command = "readlink sets/link; sets/run.sh; echo changed > sets/file; cat sets/link"
    seen, log = run(bench, command, code=CodeSource(uri=f"{place}/sets"))
    assert (seen.state, log.splitlines()) == (State.SUCCEEDED, ["file", "ran", "changed"])
    assert (place / "sets" / "file").read_text() == "of the set\n"


def test_openpai_code_dir_is_read_only_copy(tmp_path: Path, place: Path) -> None:
    code_dir = Mount(uri=f"file://{place}/sets", purpose=MountPurpose.CODE, read_only=True)
    command = "cat sets/file $PAI_CODE_DIR/file; touch sets/x 2>/dev/null || echo no; stat -c %a sets/file"
    for name in ("best", "none"):
        (tmp_path / name).mkdir()
        mode = Isolation.NONE if name == "none" else None
        bench = LocalBench(tmp_path / name, settings_for(place, isolation=mode))
        seen, log = run(bench, command, mounts=(code_dir,))
        assert seen.state is State.SUCCEEDED, log
        lines = log.splitlines()
        assert lines[:2] == ["of the set"] * 2
        if name == "best" and detect_isolation(sys.executable) is not Isolation.NONE:
            assert lines[2:] == ["no", "644"]
        else:  # root can write where nobody may
            assert lines[-1] == "444"
        bench.close()


def test_code_dir_over_200_mb_is_refused(
    bench: LocalBench, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code_dir = Mount(uri=f"file://{place}/sets", purpose=MountPurpose.CODE, read_only=True)
    with (place / "sets" / "large").open("wb") as file:
        file.truncate(200_000_000)
    told = why(bench, mounts=(code_dir,))
    assert told == {"why": "code_too_large", "place": f"{place}/sets", "most_mb": 200}
    assert reason_message(ReasonCode.REFUSED, told) == (
        f"Refused: the code in {place}/sets exceeds the limit of 200 MB."
    )


def test_code_grown_too_large_before_start_ends_replica(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "agent.before_start").write_text("STOP")
    monkeypatch.setenv("CONSOLE_FAULTS", str(faults))
    bench = LocalBench(tmp_path, settings_for(place))
    code_dir = Mount(uri=f"file://{place}/sets", purpose=MountPurpose.CODE, read_only=True)
    handle = bench.backend.submit(bench.submission(role("echo ran"), mounts=(code_dir,)))
    wait_for(lambda: list(faults.glob("*.taken.*")))
    with (place / "sets" / "large").open("wb") as file:
        file.truncate(200_000_001)
    seen = wait_until_over(bench.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.CODE_FAILED)
    assert seen.reason.params["error"] == f"{place}/sets: larger than 200,000,000 bytes"
    assert log_of(bench.backend, handle) == ""
    bench.close()


def test_repository_growth_during_fetch_is_limited(tmp_path: Path, place: Path, repo: Path) -> None:
    (repo / "zeros").write_bytes(bytes(64 << 20))
    goods.git(repo, "add", ".")
    goods.git(repo, "commit", "--quiet", "--message", "large, and small when packed")
    subprocess.run(["chmod", "-R", "a+rX", str(repo)], check=True)
    bench = LocalBench(tmp_path, settings_for(place, code_mib=16))
    large = role("echo ran", resources=Resources(cpu_milli=1000, memory_mib=1024))
    source = CodeSource(uri=f"file://{repo}", branch="main", path="src")
    seen = wait_until_over(bench.backend, bench.backend.submit(bench.submission(large, code=source)))
    assert seen.reason.code is ReasonCode.CODE_FAILED
    assert seen.reason.params["error"] == "larger than 16,777,216 bytes"
    bench.close()


def test_failed_code_fetch_fails_job_with_git_error(bench: LocalBench, repo: Path) -> None:
    for source, words in (
        (CodeSource(uri=f"file://{repo}", branch="nowhere"), "couldn't find remote ref nowhere"),
        (CodeSource(uri=f"file://{repo}", commit="0" * 40), "reference is not a tree"),
        (
            CodeSource(uri=f"file://{repo.parent}/sets", branch="main"),
            "not appear to be a git repository",
        ),
    ):
        seen, log = run(bench, "echo ran", code=source)
        assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.CODE_FAILED)
        assert words in str(seen.reason.params["error"])
        assert "ran" not in log.splitlines()


def test_hostile_repository_content_is_neither_run_nor_followed(bench: LocalBench, repo: Path) -> None:
    """Hooks, configuration and submodules of the other side, and filters and modules that it names."""
    (repo / ".gitattributes").write_text("* filter=evil\n")
    (repo / ".gitmodules").write_text('[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch x"\n')
    goods.git(repo, "add", ".")
    goods.git(repo, "commit", "--quiet", "--message", "evil")
    goods.git(repo, "config", "uploadpack.packObjectsHook", f"touch {bench.judge}/packed; exec")
    goods.git(repo, "config", "core.fsmonitor", f"touch {bench.judge}/monitored; true")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        path = repo / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {bench.judge}/{hook}\n")
        path.chmod(0o755)
    subprocess.run(["chmod", "-R", "a+rX", str(repo)], check=True)
    seen, log = run(bench, "cat src/file", code=CodeSource(uri=f"file://{repo}", path="src", branch="main"))
    assert (seen.state, log) == (State.SUCCEEDED, "two\n")
    assert list(bench.judge.iterdir()) == []


def test_code_from_disallowed_place_is_refused(bench: LocalBench, place: Path) -> None:
    for source, reason in (
        (CodeSource(uri="file:///opt/repo", branch="x"), "mount_not_allowed"),
        (CodeSource(uri=f"file://{bench.home}"), "mount_not_allowed"),
        (CodeSource(uri=f"file://{place}/../../etc"), "mount_not_allowed"),
        (CodeSource(uri=f"{place}/absent"), "mount_no_folder"),
        (CodeSource(uri="https://git.example.org/x"), "code_not_allowed"),
        (CodeSource(uri=f"{place}/sets", branch="--upload-pack=touch x"), "code_ref"),
        (CodeSource(uri=f"{place}/sets", branch="a..b"), "code_ref"),
        (CodeSource(uri=f"{place}/sets", commit="HEAD"), "code_ref"),
        (CodeSource(uri=f"{place}/sets", path="/etc/x"), "mount_over"),
        (CodeSource(uri=f"{place}/sets", path="../x"), "mount_over"),
        (CodeSource(uri=f"{place}/sets", path="/job"), "mount_over"),
    ):
        assert why(bench, code=source)["why"] == reason, source
    open_ = CodeSource(uri=f"{place}/sets", path="/root/code")
    if bench.config.isolation is Isolation.NONE:
        assert why(bench, code=open_)["why"] == "mount_needs_view"
    else:
        assert run(bench, "cat /root/code/file", code=open_)[1] == "of the set\n"
    mount = Mount(uri="emptydir://", path="/job/a")
    assert (
        why(bench, code=CodeSource(uri=f"{place}/sets", path="a/b"), mounts=(mount,))["why"] == "mount_twice"
    )


RULES = CodeRules(
    from_=("https://github.com/org", "ssh://git@git.example.org:2222", "http://*"), path="/bin:/usr/bin"
)


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("https://github.com/org/x.git", ""),
        ("https://user:pass@github.com/org/x", ""),
        ("https://github.com/organisation/x", "code_not_allowed"),
        ("https://github.com:444/org/x", "code_not_allowed"),
        ("http://anywhere.example/x", ""),
        ("http://anywhere.example:8080/x", "code_not_allowed"),
        ("ssh://git@git.example.org:2222/x", ""),
        ("git@git.example.org:x/y", "code_not_allowed"),
        ("https://github.com@evil.example/org/x", "code_not_allowed"),
        ("https://github.com/org/../other", "code_address"),
        ("https://github.com\\@evil.example/org/x", "code_not_allowed"),
        ("https://github.com/org/x?y", "code_address"),
        ("ssh://-oProxyCommand=touch/org/x", "code_address"),
        ("ext::sh -c touch% x", "code_address"),
        ("https:///org/x", "code_address"),
        ("https://github.com:port/org/x", "code_address"),
        ("--upload-pack=x", "code_address"),
        ("relative/path", "code_address"),
    ],
)
def test_code_address_is_interpreted_as_by_git(uri: str, reason: str) -> None:
    source = CodeSource(uri=uri)
    layer = MountPlanner(
        MountSettings(Folders()),
        MountContext(Requester("w", "alice"), (0, 0), "j", Isolation.PERSONS, True, True, True),
    )
    if not reason:
        code_sources.add_code(source, RULES, layer)
        assert layer.codes[0].uri == code_sources.without_login(uri)
        assert "pass" not in layer.codes[0].uri
        return
    with pytest.raises(Refused) as refused:
        code_sources.add_code(source, RULES, layer)
    assert refused.value.reason.params["why"] == reason
    assert "pass" not in str(refused.value.reason.params)


def test_git_command_line_contains_no_secret() -> None:
    code = CodeSpec(0, uri="https://git.example.org/x", git="/usr/bin/git", commit="a" * 40)
    words = [
        word for commands in git.commands(code, code.uri, "/job/x") for argv in commands for word in argv
    ]
    assert not [word for word in words if "s3cret" in word]
    env = git.environment(code.uri, {"https_proxy": "p", "GIT_DIR": "x"}, "/c", "me:s3cret", "")
    token = base64.b64encode(b"me:s3cret").decode()
    assert [name for name, value in env.items() if token in value] == ["GIT_CONFIG_VALUE_8"]
    assert env["https_proxy"] == "p"
    assert "GIT_DIR" not in env
    assert env["GIT_ALLOW_PROTOCOL"] == "https"


class Smart(BaseHTTPRequestHandler):
    """git's own server for HTTP, for whoever knows the password."""

    protocol_version = "HTTP/1.0"
    root = ""
    login = "Basic " + base64.b64encode(b"me:s3cret").decode()

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self, body: bytes) -> None:
        if self.headers.get("Authorization") != self.login:
            self.send_response(401)
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        answer = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=True)
        head, _, rest = answer.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest)


@pytest.fixture
def server(place: Path, repo: Path) -> Iterator[str]:
    handler = type("Handler", (Smart,), {"root": str(place)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://me:$SECRET:token@127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


def test_remote_code_fetch_leaves_no_trace_of_secret(tmp_path: Path, place: Path, server: str) -> None:
    allowed = code_sources.without_login(server)
    first = goods.git(place / "repo", "rev-parse", "old")
    command = "cat src/file; grep -r s3c[r]et /job 2>/dev/null; env | grep -i s3c[r]et; cat src/.git/config"
    for name in ("best", "none"):
        (tmp_path / name).mkdir()
        mode = Isolation.NONE if name == "none" else None
        bench = LocalBench(tmp_path / name, {"isolation": mode, "code_from": (allowed,)})
        revisions: tuple[dict[str, Any], ...] = (
            {"branch": "old"},
            {"commit": first},
            {"commit": first[:8]},
        )
        for asked in revisions:
            source = CodeSource(uri=f"{server}/repo", path="src", **asked)
            seen, log = run(bench, command, code=source, secrets={"token": "s3cret"})
            assert log.splitlines()[0] == "one", log
            assert "s3cret" not in log
            assert "extraHeader" not in log
        for path in bench.config.root.rglob("*"):
            assert not path.is_file() or b"s3cret" not in path.read_bytes(), path
        seen, log = run(bench, "echo ran", code=CodeSource(uri=f"{server}/repo"), secrets={"token": "wrong"})
        assert seen.reason.code is ReasonCode.CODE_FAILED
        told = why(bench, code=CodeSource(uri=f"{server}/repo"))
        assert told == {"why": "no_secret", "name": "token"}
        bench.close()


def test_preparation_step_is_reported_and_ends_on_job_stop(tmp_path: Path, place: Path) -> None:
    """A server that takes the call and says nothing."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        bench = LocalBench(tmp_path, {"code_from": (uri,)})
        handle = bench.backend.submit(
            bench.submission(role("echo ran"), code=CodeSource(uri=f"{uri}/repo"), person=Person("alice", 7))
        )

        def fetching() -> Observation | None:
            seen = bench.backend.observe([handle])[handle]
            assert isinstance(seen, Observation)
            return seen if seen.reason.params else None

        seen = wait_for(fetching)
        assert seen is not None
        assert (seen.state, seen.phase, seen.reason.code) == (
            State.PENDING,
            Phase.ENV_PREPARING,
            ReasonCode.STARTING,
        )
        assert reason_message(seen.reason.code, seen.reason.params) == (f"Fetching code from {uri}/repo.")
        bench.backend.stop(handle, grace_s=5, signal="TERM")
        assert wait_until_over(bench.backend, handle).state is State.STOPPED
        assert log_of(bench.backend, handle) == ""
        wait_for(lambda: not bench.processes())
        bench.close()


def test_slow_code_fetch_is_ended_after_timeout(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        bench = LocalBench(tmp_path, {"code_from": (uri,), "prepare_s": 1})
        seen, _ = run(bench, "echo ran", code=CodeSource(uri=f"{uri}/repo"))
        assert (seen.reason.code, seen.reason.params["error"]) == (
            ReasonCode.CODE_FAILED,
            "not done after 1 s",
        )
        bench.close()
