"""The samples of PAI-DLC's pages with each release of its SDK, as they stand, on this machine and on Slurm.

The program of page 000 is unchanged but for endpoint and protocol; the request of page 001 and the
preemptible jobs of page 003 are created as they are printed.  One console answers all of them at once, since
most of them sleep; an admin has registered what they name.  The page of the program lies beside the checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from console.home import CHECKOUT
from jobs.client.errors import InvalidRequestError
from jobs.client.python_client import Client
from tests import mission
from tests.clients import environments
from tests.clients.test_dlc_sdk import RELEASES, Sdk, printed_samples
from tests.jobs.backends.local import goods
from tests.scenes import MACHINE
from tests.seeds import SEEDS
from tests.slurm import Slurm
from tests.stack import Stack, running
from tests.waiting import wait_for

pytestmark = pytest.mark.once

PAGES: Final = CHECKOUT.parent / "shared" / "seeds"
ENDPOINTS: Final = (
    '"aiworkspace.{}.aliyuncs.com".format(region_id)',
    "'pai-dlc.{}.aliyuncs.com'.format(region_id)",
)
STORAGE: Final = "nas://***.cn-hangzhou"
"""The address of the program's dataset, with the page's own placeholder."""

CLUSTERS: Final = ("local", "hpc")
SPOT_WORKSPACE: Final = "12****"
REQUEST: Final = "001-dlc-tfjob.json"
SPOT: Final = ("003-dlc-sdk-spot-discount.json", "003-dlc-sdk-spot-price.json")
DATA: Final = Path("/mnt/data")
"""The folder of the machine that the command of page 003 lists: the page's jobs mount no dataset."""

LIMIT_S: Final = 180
CREATE: Final = """
made = {name: client.create_job(request_of(body)).body.job_id
        for name, body in json.loads(os.environ["SAMPLES"]).items()}
print(json.dumps(["created", sorted(made)]), flush=True)
until = time.monotonic() + float(os.environ["LIMIT_S"])
while any(get(job).status not in ENDS for job in made.values()) and time.monotonic() < until:
    time.sleep(1)
for name, job in made.items():
    ended = get(job)
    if ended.status != "Succeeded":
        first = ended.pods[0].pod_id
        say("log", client.get_pod_logs(job, first, models.GetPodLogsRequest(max_lines=50)).body)
    say(name, {"status": ended.status, "reason": ended.reason_code, "replicas": len(ended.pods)})
say("listed", sorted(names(workspace_id="12****", show_own=True)))
"""


def page() -> str:
    """Return the page's text."""
    found = sorted(PAGES.glob("000_*.txt")) if PAGES.is_dir() else []
    if not found:
        pytest.skip("the vendor's page is not beside the checkout")
    return found[0].read_text(encoding="utf-8")


def program(endpoint: str) -> str:
    """Return the first program of the page, pointed at `endpoint`."""
    text = page()
    start, last = text.index("#!/usr/bin/env python3"), "    main()\n"
    code = text[start : text.index(last, start) + len(last)]
    for address in ENDPOINTS:
        assert code.count(address) == 1
        code = code.replace(address, f"'{endpoint}', protocol='http'")
    return code


@pytest.fixture(scope="module")
def files() -> Iterator[Path]:
    """A folder of this site with what the samples name; jobs run as somebody else.

    `nas` stands for the vendor's file system, `sets` for a dataset, `repo` is a repository with a package
    index.
    """
    if os.geteuid():
        pytest.skip("only root makes the folder /mnt/data")
    made = Path(tempfile.mkdtemp(prefix="job-console-test-", dir="/var/tmp"))
    made.chmod(0o755)
    for name in ("nas", "sets"):
        (made / name).mkdir()
    (made / "nas" / "a-file-of-the-dataset").touch()
    (made / "sets" / "train").write_text("1 2 3\n")
    goods.repository(made / "repo")
    goods.wheel(made / "repo", "numpy", "1.16.1")
    (made / "repo" / "requirements.txt").write_text("--no-index\n--find-links .\n")
    (made / "repo" / "mnist.py").write_text("import numpy\nprint(open('/root/data/nas1/train').read())\n")
    goods.git(made / "repo", "add", ".")
    goods.git(made / "repo", "commit", "--quiet", "--message", "mnist")
    goods.git(made / "repo", "branch", "--move", "master")
    has_data = DATA.exists()
    DATA.mkdir(exist_ok=True)
    yield made
    shutil.rmtree(made)
    if not has_data:
        DATA.rmdir()


def person(release: str, cluster: str) -> str:
    """Return the person who runs the samples with a release on a cluster, in a workspace of the same name."""
    return f"{cluster}-{release.replace('.', '-')}"


