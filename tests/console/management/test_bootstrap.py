"""What a first start makes, and what later ones leave alone."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from jobs.assets.official_images import OFFICIAL_IMAGES
from jobs.models import Image
from quotas.models import Cluster, Membership, User, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _served_as_they_lie(settings: Settings) -> None:
    settings.DEBUG = True


def bootstrap() -> str:
    out = StringIO()
    call_command("bootstrap", stdout=out)
    return out.getvalue()


def password_of(text: str) -> str:
    return text.partition("password ")[2].partition(" ")[0]


def test_first_start_creates_admin_workspace_and_cluster() -> None:
    told = bootstrap()
    admin = User.objects.get()
    assert (admin.username, admin.is_superuser) == ("admin", True)
    assert admin.check_password(password_of(told))
    assert Cluster.objects.get().backend == "local"
    assert Membership.objects.get().workspace == Workspace.objects.get()


def test_first_start_adds_official_images_once() -> None:
    bootstrap()
    assert {image.address for image in Image.objects.filter(official=True, workspace=None)} == {
        image.address for image in OFFICIAL_IMAGES
    }
    Image.objects.all().delete()
    bootstrap()
    assert not Image.objects.exists()


def test_admin_password_differs_between_installations() -> None:
    first = password_of(bootstrap())
    User.objects.update(is_superuser=False, is_active=False, username="somebody")
    assert len(first) >= 16
    assert password_of(bootstrap()) != first


def test_given_admin_password_is_used_and_not_shown(settings: Settings) -> None:
    settings.CONSOLE_ADMIN_PASSWORD = "correct horse"
    told = bootstrap()
    assert "correct horse" not in told
    assert "CONSOLE_ADMIN_PASSWORD" in told
    assert User.objects.get().check_password("correct horse")


def test_second_start_prints_and_changes_nothing(settings: Settings) -> None:
    password = password_of(bootstrap())
    settings.CONSOLE_ADMIN_PASSWORD = "another one"
    assert bootstrap() == ""
    assert User.objects.get().check_password(password)
    assert Workspace.objects.count() == 1


def test_bootstrap_with_another_superuser_creates_no_admin() -> None:
    User.objects.create_superuser("root", password="x")
    assert bootstrap() == ""
    assert not User.objects.filter(username="admin").exists()


def test_static_files_are_collected_again_only_after_changes(settings: Settings, tmp_path: Path) -> None:
    source, root = tmp_path / "source", tmp_path / "collected"
    source.mkdir()
    (source / "a.css").write_text("a {}")
    settings.DEBUG = False
    settings.STATIC_ROOT = root
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    bootstrap()
    assert (root / "a.css").read_text() == "a {}"
    (root / "a.css").write_text("untouched")
    bootstrap()
    assert (root / "a.css").read_text() == "untouched"
    (source / "a.css").write_text("a { color: red }")
    bootstrap()
    assert (root / "a.css").read_text() == "a { color: red }"
