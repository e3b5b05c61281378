"""The commands of docs/kubernetes.md, run as they stand: from a cluster that runs to the first job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from console.home import CHECKOUT
from tests import page_scripts, postgres
from tests.kubernetes import build, console_pods, images
from tests.kubernetes.cluster import Cluster
from tests.page_scripts import MAKE, blocks, mark, with_values
from tests.waiting import wait_for

PAGE: Final = CHECKOUT / "docs" / "kubernetes.md"
FIRST_JOB: Final = "From a cluster to the first job"
IN_CLUSTER: Final = "The console in the cluster"
PROMISED_S: Final = 600
"""What the page says that it takes, for a person."""

PATIENCE_S: Final = 1200
"""Where the machine does much else."""

NAMESPACES: Final = ("job-console-default", "job-console")

OLD_TOKEN: Final = """\
kubectl() {
  [ "$1 $2" = "create token" ] || { command kubectl "$@"; return; }
  command kubectl get secret --namespace job-console --output 'jsonpath={.data.token}' \\
    "$(command kubectl get serviceaccount job-console --namespace job-console \\
      --output 'jsonpath={.secrets[0].name}')" | base64 --decode
}
"""
"""`kubectl create token` is new in 1.24; before, a Secret has the token, as the page says."""


@pytest.fixture
def shell(kubernetes: Cluster, tmp_path: Path) -> Iterator[dict[str, str]]:
    """An admin's kubectl on the PATH; what the page has created is removed in the end."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/kubectl").symlink_to(build.folder() / "kubectl")
    yield {"KUBECONFIG": str(kubernetes.kubeconfig), "KUBECTL": str(tmp_path / "bin")}
    kubernetes.kubectl("delete", "deployment,job", "--all", "--namespace", "job-console", "--wait=false")
    kubernetes.kubectl("delete", "pod", "--all", "--namespace", "job-console", "--grace-period=0", "--force")
    kubernetes.kubectl("delete", "-f", str(CHECKOUT / "deploy/kubernetes/rbac.yaml"), "--ignore-not-found")
    kubernetes.kubectl("delete", "namespace", "--ignore-not-found", *NAMESPACES)
    kubernetes.kubectl("delete", "persistentvolume", "--all")


@pytest.fixture
def urls(kubernetes: Cluster) -> Iterator[dict[str, str]]:
    """PostgreSQL and Redis, as pods reach them."""
    programs = postgres.find_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL server to start (Debian: postgresql)")
    with console_pods.servers(kubernetes, programs) as found:
        yield found


@pytest.mark.timeout(1500)
def test_kubernetes_page_leads_to_the_first_job(
    shell: dict[str, str], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with page_scripts.console(tmp_path, shell) as console:
        own = {"IMAGE": images.BASE, "PORT": console.environ["PORT"]}
        commands = with_values(blocks(PAGE, FIRST_JOB), own)
        begin = f'{MAKE}{OLD_TOKEN}PATH="$KUBECTL:$PATH"\n'
        script = [begin, mark("begun"), *commands, mark("ended")]
        done = page_scripts.run("".join(script), console.environ, PATIENCE_S)
    told = done.stdout + done.stderr
    assert re.search(r"^Hello from rank 0 of 3, master worker-0\.\S+$", done.stdout, re.MULTILINE), told
    assert "Everything is there. Tried: node" in done.stdout, told
    assert re.search(r"^\w{12}  SUCCEEDED .* All replicas succeeded\.$", done.stdout, re.MULTILINE), told
    began, ended = map(int, re.findall(r"^### .*=(\d+)$", done.stdout, re.MULTILINE))
    record_property("docs/kubernetes.md, to the first job", f"{ended - began} s")
    assert ended - began < PROMISED_S


JOB: Final = f"""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: first-job}}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      template:
        spec:
          containers:
            - name: pytorch
              image: {images.BASE}
              command: [sh, -c, 'echo "Hello from a pod"']
"""


class Visitor:
    """Somebody who asks a web pod that is ready, as an ingress would."""

    def __init__(self, kubernetes: Cluster, token: str) -> None:
        self._kubernetes = kubernetes
        self._url = f"http://{wait_for(self._find_addresses, 120)[0]}:8000"
        self._headers = {
            "Host": "127.0.0.1",
            "X-Forwarded-Proto": "https",
            "Authorization": f"Bearer {token}",
        }

    def _find_addresses(self) -> list[str]:
        """Return the addresses of web pods that are ready."""
        found = self._kubernetes.api.get("/api/v1/namespaces/job-console/endpoints/job-console")
        return [each["ip"] for part in found.get("subsets") or () for each in part.get("addresses", ())]

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Return an answer."""
        with self._kubernetes.enter_network():
            return httpx.request(
                method, f"{self._url}{path}", headers=self._headers, json=body, timeout=30, trust_env=False
            )


@pytest.mark.timeout(1500)
def test_console_in_the_cluster_runs_a_job_there(
    urls: dict[str, str],
    shell: dict[str, str],
    kubernetes: Cluster,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    overlay = console_pods.write_overlay(kubernetes, tmp_path)
    with page_scripts.console(tmp_path, shell) as console:
        own = {"MANIFESTS": str(overlay), "KEYS": str(tmp_path / "keys"), **urls}
        begin = f'{MAKE}python() {{ "$PYTHON" "$@"; }}\nPATH="$KUBECTL:$PATH"\n'
        issue = "in_console job-console-server issue_token admin --plain\n"
        commands = with_values(blocks(PAGE, IN_CLUSTER), own)
        script = [begin, mark("begun"), *commands, mark("ended"), issue]
        done = page_scripts.run("".join(script), console.environ, PATIENCE_S)
        told = done.stdout + done.stderr
        assert "First admin: user admin, password" in done.stdout, told
        assert "Everything is there. Tried: node" in done.stdout, told
        *_lines, began, ended, token = re.findall(r"^(?:### .*=)?(\S+)$", done.stdout, re.MULTILINE)
        visitor = Visitor(kubernetes, token)
        wait_for(lambda: visitor.ask("GET", "/healthz").is_success, 120, interval=1)
        answer = visitor.ask("POST", "/api/console/v1/jobs", {"file": JOB, "cluster": "here"})
        assert answer.status_code == 201, answer.text
        job = f"/api/console/v1/jobs/{answer.json()['id']}"
        wait_for(lambda: visitor.ask("GET", job).json()["state"] == "SUCCEEDED", 120, interval=1)
        log = visitor.ask("GET", f"{job}/logs?role=Worker&index=0")
        assert log.text == "Hello from a pod\n"
    record_property("docs/kubernetes.md, the console in the cluster", f"{int(ended) - int(began)} s")
