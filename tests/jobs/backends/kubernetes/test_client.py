"""Requests to a real apiserver, and to what stands between."""

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client import api, connection, credentials
from jobs.backends.kubernetes.client.api import Api, ApiError, Expired, NotConnected, WatchEvent
from jobs.backends.kubernetes.client.connection import ApiConnection, InvalidConnection
from jobs.backends.kubernetes.client.credentials import (
    Certificate,
    ClientCertificate,
    NoCredentials,
    Token,
    TokenFile,
)
from tests.jobs.backends.kubernetes.pods import start_pod
from tests.kubernetes import keys
from tests.kubernetes.cluster import MASTERS, Cluster


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"of": "test"}}, "data": data}


@pytest.fixture
def maps(namespace: str, kubernetes: Cluster) -> Iterator[str]:
    """The path of a namespace's config maps, of which there are none of ours."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    yield path
    kubernetes.api.delete_many(path, labels="of=test")


def test_object_is_created_read_patched_and_deleted(kubernetes: Cluster, maps: str) -> None:
    made = kubernetes.api.create(maps, config_map("one", a="1", b="2"))
    assert kubernetes.api.get(f"{maps}/one")["metadata"]["uid"] == made["metadata"]["uid"]
    changed = kubernetes.api.patch(f"{maps}/one", {"data": {"a": None, "c": "3"}})
    assert changed["data"] == {"b": "2", "c": "3"}
    kubernetes.api.delete(f"{maps}/one")
    with pytest.raises(ApiError) as absent:
        kubernetes.api.get(f"{maps}/one")
    assert absent.value.is_absent
    kubernetes.api.delete(f"{maps}/one")


def test_dry_run_creates_nothing(kubernetes: Cluster, maps: str) -> None:
    kubernetes.api.create(maps, config_map("one"), dry_run=True)
    assert kubernetes.api.list(maps, labels="of=test").items == ()


def test_name_that_exists_is_a_conflict(kubernetes: Cluster, maps: str) -> None:
    kubernetes.api.create(maps, config_map("one"))
    with pytest.raises(ApiError) as refused:
        kubernetes.api.create(maps, config_map("one"))
    assert refused.value.is_conflict
    assert refused.value.reason == "AlreadyExists"


def test_delete_of_another_object_by_the_same_name_leaves_it(kubernetes: Cluster, maps: str) -> None:
    kubernetes.api.create(maps, config_map("one"))
    kubernetes.api.delete(f"{maps}/one", uid="00000000-0000-0000-0000-000000000000")
    uid = kubernetes.api.get(f"{maps}/one")["metadata"]["uid"]
    kubernetes.api.delete(f"{maps}/one", uid=uid)
    assert kubernetes.api.list(maps, labels="of=test").items == ()


def test_invalid_object_is_refused_with_the_fields(kubernetes: Cluster, namespace: str) -> None:
    pod = {
        "metadata": {"name": "bad"},
        "spec": {"containers": [{"name": "main", "image": "x", "ports": [{"containerPort": 99999}]}]},
    }
    with pytest.raises(ApiError) as refused:
        kubernetes.api.create(f"/api/v1/namespaces/{namespace}/pods", pod, dry_run=True)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")
    assert [each.field for each in refused.value.causes] == ["spec.containers[0].ports[0].containerPort"]


def test_list_reads_every_part_and_selects_by_label(kubernetes: Cluster, maps: str) -> None:
    for number in range(7):
        kubernetes.api.create(maps, config_map(f"map{number}"))
    kubernetes.api.create(maps, {"metadata": {"name": "other"}})
    found = kubernetes.api.list(maps, labels="of=test", limit=2)
    assert [each["metadata"]["name"] for each in found.items] == [f"map{number}" for number in range(7)]
    assert found.resource_version
    kubernetes.api.delete_many(maps, labels="of=test")
    assert kubernetes.api.list(maps, labels="of=test").items == ()
    kubernetes.api.delete(f"{maps}/other")
    with pytest.raises(ValueError, match="selector"):
        kubernetes.api.delete_many(maps, labels="")


def test_watch_yields_changes_since_a_version(kubernetes: Cluster, maps: str) -> None:
    since = kubernetes.api.list(maps, labels="of=test").resource_version
    kubernetes.api.create(maps, config_map("one"))
    kubernetes.api.patch(f"{maps}/one", {"data": {"text": "a\u2028b"}})
    kubernetes.api.delete(f"{maps}/one")
    changes: list[WatchEvent] = []
    for change in kubernetes.api.watch(maps, since, labels="of=test", timeout_s=30):
        changes.append(change)
        if change.kind == "DELETED":
            break
    assert [each.kind for each in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert changes[1].object["data"] == {"text": "a\u2028b"}
    following = kubernetes.api.watch(maps, changes[0].resource_version, labels="of=test", timeout_s=30)
    assert next(following).kind == "MODIFIED"
    following.close()  # type: ignore[attr-defined]


def test_watch_without_changes_ends_in_time(kubernetes: Cluster, maps: str) -> None:
    since = kubernetes.api.list(maps).resource_version
    changes = list(kubernetes.api.watch(maps, since, labels="of=test", timeout_s=2))
    assert [each for each in changes if each.kind != "BOOKMARK"] == []


def test_forgotten_version_is_expired(kubernetes: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for name in ("one", "two"):
        kubernetes.api.create(path, {"metadata": {"name": name}})
    before = kubernetes.api.list(path).resource_version
    for name in ("three", "four"):
        kubernetes.api.create(path, {"metadata": {"name": name}})
    kubernetes.compact()
    with pytest.raises(Expired):
        list(kubernetes.api.watch(path, before, timeout_s=5))


def test_missing_right_is_told(kubernetes: Cluster, namespace: str, maps: str) -> None:
    stranger = Api(replace(kubernetes.connection, credentials=Token(token_of(kubernetes, namespace))))
    with pytest.raises(ApiError) as refused:
        stranger.list(maps)
    assert refused.value.status == HTTPStatus.FORBIDDEN
    assert "configmaps" in refused.value.message


def token_of(kubernetes: Cluster, namespace: str, **spec: Any) -> str:
    """Return a token of a namespace's default account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    return str(kubernetes.api.create(path, {"spec": spec})["status"]["token"])


