"""`dlc` against a small HTTP server, which checks signatures and records requests."""

from __future__ import annotations

import hashlib
import json
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from jobs.client.dlc import api, cli, progress
from jobs.client.dlc.failure import REFUSED, UNREACHABLE, USAGE
from jobs.client.dlc.submission import create_request, params_of
from jobs.dialects.dlc_params.job_type import NAMES
from jobs.dialects.dlc_params.keys import KNOWN
from jobs.signatures import SignedRequest, parse_acs3, sign_acs3
from tests.seeds import SEEDS

ID, SECRET = "JCAKtest", "s3cret/with+signs"
JOB: Final = "dlc4f2kq8z1m0ab"
CREATED: Final = {"JobId": JOB, "RequestId": "REQUEST"}

Reply = tuple[int, Any]


@dataclass
class Request:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    """What the server answers, in turn and the last one again, and what it was asked."""

    host: str
    replies: list[Reply] = field(default_factory=lambda: [(200, CREATED)])
    requests: list[Request] = field(default_factory=list)

    def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            target = urlsplit(self.path)
            claim = parse_acs3(headers["authorization"])
            assert claim is not None
            signed = SignedRequest(self.command, target.path, target.query, headers, body)
            assert claim.key_id == ID
            assert claim.signature == sign_acs3(signed, claim.headers, SECRET)
            assert headers["x-acs-content-sha256"] == hashlib.sha256(body).hexdigest()
            content = json.loads(body) if body else None
            query = parse_qs(target.query)
            status, value = state.reply(Request(self.command, target.path, query, headers, content))
            text = value if isinstance(value, str) else json.dumps(value)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 names of the standard library

        def log_message(self, *_arguments: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = Server(f"127.0.0.1:{listening.server_port}")
    thread = threading.Thread(target=listening.serve_forever, args=[0.01])
    thread.start()
    yield state
    listening.shutdown()
    listening.server_close()
    thread.join()


Dlc = Callable[..., int]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def dlc(home: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Dlc:
    """Return the command, configured for the server."""
    monkeypatch.setattr(api, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(progress, "INTERVAL_S", 0.01)

    def call(*words: str) -> int:
        return cli.main(words)

    key = ("--access_id", ID, "--access_key", SECRET)
    assert call("config", *key, "--endpoint", server.host, "--protocol", "http", "--region", "local") == 0
    return call


# --- Configuration ----------------------------------------------------------------------------------------


def test_configuration_is_stored_for_its_owner_alone_and_not_printed(
    dlc: Dlc, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / ".dlc" / "config"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET in file.read_text()
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err


def test_configuration_of_one_value_keeps_the_others(dlc: Dlc, home: Path) -> None:
    assert dlc("config", "--region", "elsewhere") == 0
    text = (home / ".dlc" / "config").read_text()
    assert "elsewhere" in text
    assert ID in text


@pytest.mark.parametrize("content", [b"AccessID ...\n", b"\xff\xfe", b"access_id=x\n"])
def test_configuration_of_another_program_is_left_as_it_is(
    dlc: Dlc, home: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / ".dlc" / "config"
    file.write_bytes(content)
    assert dlc("config", "--region", "elsewhere") == USAGE
    assert dlc("get", "job") == USAGE
    assert "--config FILE" in capsys.readouterr().err
    assert file.read_bytes() == content


def test_flags_win_over_the_stored_configuration(dlc: Dlc, server: Server, tmp_path: Path) -> None:
    assert dlc("config", "--endpoint", "127.0.0.1:9", "-a", "other") == 0
    assert dlc("stop", "job", JOB, "-q", "-e", f"http://{server.host}/", "-a", ID) == 0
    assert (
        dlc("config", "-c", str(tmp_path / "second"), "-e", server.host, "-k", SECRET, "--protocol", "http")
        == 0
    )
    assert dlc("stop", "job", JOB, "-q", "-c", str(tmp_path / "second"), "-a", ID) == 0


def test_environment_has_the_key_where_nothing_else_has_one(
    home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", ID)
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", SECRET)
    assert cli.main(["stop", "job", JOB, "-q", "-e", server.host, "--protocol", "http"]) == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("get", "job", "-e", "h"), "No access key."),
        (("get", "job", "-a", "i", "-k", "s"), "No endpoint."),
        (("get", "job", "-a", "i", "-k", "s", "-e", "ftp://h"), "No endpoint."),
        (("config", "-e", "host/prefix"), "No endpoint."),
    ],
)
def test_missing_configuration_is_a_wrong_call(
    home: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == USAGE
    assert sentence in capsys.readouterr().err
    assert not (home / ".dlc").exists()


# --- Submission -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["000", "003"])
def test_submission_of_the_page_sends_the_file_of_the_page(
    dlc: Dlc, server: Server, tmp_path: Path, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (seed,) = (each for each in SEEDS if each.page == page and each.dialect == "dlc-params")
    file = tmp_path / "tfjob.params"
    file.write_text(seed.text)
    capsys.readouterr()
    assert dlc("submit", "tfjob", "--job_file", str(file)) == 0
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/jobs")
    assert request.headers["x-acs-action"] == "CreateJob"
    assert request.headers["x-acs-version"] == "2020-12-03"
    assert request.body["JobType"] == "TFJob"
    assert request.body["DisplayName"] == "test_cli_tfjob_001"
    assert request.body["UserCommand"] == "echo good && sleep 120"
    [role] = request.body["JobSpecs"]
    assert (role["Type"], role["PodCount"]) == ("Worker", 1)
    assert role["ResourceConfig"] == {"CPU": "4", "GPU": "0", "Memory": "4Gi", "SharedMemory": "4Gi"}
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "+-----------------+-----------+",
        "|      JobId      | RequestId |",
        "+-----------------+-----------+",
        f"| {JOB} | REQUEST   |",
        "+-----------------+-----------+",
    ]


def test_file_of_parameters_wins_over_flags(dlc: Dlc, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "job.params"
    file.write_text("# comment\nname=from_file\ncommand=echo a=b # c\nenvs=A=1,B=2\n")
    flags = ("--name", "from_flag", "--priority=7", "--workers", "2", "--worker_image=i", "--chief")
    assert dlc("submit", "tfjob", "--job_file", str(file), *flags, "--tags", "team=x") == 0
    body = server.requests[0].body
    assert (body["DisplayName"], body["Priority"], body["UserCommand"]) == ("from_file", 7, "echo a=b # c")
    assert body["Envs"] == {"A": "1", "B": "2"}
    assert body["Settings"] == {"Tags": {"team": "x"}}
    assert {role["Type"]: role["PodCount"] for role in body["JobSpecs"]} == {"Worker": 2, "Chief": 1}


@pytest.mark.parametrize("word", sorted(NAMES))
def test_each_job_type_is_submitted_under_its_name(dlc: Dlc, server: Server, word: str) -> None:
    assert dlc("submit", word, "--name", "n", "--command=true", "--workers=1") == 0
    assert server.requests[0].body["JobType"] == NAMES[word]


def test_flags_are_all_keys_of_the_roles_of_a_job_type() -> None:
    assert {param.key for name in NAMES.values() for param in params_of(name)} == KNOWN
    keys = {param.key for param in params_of("RayJob")}
    assert {"heads", "head_gpu", "workers"} <= keys
    assert not {"ps", "masters", "chief"} & keys


def test_data_sources_and_driver_are_sent_where_the_request_has_them() -> None:
    values = {
        "data_sources": "d-1",
        "data_source_uris": "oss://b.e/p/::/mnt/x",
        "driver": "550",
        "workers": "1",
    }
    body = create_request("PyTorchJob", values)
    assert body["DataSources"] == [{"DataSourceId": "d-1"}, {"Uri": "oss://b.e/p/", "MountPath": "/mnt/x"}]
    assert body["Settings"] == {"Driver": "550"}


def test_wrong_lines_of_a_file_are_told_with_their_places(
    dlc: Dlc, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.params"
    file.write_text("name=a\nno equals sign\nname=b\n")
    assert dlc("submit", "tfjob", "--job_file", str(file)) == USAGE
    printed = capsys.readouterr().err
    assert f"{file}:2:1: " in printed
    assert f"{file}:3:1: " in printed
    assert not server.requests


def test_unknown_key_of_a_file_is_told_and_not_sent(
    dlc: Dlc, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.params"
    file.write_text("name=a\ncommand=true\nworkers=1\nworkerz=2\n")
    assert dlc("submit", "tfjob", "--job_file", str(file)) == 0
    assert "workerz is no parameter" in capsys.readouterr().err
    assert "workerz" not in json.dumps(server.requests[0].body)


def test_missing_file_is_named(dlc: Dlc, capsys: pytest.CaptureFixture[str]) -> None:
    assert dlc("submit", "tfjob", "--job_file", "/no/such.params") == USAGE
    assert capsys.readouterr().err == "/no/such.params: No such file or directory\n"


@pytest.mark.parametrize(
    "words", [(), ("submit", "tfjob", "--nam", "x"), ("submit", "nojob"), ("get", "nothing")]
)
def test_wrong_words_are_a_wrong_call(home: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == USAGE


@pytest.mark.parametrize(
    ("status", "more", "exit_status"),
    [
        ("Succeeded", (), 0),
        ("Failed", (), REFUSED),
        ("Stopped", (), REFUSED),
        ("Stopped", ("--exit_code_on_stopped", "7"), 7),
        ("Running", ("--running_timeout", "0"), REFUSED),
    ],
)
def test_interactive_submission_ends_as_the_job_ends(
    dlc: Dlc,
    server: Server,
    status: str,
    more: tuple[str, ...],
    exit_status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pods = {"Status": status, "Pods": [{"PodId": f"{JOB}-worker-0"}], "Logs": ["one", "two"]}
    server.replies = [(200, CREATED), (200, pods)]
    flags = ("--name=n", "--command=true", "--workers=1", "--interactive", *more)
    assert dlc("submit", "pytorchjob", *flags) == exit_status
    printed = capsys.readouterr().out
    assert f"Job {JOB} is [{status}]\none\ntwo\n" in printed


# --- Jobs that exist --------------------------------------------------------------------------------------


def test_job_is_printed_as_json_for_scripts(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.replies = [(200, {"JobId": JOB, "DisplayName": "名前", "Status": "Running"})]
    capsys.readouterr()
    assert dlc("get", "job", JOB, "--workspace_id", "vision", "--show_detail") == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == server.replies[0][1]
    assert "名前" in printed
    assert server.requests[0].path == f"/api/v1/jobs/{JOB}"


def test_job_events_are_printed_beside_the_job(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.replies = [(200, {"JobId": JOB}), (200, {"Events": ["queued"]})]
    capsys.readouterr()
    assert dlc("get", "job", JOB, "--events", "--max_events_num=5") == 0
    assert json.loads(capsys.readouterr().out) == {"JobId": JOB, "Events": ["queued"]}
    assert server.requests[1].query == {"MaxEventsNum": ["5"]}


def test_list_of_jobs_is_in_columns_that_scripts_can_split(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {
        "DisplayName": "a b",
        "JobId": JOB,
        "JobType": "TFJob",
        "WorkspaceId": "vision",
        "Status": "Running",
    }
    server.replies = [(200, {"Jobs": [row, {"JobId": "dlcother", "DisplayName": "長い"}], "TotalCount": 2})]
    capsys.readouterr()
    filters = ("-w", "vision", "-n", "a b*~", "--status", "Running", "--page_num", "1", "--page_size=50")
    assert dlc("get", "job", *filters) == 0
    header, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (header[0], header[1], header[7]) == ("DisplayName", "JobId", "Status")
    assert (first[0], first[1], first[7]) == ("a_b", JOB, "Running")
    assert (second[1], second[7]) == ("dlcother", "-")
    assert server.requests[0].query == {
        "WorkspaceId": ["vision"],
        "DisplayName": ["a b*~"],
        "Status": ["Running"],
        "PageNumber": ["1"],
        "PageSize": ["50"],
    }
    assert dlc("get", "job", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["TotalCount"] == 2


def test_instance_types_are_listed_in_columns(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {
        "InstanceType": "ecs.g6.large",
        "Cpu": 2,
        "Memory": 8,
        "Gpu": 0,
        "GpuType": "",
        "IsAvailable": True,
    }
    server.replies = [(200, {"EcsSpecs": [{**spec, "AcceleratorType": "CPU"}], "TotalCount": 1})]
    capsys.readouterr()
    assert dlc("get", "specs", "--accelerator_type", "CPU", "--page_size=5") == 0
    header, row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert dict(zip(header, row, strict=True)) == {
        **{name: str(value) for name, value in spec.items()},
        "AcceleratorType": "CPU",
        "GpuType": "-",
    }
    [request] = server.requests
    assert (request.path, request.headers["x-acs-action"]) == ("/api/v1/ecsspecs", "ListEcsSpecs")
    assert request.query == {"AcceleratorType": ["CPU"], "PageSize": ["5"]}


def test_quotas_are_listed_by_the_workspace_service(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = [{"Name": "cpu", "Type": "core", "Value": "8"}]
    quota = {"Id": "quota1", "DisplayName": "Night runs", "Mode": "isolate", "Specs": specs}
    resource = {"WorkspaceId": "vision", "ResourceType": "ECS", "Quotas": [quota]}
    server.replies = [(200, {"Resources": [resource]}), (200, {"Resources": []})]
    capsys.readouterr()
    assert dlc("get", "quota", "-w", "vision") == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row == ["quota1", "Night_runs", "vision", "ECS", "isolate", "8", "-", "-"]
    assert dlc("get", "quota", "other") == REFUSED
    assert capsys.readouterr().err == "Quota other not found, or no permission.\n"
    first, second = server.requests
    assert (first.path, first.headers["x-acs-version"]) == ("/api/v1/resources", "2021-02-04")
    assert (first.query["WorkspaceId"], second.query["QuotaIds"]) == (["vision"], ["other"])


def test_stopped_job_is_waited_for(dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.replies = [(200, CREATED), (200, {"Status": "Stopping"}), (200, {"Status": "Stopped"})]
    assert dlc("stop", "job", JOB, "--force") == 0
    assert [(each.method, each.path) for each in server.requests[:2]] == [
        ("POST", f"/api/v1/jobs/{JOB}/stop"),
        ("GET", f"/api/v1/jobs/{JOB}"),
    ]
    assert server.requests[0].body is None
    assert capsys.readouterr().err == f"Job {JOB} is [Stopping]\nJob {JOB} is [Stopped]\n"


def test_deleted_job_is_reported_as_json_on_demand(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert dlc("delete", "job", JOB, "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == CREATED
    assert (server.requests[0].method, server.requests[0].headers["x-acs-action"]) == ("DELETE", "DeleteJob")


def test_log_of_a_pod_is_printed(dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.replies = [(200, {"Logs": ["one\n", "two"]})]
    capsys.readouterr()
    assert (
        dlc("logs", JOB, f"{JOB}-worker-0", "--max_events_num", "5", "--start_time=2026-01-31T08:00:00Z") == 0
    )
    assert capsys.readouterr().out == "one\ntwo\n"
    [request] = server.requests
    assert request.path == f"/api/v1/jobs/{JOB}/pods/{JOB}-worker-0/logs"
    assert request.query == {"MaxLines": ["5"], "StartTime": ["2026-01-31T08:00:00Z"]}


def test_log_without_a_pod_is_that_of_the_first(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.replies = [(200, {"Pods": [{"PodId": "p/0"}]}), (200, {"Logs": ["one"]}), (200, {"Pods": []})]
    assert dlc("logs", JOB) == 0
    assert server.requests[1].path == f"/api/v1/jobs/{JOB}/pods/p%2F0/logs"
    assert dlc("logs", JOB) == REFUSED
    assert "has no pods yet" in capsys.readouterr().err


def test_followed_log_prints_each_line_once_until_the_job_ends(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.replies = [
        (200, {"Status": "Running"}),
        (200, {"Logs": ["1", "same", "same"]}),
        (200, {"Status": "Running"}),
        (200, {"Logs": ["same", "same", "2"]}),
        (503, {}),
        (200, {"Status": "Succeeded"}),
        (200, {"Logs": ["same", "same", "2", "3"]}),
    ]
    capsys.readouterr()
    assert dlc("logs", JOB, "pod", "-f") == 0
    assert capsys.readouterr().out.split() == ["1", "same", "same", "2", "3"]


# --- Failures ---------------------------------------------------------------------------------------------


def test_error_is_printed_in_the_words_of_the_api(
    dlc: Dlc, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {"Code": "InvalidParameter", "Message": "The ResourceId is unknown.", "RequestId": "ABC"}
    server.replies = [(400, error)]
    assert dlc("submit", "tfjob", "--name", "n", "--command", "true") == REFUSED
    assert capsys.readouterr().err == (
        "Error: InvalidParameter (400)\nMessage: The ResourceId is unknown.\nRequestId: ABC\n"
    )


@pytest.mark.parametrize("reply", [(200, "<html>"), (404, "<html>"), (200, [1]), (302, ""), (500, "")])
def test_answer_of_another_service_is_refused(
    dlc: Dlc, server: Server, reply: Reply, capsys: pytest.CaptureFixture[str]
) -> None:
    server.replies = [reply]
    assert dlc("get", "job", JOB) == REFUSED
    assert "is not PAI-DLC's" in capsys.readouterr().err


def test_missing_answer_has_an_exit_status_of_its_own(dlc: Dlc, capsys: pytest.CaptureFixture[str]) -> None:
    assert dlc("get", "job", JOB, "-e", "127.0.0.1:9") == UNREACHABLE
    assert "No answer from http://127.0.0.1:9." in capsys.readouterr().err