PEOPLE: Final = {(release, cluster): person(release, cluster) for cluster in CLUSTERS for release in RELEASES}


AUTHOR: Final = "author"
"""Who submits the job files of the pages."""


def site(spot_cluster: str) -> str:
    """Return the site's file: a workspace of each person, and one of all whose jobs are preemptible."""
    usual = {
        name: {"name": f"A team: {name}", "members": {name: "operator"}, "quotas": {cluster: {"all": {}}}}
        for (_release, cluster), name in PEOPLE.items()
    }
    cheap = {
        cluster: {"cheap": {"source": "preemptible", "accepts_jobs": cluster == spot_cluster}}
        for cluster in CLUSTERS
    }
    spot = {
        "name": "Spot",
        "vendor_id": SPOT_WORKSPACE,
        "members": dict.fromkeys(PEOPLE.values(), "developer"),
        "quotas": cheap,
    }
    files = {"members": {AUTHOR: "developer"}, "quotas": {cluster: {"all": {}} for cluster in CLUSTERS}}
    sizes = [
        {"name": name, "cores": 1, "memory_gib": 1, **({"gpus": gpus} if gpus else {})}
        for name, gpus in (
            ("ecs.c6.large", {}),
            ("ecs.g7.xlarge", {}),
            ("ecs.gn6e-c12g1.3xlarge", {"V100": 1}),
        )
    ]
    prices = {"spot_prices": [{"gpu_type": "", "market": 0.01, "price": 0.002}]}
    return json.dumps(
        {
            "version": 1,
            "gpu_types": {"V100": ["a100"], "TITANX": ["titan"]},
            "clusters": dict.fromkeys(CLUSTERS, prices),
            "specs": sizes,
            "workspaces": {**usual, "spot": spot, "files": files},
        }
    )


REGISTER: Final = """
from jobs.models import CodeSource, Dataset, DatasetVersion
from quotas.models import User

for name in {people!r}:
    User.objects.create_user(name)
CodeSource.objects.create(key="code-****", name="mnist", repo="file://{files}/repo", mount_path="/root/code")
dataset = Dataset(key="d-*****", name="nas1", source="host", mount_path="/root/data/nas1")
dataset.save()
DatasetVersion.objects.create(dataset=dataset, number=1, uri="{files}/sets", is_default=True)
"""


@pytest.fixture(scope="module")
def stack(files: Path, slurm: Slurm) -> Iterator[Stack]:
    """A console with this machine and a Slurm, where an admin registered what the samples name."""
    folders = {str(files): {"workspaces": ["*"], "write": True}}
    local = {**json.loads(MACHINE["CONSOLE_LOCAL"]), "folders": folders}
    local["gpus"] = {"V100": 3 * len(RELEASES), "TITANX": 1}
    config = {"configuration": str(slurm.configuration), "allow_plain": True}
    with running({**MACHINE, "CONSOLE_LOCAL": json.dumps(local)}) as started:
        started.manage("add_cluster", "hpc", "--title", "HPC", "--config", json.dumps(config))
        started.python(REGISTER.format(people=[*PEOPLE.values(), AUTHOR], files=files))
        mapped = {"version": 1, "storage": {STORAGE: {"folder": str(files / "nas")}}}
        started.manage("apply", "-", stdin=json.dumps(mapped))
        started.manage("apply", "-", stdin=site("local"))
        yield started