# --- credentials ---------------------------------------------------------------------------------------


def who(connection: ApiConnection) -> str:
    """Return as whom a connection is known: whoever is unknown may not ask."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    spec = {"nonResourceAttributes": {"path": "/nowhere", "verb": "get"}}
    answer = Api(connection).create(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {**review, "spec": spec}
    )
    return "admin" if answer["status"]["allowed"] else "somebody"


def test_token_file_is_read_again_for_each_request(
    kubernetes: Cluster, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    mine = replace(kubernetes.connection, credentials=TokenFile(file))
    with pytest.raises(NoCredentials):
        who(mine)
    file.write_text("expired\n")
    with pytest.raises(NotConnected, match="401"):
        who(mine)
    file.write_text(f"{token_of(kubernetes, namespace)}\n")
    assert who(mine) == "somebody"
    file.write_text(f"{kubernetes.token}\n")
    assert who(mine) == "admin"


def test_client_certificate_is_shown(kubernetes: Cluster) -> None:
    pem, key = kubernetes.authority.issue_client("alice", MASTERS)
    assert (
        who(replace(kubernetes.connection, credentials=ClientCertificate(Certificate(pem, key)))) == "admin"
    )
    pem, key = keys.Authority().issue_client("mallory", MASTERS)
    with pytest.raises(NotConnected, match="401"):
        who(replace(kubernetes.connection, credentials=ClientCertificate(Certificate(pem, key))))


def test_server_that_another_authority_signed_is_refused(kubernetes: Cluster) -> None:
    with pytest.raises(NotConnected, match=r"(?i)certificate verify failed"):
        who(replace(kubernetes.connection, ca=keys.Authority().pem))
    assert who(replace(kubernetes.connection, server_name="kubernetes.default.svc")) == "admin"
    with pytest.raises(NotConnected, match=r"(?i)hostname"):
        who(replace(kubernetes.connection, server_name="kubernetes.example.org"))


def test_invalid_authority_is_named_without_a_request(kubernetes: Cluster) -> None:
    with pytest.raises(InvalidConnection, match="certificate"):
        who(replace(kubernetes.connection, ca="-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n"))


def plugin(folder: Path, answer: str, name: str = "plugin") -> Path:
    """Write a program that prints credentials, and counts how often."""
    program = folder / name
    program.write_text(
        f"#!{sys.executable} -IS\nimport os, sys\nopen({str(folder / 'calls')!r}, 'a').write('x')\n"
        f"assert 'KUBERNETES_EXEC_INFO' in os.environ and os.environ['REGION'] == 'here'\n"
        f"assert sys.argv[1:] == ['get-token', '$(touch pwned)']\n{answer}"
    )
    program.chmod(0o755)
    return program


def kubeconfig(kubernetes: Cluster, folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """Write a kubeconfig file with one context."""
    about = {"server": kubernetes.server, "certificate-authority": "ca.crt", **cluster}
    (folder / "ca.crt").write_text(kubernetes.ca)
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": about}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return path


def exec_user(program: Path) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": str(program),
            "args": ["get-token", "$(touch pwned)"],
            "env": [{"name": "REGION", "value": "here"}],
        }
    }


def printing(status: dict[str, Any]) -> str:
    return f"print({json.dumps(json.dumps({'kind': 'ExecCredential', 'status': status}))})\n"


def test_exec_plugin_is_run_again_only_when_its_token_is_not_accepted(
    kubernetes: Cluster, tmp_path: Path
) -> None:
    program = plugin(tmp_path, printing({"token": kubernetes.token}))
    found = connection.from_kubeconfig(kubeconfig(kubernetes, tmp_path, exec_user(program)))
    assert who(found) == who(found) == "admin"
    assert (tmp_path / "calls").read_text() == "x"
    plugin(tmp_path, printing({"token": "expired"}))
    found.credentials.forget()
    with pytest.raises(NotConnected, match="401"):
        who(found)
    plugin(tmp_path, printing({"token": kubernetes.token}))
    assert who(found) == "admin"
    assert (tmp_path / "calls").read_text() == "xxx"


def test_exec_plugin_may_print_a_certificate(kubernetes: Cluster, tmp_path: Path) -> None:
    pem, key = kubernetes.authority.issue_client("alice", MASTERS)
    program = plugin(tmp_path, printing({"clientCertificateData": pem, "clientKeyData": key}))
    assert who(connection.from_kubeconfig(kubeconfig(kubernetes, tmp_path, exec_user(program)))) == "admin"


@pytest.mark.parametrize(
    "answer", ["print('secret')", "print('{}')", "sys.exit('secret')", "import time; time.sleep(60)"]
)
def test_exec_plugin_that_fails_is_named_without_its_output(
    kubernetes: Cluster, tmp_path: Path, answer: str
) -> None:
    found = connection.from_kubeconfig(kubeconfig(kubernetes, tmp_path, exec_user(plugin(tmp_path, answer))))
    with pytest.raises(NoCredentials) as failed:
        Api(found, timeout_s=2).get("/version")
    assert "plugin" in str(failed.value)
    assert "secret" not in str(failed.value)


def test_kubeconfig_of_a_cluster_is_used(kubernetes: Cluster) -> None:
    assert who(connection.from_kubeconfig(kubernetes.kubeconfig)) == "admin"
    assert who(connection.from_kubeconfig(kubernetes.kubeconfig, "admin")) == "admin"
    with pytest.raises(InvalidConnection, match="other"):
        connection.from_kubeconfig(kubernetes.kubeconfig, "other")


@pytest.mark.parametrize(
    ("user", "cluster", "named"),
    [
        ({"as": "root"}, {}, "as"),
        ({"username": "admin", "password": "secret"}, {}, "username"),
        ({"client-certificate-data": "?"}, {}, "client-certificate-data"),
        ({"client-certificate": "absent.crt"}, {}, "absent.crt"),
        ({}, {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        ({}, {"server": "http://example.org"}, "https"),
    ],
)
def test_kubeconfig_that_is_not_supported_names_the_key(
    kubernetes: Cluster, tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidConnection, match=named) as refused:
        connection.from_kubeconfig(kubeconfig(kubernetes, tmp_path, user, **cluster))
    assert "secret" not in str(refused.value)


def test_account_of_the_console_s_pod_is_used(
    kubernetes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidConnection, match="pod"):
        connection.in_cluster(tmp_path)
    (tmp_path / "ca.crt").write_text(kubernetes.ca)
    (tmp_path / "token").write_text(kubernetes.token)
    host, port = kubernetes.server.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    assert who(connection.in_cluster(tmp_path)) == "admin"


def test_no_repr_shows_a_secret(kubernetes: Cluster) -> None:
    pem, key = kubernetes.authority.issue_client("alice", MASTERS)
    for each in (Token("secret"), ClientCertificate(Certificate(pem, f"secret{key}"))):
        assert "secret" not in repr(replace(kubernetes.connection, credentials=each))
    found = credentials.ExecPlugin(("p",), "v1", (("KEY", "secret"),))
    assert "secret" not in repr(found)


# --- no answer -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def answering(status: int, text: str, *, silent: bool = False) -> Iterator[ApiConnection]:
    """Give a server that gives everybody this answer: what a proxy or a busy apiserver would say."""
    speaks = threading.Event()
    if not silent:
        speaks.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            speaks.wait()
            if silent:
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False  # so that its end waits for its answers

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield ApiConnection(f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            speaks.set()
            server.shutdown()
            thread.join()


def said(code: int, reason: str) -> str:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "busy"})


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, said(429, "TooManyRequests")),
        (500, said(500, "InternalError")),
        (503, "<html>"),
        (404, "404 page not found\n"),
        (404, "<html>no such site</html>"),
        (302, ""),
        (200, "<html>sign in</html>"),
        (200, "[]"),
    ],
)
def test_answer_that_says_nothing_about_the_object_is_unreachable(status: int, text: str) -> None:
    with answering(status, text) as made, pytest.raises(Unreachable):
        Api(made).get("/api/v1/namespaces/x/pods/y")


def test_silent_server_is_unreachable_in_time() -> None:
    with answering(200, "{}", silent=True) as made, pytest.raises(Unreachable):
        Api(made, timeout_s=0.2).get("/version")


def test_nobody_there_is_certainly_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotConnected):
        Api(ApiConnection(f"http://127.0.0.1:{port}")).create("/api/v1/namespaces", {})


def test_watch_whose_connection_breaks_is_unreachable() -> None:
    event = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5"}}}
    with answering(200, json.dumps(event) + '\n{"type": "MOD') as made:
        changes = Api(made).watch("/api/v1/pods", "1", timeout_s=1)
        assert next(changes).resource_version == "5"
        with pytest.raises(Unreachable):
            next(changes)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a?b", "a%2fb", "a#b"])
def test_path_takes_no_name_that_leads_elsewhere(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        api.path("/api/v1/namespaces/{}/pods/{}", "x", name)


# --- logs ----------------------------------------------------------------------------------------------


def test_log_of_a_container_is_read_with_times(kubernetes: Cluster, namespace: str) -> None:
    writer = start_pod(kubernetes, namespace, "echo one; echo two")
    with pytest.raises(ApiError):
        list(kubernetes.api.read_log(namespace, "absent", "main"))
    text = b"".join(kubernetes.api.read_log(namespace, writer, "main", follow=True)).decode()
    lines = [line.split(" ", 1) for line in text.splitlines()]
    assert [line for _time, line in lines] == ["one", "two"]
    since = list(kubernetes.api.read_log(namespace, writer, "main", since="2999-01-01T00:00:00Z"))
    assert since == []
