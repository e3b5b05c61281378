"""Assets of a workspace and of everybody."""

from __future__ import annotations

from typing import Any

from jobs.assets import changes
from jobs.models import CodeSource, Dataset, Image
from quotas.models import Workspace
from tests.jobs.web.conftest import people

__all__ = ["people"]


def make_dataset(workspace: Workspace | None = None, uri: str = "/data/sets", **columns: Any) -> Dataset:
    """A dataset with one version."""
    row = Dataset.objects.create(
        workspace=workspace, **{"name": "imagenet", "source": "host", "mount_path": "/mnt/data", **columns}
    )
    changes.add_version(row, uri, by=None)
    return row


def make_image(workspace: Workspace | None = None, **columns: Any) -> Image:
    """An image."""
    values = {"name": "torch", "address": "registry.example.org/ml/torch:2.4", **columns}
    return Image.objects.create(workspace=workspace, **values)


def make_code(workspace: Workspace | None = None, **columns: Any) -> CodeSource:
    """A code source."""
    values = {"name": "trainer", "repo": "https://git.example.org/ml/trainer.git", **columns}
    return CodeSource.objects.create(workspace=workspace, **values)
