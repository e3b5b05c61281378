"""`manage.py add_cluster`: a cluster from a prompt, with the checks of the form."""

from __future__ import annotations

import io
import json
import sys

import asyncssh
import pytest
from django.core.management import CommandError, call_command

from quotas.clusters import encrypted_settings
from quotas.models import AuditEntry, Cluster
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db


def added(*arguments: str) -> Cluster:
    out = io.StringIO()
    call_command("add_cluster", *arguments, stdout=out)
    assert out.getvalue() == "The cluster hpc was added.\n"
    return Cluster.objects.get(slug="hpc")


def test_add_cluster_without_options_adds_a_scheduling_slurm_cluster() -> None:
    made = added("hpc")
    told = (made.name, made.backend, made.admission, made.config, made.enabled, made.shows_addresses)
    assert told == ("hpc", "slurm", "engine", {}, True, False)
    assert AuditEntry.objects.get(action="create").actor_name == "add_cluster hpc"


def test_add_cluster_reads_secrets_from_stdin_and_stores_them_encrypted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    login = {"host": "slurm", "user": "console"}
    login["private_key"] = host_key.export_private_key().decode()
    login["host_key"] = host_key.export_public_key().decode()
    settings = {"login": login}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(settings)))
    made = added("hpc", "--title", "Building 3", "--region", "north", "--config", "-")
    assert (made.name, made.region) == ("Building 3", "north")
    assert made.config["login"]["private_key"].startswith(encrypted_settings.MARK)
    assert encrypted_settings.decrypt(made.config) == settings


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("local",), "slug: "),
        (("a b",), "slug: "),
        (("hpc", "--config", "{"), "config: "),
        (("hpc", "--config", "[1]"), "config: Settings must be a JSON object"),
        (("hpc", "--config", '{"ways": 1}'), "config: ways: Unknown setting. Did you mean way"),
        (("hpc", "--config", '{"python": "python"}'), "config: python: Invalid path “python”"),
    ],
)
def test_add_cluster_with_invalid_input_shows_error_and_adds_nothing(
    arguments: tuple[str, ...], told: str
) -> None:
    make_cluster("local")
    with pytest.raises(CommandError, match=told):
        call_command("add_cluster", *arguments)
    assert Cluster.objects.count() == 1


@pytest.mark.parametrize("backend", ["local", "ray", "kubernetes"])
def test_add_cluster_leaves_admission_to_the_console_where_the_engine_has_no_queue(backend: str) -> None:
    config = {
        "local": "{}",
        "ray": '{"url": "http://head:8265", "console_url": "https://console.example.org"}',
        "kubernetes": '{"url": "https://api.example.org", "token": "t"}',
    }[backend]
    assert added("hpc", "--backend", backend, "--config", config).admission == "console"
