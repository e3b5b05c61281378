"""What the form offers to choose from: what the workspace keeps, and what is for everybody."""

from __future__ import annotations

from jobs.assets import changes
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
