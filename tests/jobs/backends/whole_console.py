"""A whole console with one cluster: a seed through the vendor's SDK, and the seed's Jupyter in Chromium."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import expect

from jobs.client.python_client import Client
from tests.browser import PATIENCE_MS, chromium
from tests.clients.test_dlc_sdk import NEWEST, Sdk
from tests.flows.test_jupyter import JUPYTER, NEW_NOTEBOOK, START_S, run_cell
from tests.screenshots import sign_in
from tests.seeds import SEEDS
from tests.stack import ADMIN, Stack
from tests.waiting import wait_for

CLUSTER: Final = "engine"
HELLO: Final = next(seed.text for seed in SEEDS if seed.file == "dlc-sdk-quota.json")

CREATE: Final = """
body = json.loads(os.environ["BODY"])
job = client.create_job(request_of(body)).body.job_id
say("succeeded", wait(job, *ENDS))
pod = get(job).pods[0]
say("logs", client.get_pod_logs(job, pod.pod_id, models.GetPodLogsRequest(max_lines=10)).body)
"""

KEY: Final = """
import json
from quotas.accounts import access_keys, tokens
from quotas.models import User

issued = access_keys.issue(User.objects.get(username="{name}"), scopes=tokens.SCOPES)
print(json.dumps([issued.row.key_id, issued.secret]))
"""


def add_cluster(stack: Stack, backend: str, config: Mapping[str, Any]) -> None:
    """Give the console a cluster with that backend, and a workspace whose jobs run there."""
    stack.manage("add_cluster", CLUSTER, "--backend", backend, "--config", json.dumps(config))
    site = {
        "version": 1,
        "gpu_types": {"TITANX": ["titan"]},
        "workspaces": {
            "lab": {"name": "Lab", "members": {ADMIN: "operator"}, "quotas": {CLUSTER: {"all": {}}}},
        },
    }
    stack.manage("apply", "-", stdin=json.dumps(site))


def run_seed_by_sdk(stack: Stack, change: Mapping[str, Any]) -> str:
    """Create the sample of PAI-DLC's page by its SDK; return its log.  `change` is of its only role."""
    body = json.loads(HELLO)
    body["JobSpecs"][0].update(change)
    body |= {"WorkspaceId": "lab", "ResourceId": "all"}
    key, secret = json.loads(stack.python(KEY.format(name=ADMIN)))
    environ = {
        "ENDPOINT": f"127.0.0.1:{stack.port}",
        "ALIBABA_CLOUD_ACCESS_KEY_ID": key,
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET": secret,
    }
    said = Sdk(NEWEST, environ).run(CREATE, BODY=json.dumps(body))
    assert said["succeeded"]["Status"] == "Succeeded", said
    return str(said["logs"]["Logs"])


def run_cell_in_seeds_jupyter(stack: Stack, change: Mapping[str, Any], role: Mapping[str, Any]) -> None:
    """Submit the Jupyter job of the SCM page, open it from the job's page in Chromium, and run a cell in it.

    `change` is of the file, and `role` of its only role.
    """
    file = {**json.loads(JUPYTER), **change}
    file["taskRoles"][0].update(role)
    token = json.loads(stack.manage("issue_token", ADMIN))["token"]
    with Client(stack.base_url, token) as client:
        job = client.submit(json.dumps(file), cluster=CLUSTER).id
        wait_for(lambda: client.get(job).state != "PENDING", START_S, 0.5)
    with chromium() as browser, closing(browser.new_context(locale="en-GB", base_url=stack.base_url)) as own:
        own.set_default_timeout(PATIENCE_MS)
        page = own.new_page()
        sign_in(page, stack)
        page.goto(f"/jobs/{job}")
        link = page.get_by_role("link", name="Open jupyter")
        expect(link).to_be_visible(timeout=1000 * START_S)
        with own.expect_page() as opening:
            link.click()
        notebook = opening.value
        expect(notebook).to_have_title("Home", timeout=1000 * START_S)
        host = urlsplit(notebook.url).netloc
        assert host.endswith(f".apps.localhost:{stack.port}")
        assert notebook.evaluate(NEW_NOTEBOOK) == 201
        notebook.goto(f"http://{host}/notebooks/cell.ipynb")
        run_cell(notebook)


def inherited_path(*first: str) -> str:
    """Return a PATH with some folders in front of this process's own."""
    return ":".join((*first, os.environ["PATH"]))
