"""The commands of docs/kubernetes.md, run as they stand: from a cluster that runs to the first job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from console.home import CHECKOUT
from tests import page_scripts
from tests.kubernetes import build, images
from tests.kubernetes.cluster import Cluster
from tests.page_scripts import MAKE, blocks, mark, with_values

PAGE: Final = CHECKOUT / "docs" / "kubernetes.md"
FIRST_JOB: Final = "From a cluster to the first job"
PROMISED_S: Final = 600
"""What the page says that it takes, for a person."""

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
    kubernetes.kubectl("delete", "-f", str(CHECKOUT / "deploy/kubernetes/rbac.yaml"), "--ignore-not-found")
    kubernetes.kubectl("delete", "namespace", "--ignore-not-found", *NAMESPACES)


@pytest.mark.timeout(900)
def test_kubernetes_page_leads_to_the_first_job(
    shell: dict[str, str], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with page_scripts.console(tmp_path, shell) as console:
        own = {"IMAGE": images.BASE, "PORT": console.environ["PORT"]}
        commands = with_values(blocks(PAGE, FIRST_JOB), own)
        begin = f'{MAKE}{OLD_TOKEN}PATH="$KUBECTL:$PATH"\n'
        script = [begin, mark("begun"), *commands, mark("ended")]
        done = page_scripts.run("".join(script), console.environ, PROMISED_S)
    told = done.stdout + done.stderr
    assert re.search(r"^Hello from rank 0 of 3, master worker-0\.\S+$", done.stdout, re.MULTILINE), told
    assert "Everything is there. Tried: node1, node2\n" in done.stdout, told
    assert re.search(r"^\w{12}  SUCCEEDED .* All replicas succeeded\.$", done.stdout, re.MULTILINE), told
    began, ended = map(int, re.findall(r"^### .*=(\d+)$", done.stdout, re.MULTILINE))
    record_property("docs/kubernetes.md, to the first job", f"{ended - began} s")