@dataclass(frozen=True, slots=True)
class Caller:
    """A person with an access key, who calls the console with a release of the SDK."""

    stack: Stack
    release: str
    environ: Mapping[str, str]

    def run_program(self) -> str:
        """Run the program of page 000; return what it printed."""
        inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        done = subprocess.run(
            [str(environments.python(f"dlc-{self.release}")), "-c", program(self.environ["ENDPOINT"])],
            env={**inherited, **self.environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def create_samples(self) -> dict[str, Any]:
        """Create the samples of pages 001 and 003; return what became of them."""
        samples = {name: body for name, body in printed_samples().items() if name in (REQUEST, *SPOT)}
        environ = {"SAMPLES": json.dumps(samples), "LIMIT_S": str(LIMIT_S)}
        return Sdk(self.release, dict(self.environ)).run(CREATE, **environ)


KEYS: Final = """
import json
from quotas.accounts import access_keys, tokens
from quotas.models import User

for person in User.objects.exclude(is_superuser=True):
    issued = access_keys.issue(person, scopes=tokens.SCOPES)
    print(json.dumps([person.username, issued.row.key_id, issued.secret]))
"""


@dataclass(frozen=True, slots=True)
class Runs:
    """What the programs and the samples of each release did on each cluster."""

    programs: Mapping[tuple[str, str], Future[str]]
    samples: Mapping[tuple[str, str], Future[dict[str, Any]]]


@pytest.fixture(scope="module")
def runs(stack: Stack) -> Iterator[Runs]:
    """Everything at once; preemptible jobs go to this machine first, and then to Slurm."""
    page()
    issued = {name: keys for name, *keys in map(json.loads, stack.python(KEYS).splitlines())}
    names = ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET")
    endpoint = {"ENDPOINT": f"127.0.0.1:{stack.port}"}
    callers = {
        place: Caller(stack, place[0], {**endpoint, **dict(zip(names, issued[name], strict=True))})
        for place, name in PEOPLE.items()
    }
    with ThreadPoolExecutor(2 * len(PEOPLE)) as threads:
        programs = {place: threads.submit(caller.run_program) for place, caller in callers.items()}
        samples: dict[tuple[str, str], Future[dict[str, Any]]] = {}
        for number, cluster in enumerate(CLUSTERS, 1):
            mine = {place: caller for place, caller in callers.items() if place[1] == cluster}
            samples |= {place: threads.submit(caller.create_samples) for place, caller in mine.items()}
            wait_for(lambda: count_spot_jobs(stack) == number * len(SPOT) * len(RELEASES), 300, 0.5)  # noqa: B023 - used up here
            stack.manage("apply", "-", stdin=site("hpc"))
        yield Runs(programs, samples)


def count_spot_jobs(stack: Stack) -> int:
    """Return how many preemptible jobs there are."""
    return len(jobs(stack, "sample-spot-job"))


def jobs(stack: Stack, name: str) -> list[dict[str, Any]]:
    """Return the jobs of a name that were created by the SDK."""
    with closing(stack.client()) as client:
        found = client.get("/api/console/v1/jobs", params={"name": name}).raise_for_status().json()
    return [job for job in found["jobs"] if job["owner"] != AUTHOR]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("release", RELEASES)
def test_program_of_the_page_ends_succeeded(runs: Runs, release: str, cluster: str) -> None:
    printed = runs.programs[release, cluster].result()
    assert ") is Succeeded\n" in printed
    listed = printed.partition("-------- List Jobs ----------")[2]
    assert "sample-dlc-job dlc" in listed
    assert "Succeeded TFJob" in listed


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("release", RELEASES)
def test_samples_that_name_things_of_the_site_succeed_unchanged(
    runs: Runs, release: str, cluster: str
) -> None:
    said = runs.samples[release, cluster].result()
    assert said[REQUEST] == {"status": "Succeeded", "reason": "JobSucceeded", "replicas": 3}, said.get("log")
    for name in SPOT:
        assert said[name] == {"status": "Succeeded", "reason": "JobSucceeded", "replicas": 1}
    assert set(said["listed"]) == {"sample-spot-job"}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_job_files_of_the_pages_run_or_are_refused_with_what_is_missing(stack: Stack, cluster: str) -> None:
    """A file that goes on for long is stopped once it has said its first words."""
    token = json.loads(stack.manage("issue_token", AUTHOR))["token"]
    with Client(stack.base_url, token) as client:
        started, outcomes = {}, {}
        for seed in SEEDS:
            if seed.says:
                started[seed] = client.submit(seed.text, cluster=cluster).id
            elif str(seed) != REQUEST:  # which finds here what it names
                with pytest.raises(InvalidRequestError, match=re.escape(seed.lacks)) as refused:
                    client.submit(seed.text, cluster=cluster)
                outcomes[str(seed)] = f"refused at check time: {refused.value}"
        for seed, job in started.items():
            wait_for(lambda: seed.says.encode() in b"".join(client.logs(job)), 60, 0.5)  # noqa: B023 - used up here
            if "sleep" in seed.text:
                client.stop(job)
        ends = {seed: client.wait(job, 60).state for seed, job in started.items()}
    assert ends == {seed: "STOPPED" if "sleep" in seed.text else "SUCCEEDED" for seed in started}
    outcomes |= {str(seed): f"{state} after “{seed.says}”" for seed, state in ends.items()}
    mission.publish(mission.sample_table(cluster, outcomes))


def test_samples_run_on_the_cluster_of_their_quota(runs: Runs, stack: Stack) -> None:
    wait(runs.programs.values())
    wait(runs.samples.values())
    for name, count in (("sample-dlc-job", 1), ("tf-mnist-test", 1), ("sample-spot-job", len(SPOT))):
        ran = sorted((job["cluster"], job["owner"].partition("-")[0]) for job in jobs(stack, name))
        assert ran == sorted([(cluster, cluster) for cluster in CLUSTERS for _each in RELEASES] * count), name
