"""What the form offers to choose from: what the workspace keeps, and what is for everybody."""

from __future__ import annotations

import json

from jobs.assets import changes
from jobs.models import RamRole
from tests.factories import make_workspace
from tests.jobs.assets.conftest import make_code, make_dataset, make_image
from tests.jobs.web.conftest import People, browser
from tests.jobs.web.new_job.test_form_change import DLC, change, form_of


def test_form_offers_images_datasets_and_code_by_id(people: People) -> None:
    workspace = people.quota.workspace
    image = make_image(workspace, framework="PyTorch", version="2.4", python="3.11")
    official = make_image(None, name="plain", official=True)
    dataset = make_dataset(workspace)
    changes.add_version(dataset, "/data/newer", by=None)
    code = make_code(workspace)
    form = form_of(change(browser(people.owner), DLC))
    assert f'<option value="{image.key}" label="torch · custom image · PyTorch 2.4 · Python 3.11">' in form
    assert f'<option value="{official.key}" label="plain · official image">' in form
    assert f'<option value="{dataset.key}" label="imagenet · custom dataset">' in form
    assert f'<option value="{dataset.key}@v2" label="imagenet · v2">' in form
    assert f'value="{code.key}"' in form


def test_form_offers_no_assets_of_other_workspaces(people: People) -> None:
    elsewhere = make_workspace("far-away")
    kept = (make_image(elsewhere), make_dataset(elsewhere), make_code(elsewhere))
    form = form_of(change(browser(people.owner), DLC))
    assert not [asset.key for asset in kept if asset.key in form]


def test_form_offers_no_retired_assets(people: People) -> None:
    image = make_image(people.quota.workspace)
    changes.retire(image)
    assert image.key not in form_of(change(browser(people.owner), DLC))


def test_form_offers_roles_of_the_workspace_instead_of_a_text(people: People) -> None:
    workspace = people.quota.workspace
    columns = {"arn": "acs:ram::1:role/trainer", "access_key_id": "LTAI", "ciphertext": "x"}
    assert 'list="f-instance-role_list"' in form_of(change(browser(people.owner), DLC))
    RamRole.objects.create(workspace=make_workspace("far-away"), name="theirs", **columns)
    RamRole.objects.create(workspace=workspace, name="trainer", is_default=True, **columns)
    form = form_of(change(browser(people.owner), DLC))
    for option in (
        '<option value="" selected>No role</option>',
        '<option value="default" >Default role (trainer)</option>',
        '<option value="acs:ram::1:role/trainer" >trainer</option>',
    ):
        assert option in form
    assert "theirs" not in form
    config = {"EnableCredentialInject": True, "CredentialConfigItems": [{"Roles": [{"RoleArn": "acs:x"}]}]}
    text = DLC.replace('"UserCommand"', f'"CredentialConfig": {json.dumps(config)}, "UserCommand"')
    assert '<option value="acs:x" selected>acs:x (from the file)</option>' in form_of(
        change(browser(people.owner), text)
    )
