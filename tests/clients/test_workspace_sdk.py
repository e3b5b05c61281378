"""Alibaba's own client of the workspace service, release 3.0.1, against a fresh console."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from jobs.assets.official_images import OFFICIAL_IMAGES
from jobs.models import CodeSource, Dataset, Image
from quotas.accounts import access_keys, tokens
from quotas.models import User, Workspace
from tests.clients import environments
from tests.serving import web_server

ENVIRONMENTS: Final = ("dlc-1.4.0", "dlc-1.11.6")
"""Both have release 3.0.1 of alibabacloud_aiworkspace20210204."""

PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

PREFACE: Final = """
import json, os
from alibabacloud_aiworkspace20210204 import models
from alibabacloud_aiworkspace20210204.client import Client
from alibabacloud_credentials.client import Client as Credentials
from alibabacloud_tea_openapi.models import Config
from Tea.exceptions import TeaException

client = Client(Config(credential=Credentials(), region_id="cn-hangzhou",
                       endpoint=os.environ["ENDPOINT"], protocol="http"))

def say(body):
    print(json.dumps(body.to_map()))

def refused(call, *arguments):
    try:
        call(*arguments)
    except TeaException as error:
        print(json.dumps({"code": error.code, "message": error.message, "status": error.statusCode}))
"""

Run = Callable[[str], list[Any]]
"""Runs Python with a client; returns the objects that it printed."""


@pytest.fixture
def endpoint(transactional_db: None, settings: LazySettings) -> Iterator[str]:
    settings.DEBUG = True
    call_command("bootstrap", verbosity=0)
    with web_server() as url:
        yield url.removeprefix("http://")


@pytest.fixture(params=ENVIRONMENTS)
def interpreter(request: pytest.FixtureRequest) -> str:
    return str(environments.python(request.param))


@pytest.fixture
def run(endpoint: str, interpreter: str) -> Run:
    """The client as the first admin."""
    return runner(endpoint, interpreter, User.objects.get())


def runner(endpoint: str, interpreter: str, user: User, scopes: Iterable[str] = tokens.SCOPES) -> Run:
    issued = access_keys.issue(user, scopes=scopes)
    inherited = {name: value for name, value in os.environ.items() if name.lower() not in PROXIES}
    environ = {
        **inherited,
        "ENDPOINT": endpoint,
        "ALIBABA_CLOUD_ACCESS_KEY_ID": issued.row.key_id,
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET": issued.secret,
    }

    def run(code: str) -> list[Any]:
        done = subprocess.run(
            [interpreter, "-c", PREFACE + code],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_sdk_makes_the_calls_of_the_sample_on_a_fresh_console(run: Run) -> None:
    sample = """
workspaces = client.list_workspaces(models.ListWorkspacesRequest(
    page_number=1, page_size=1, workspace_name="", module_list="PAI"))
say(workspaces.body)
workspace_id = workspaces.body.workspaces[0].workspace_id
say(client.list_images(models.ListImagesRequest(labels=",".join([
    "system.supported.dlc=true", "system.framework=Tensorflow 1.15",
    "system.pythonVersion=3.6", "system.chipType=CPU"]))).body)
wanted = models.ListDatasetsRequest(
    workspace_id=workspace_id, name="example-nas-data", properties="DIRECTORY")
say(client.list_datasets(wanted).body)
say(client.create_dataset(models.CreateDatasetRequest(
    workspace_id=workspace_id, name="example-nas-data", data_type="COMMON", data_source_type="NAS",
    property="DIRECTORY", uri="nas://***.cn-hangzhou/", accessibility="PRIVATE", source_type="USER",
    options=json.dumps({"mountPath": "/mnt/data/nas"}))).body)
say(client.list_datasets(wanted).body)
say(client.list_code_sources(models.ListCodeSourcesRequest(workspace_id=workspace_id)).body)
"""
    workspaces, images, none, created, datasets, code_sources = run(sample)
    assert [each["WorkspaceId"] for each in workspaces["Workspaces"]] == [Workspace.objects.get().slug]
    assert images["Images"][0]["ImageUri"] == OFFICIAL_IMAGES[0].address
    assert none["Datasets"] == []
    assert [each["DatasetId"] for each in datasets["Datasets"]] == [created["DatasetId"]]
    assert json.loads(datasets["Datasets"][0]["Options"]) == {"mountPath": "/mnt/data/nas"}
    assert code_sources["CodeSources"] == []


def test_sdk_creates_reads_changes_and_removes_assets(run: Run) -> None:
    code = """
label = models.AddImageRequestLabels(key="system.framework", value="PyTorch 2.4")
image = client.add_image(models.AddImageRequest(
    name="torch", image_uri="registry.example.org/torch:2.4", workspace_id="default", labels=[label])).body
say(client.get_image(image.image_id, models.GetImageRequest(verbose=True)).body)
say(client.list_image_labels(models.ListImageLabelsRequest(label_keys="system.framework")).body)
client.publish_image(image.image_id)
client.remove_image(image.image_id)
source = client.create_code_source(models.CreateCodeSourceRequest(
    display_name="trainer", code_repo="https://git.example.org/trainer.git", code_branch="main",
    code_repo_access_token="canary", workspace_id="default")).body
say(client.get_code_source(source.code_source_id).body)
client.delete_code_source(source.code_source_id)
dataset = client.create_dataset(models.CreateDatasetRequest(
    name="coco", data_source_type="OSS", uri="oss://bucket.oss-cn-hangzhou.aliyuncs.com/coco/",
    workspace_id="default")).body
client.update_dataset(dataset.dataset_id, models.UpdateDatasetRequest(name="COCO"))
say(client.get_dataset(dataset.dataset_id).body)
client.delete_dataset(dataset.dataset_id)
"""
    image, labels, source, dataset = run(code)
    assert {"Key": "system.framework", "Value": "PyTorch 2.4"} in image["Labels"]
    assert "PyTorch 2.4" in {each["Value"] for each in labels["Labels"]}
    assert (source["CodeBranch"], "canary" in json.dumps(source)) == ("main", False)
    assert (dataset["Name"], dataset["DataSourceType"]) == ("COCO", "OSS")
    assert not Image.objects.filter(official=False).exists()
    assert not CodeSource.objects.exists()
    assert not Dataset.objects.exists()


def test_sdk_reads_workspaces_members_and_quotas(run: Run) -> None:
    code = """
say(client.create_workspace(models.CreateWorkspaceRequest(
    workspace_name="vision", display_name="Vision", description="Eyes", env_types=["prod"])).body)
say(client.get_workspace("vision", models.GetWorkspaceRequest(verbose=True)).body)
say(client.get_default_workspace(models.GetDefaultWorkspaceRequest()).body)
say(client.list_members("vision", models.ListMembersRequest(page_size=10)).body)
say(client.get_member("vision", models.GetMemberRequest(user_id="admin")).body)
say(client.list_quotas(models.ListQuotasRequest()).body)
say(client.list_resources(models.ListResourcesRequest(workspace_id="default")).body)
"""
    created, workspace, default, members, member, quotas, resources = run(code)
    assert (created["WorkspaceId"], workspace["DisplayName"], default["WorkspaceId"]) == (
        "vision",
        "Vision",
        "default",
    )
    assert members["Members"][0]["MemberId"] == member["MemberId"]
    assert quotas["Quotas"][0]["Id"] == "default"
    assert resources["Resources"][0]["Quotas"][0]["Id"] == "default"


def test_sdk_raises_the_errors_of_the_service(run: Run, endpoint: str, interpreter: str) -> None:
    code = """
refused(client.get_workspace, "none", models.GetWorkspaceRequest())
refused(client.list_models, models.ListModelsRequest())
refused(client.create_dataset, models.CreateDatasetRequest(name="x"))
"""
    missing, unsupported, wrong = run(code)
    assert (missing["code"], missing["status"]) == ("ResourceNotFound", 404)
    assert (unsupported["code"], unsupported["status"]) == ("UnsupportedOperation", 400)
    assert "manages no models" in unsupported["message"]
    assert "Uri is required." in wrong["message"]
    reader = runner(endpoint, interpreter, User.objects.get(), ["read"])
    (forbidden,) = reader("refused(client.create_dataset, models.CreateDatasetRequest(name='x'))")
    assert (forbidden["code"], forbidden["status"]) == ("NoPermission", 403)
