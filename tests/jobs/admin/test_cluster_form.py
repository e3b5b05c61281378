"""A cluster's settings as fields of a form in Django admin."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import asyncssh
import pytest
from django.test import Client

from jobs.admin.clusters import ClusterForm
from jobs.backends import registry
from jobs.scheduling import reconcile
from quotas.clusters import encrypted_settings
from quotas.models import Cluster
from tests.factories import make_cluster, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_client() -> Client:
    client = Client()
    client.force_login(make_user(admin=True))
    return client


def sent(cluster: Cluster, **changes: str) -> dict[str, str]:
    """Return what a browser sends of the cluster's form, with some fields as a person typed them.

    The connection is not tried, unless `save_untested` is "".
    """
    form = ClusterForm(instance=cluster)
    shown: dict[str, Any] = {name: form[name].value() for name in form.fields}
    found = {
        name: "on" if value is True else str(value)
        for name, value in shown.items()
        if value is not None and value is not False
    }
    return {**found, "initial-config": found["config"], "save_untested": "on", **changes}


def post(client: Client, cluster: Cluster, **changes: str) -> str:
    """Save the form; return its text where it was refused."""
    answer = client.post(f"/admin/quotas/cluster/{cluster.pk}/change/", sent(cluster, **changes))
    return "" if answer.status_code == 302 else unescape(answer.content.decode())


def problem_at(page: str, name: str) -> str:
    """Return the text from the field's problems on, or "" where it has none."""
    found = re.search(rf'errorlist"[^>]*id="id_{name}_error">(.*?)</ul>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", found[1]).split()) if found else ""


STORED: list[tuple[str, dict[str, Any]]] = [
    ("slurm", {}),
    (
        "slurm",
        {
            "way": "commands",
            "partitions": {"vision": "gpu", "speech": "cpu"},
            "options": {"exclusive": "", "constraint": "ib"},
            "qos": {"9": "high"},
            "images": "apptainer",
            "allowed": ["licenses", "exclusive"],
            "logs": ["/home"],
            "ports": [30000, 31000],
            "timeout_s": 7,
            "allow_plain": True,
        },
    ),
    (
        "local",
        {
            "gpus": {"TITANX": 2},
            "folders": {"/data": {"workspaces": ["*"], "write": True}},
            "isolation": "none",
            "cpu_milli": 8000,
            "show": ["/data"],
            "code_sources": {"c-1": {"uri": "https://git.example.org/x"}},
        },
    ),
]


@pytest.mark.parametrize(("backend", "config"), STORED, ids=str)
def test_cluster_form_keeps_stored_settings_unchanged(
    backend: str, config: dict[str, Any], admin_client: Client
) -> None:
    cluster = make_cluster(backend=backend, config=config)
    assert post(admin_client, cluster, region="north") == ""
    cluster.refresh_from_db()
    assert (cluster.config, cluster.region) == (config, "north")


def test_cluster_form_fields_become_settings_without_defaults(admin_client: Client) -> None:
    cluster = make_cluster(backend="slurm", config={})
    typed = {
        "slurm__way": "rest",
        "slurm__url": "http://slurm:6820",
        "slurm__partitions": "vision: gpu\n\nspeech: cpu\n",
        "slurm__allowed": "licenses\nexclusive",
        "slurm__timeout_s": "9",
        "slurm__write_back": "on",
        "local__pids": "no number, and not looked at",
    }
    assert post(admin_client, cluster, **typed) == ""
    assert Cluster.objects.get(pk=cluster.pk).config == {
        "way": "rest",
        "url": "http://slurm:6820",
        "partitions": {"vision": "gpu", "speech": "cpu"},
        "allowed": ["licenses", "exclusive"],
        "timeout_s": 9,
        "write_back": True,
    }


def test_cluster_form_cleared_field_returns_to_its_default(admin_client: Client) -> None:
    cluster = make_cluster(backend="slurm", config={"timeout_s": 7, "allow_plain": False, "account": "a"})
    assert post(admin_client, cluster, slurm__timeout_s="", slurm__account="") == ""
    assert Cluster.objects.get(pk=cluster.pk).config == {"allow_plain": False}


def test_cluster_form_shows_each_problem_at_its_field_and_keeps_input(admin_client: Client) -> None:
    cluster = make_cluster(backend="slurm", config={})
    typed = {"slurm__python": "python", "slurm__partitions": "vision: a b", "slurm__allowed": "output"}
    page = post(admin_client, cluster, **typed)
    assert problem_at(page, "slurm__python").startswith("Invalid path “python”.")
    assert problem_at(page, "slurm__partitions").startswith("partitions.vision: Invalid Slurm name “a b”")
    assert problem_at(page, "slurm__allowed").startswith(
        "allowed.0: sbatch option “output” can't be set here"
    )
    assert "vision: a b" in page
    assert Cluster.objects.get(pk=cluster.pk).config == {}


def test_cluster_form_secret_is_masked_stored_and_not_sent_elsewhere(admin_client: Client) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    private = key.export_private_key().decode()
    cluster = make_cluster(backend="slurm", config={})
    typed = {
        "slurm__login__host": "login",
        "slurm__login__user": "console",
        "slurm__login__private_key": private,
        "slurm__login__host_key": key.export_public_key().decode(),
    }
    assert post(admin_client, cluster, **typed) == ""
    cluster.refresh_from_db()
    assert cluster.config["login"]["private_key"].startswith(encrypted_settings.MARK)
    assert ClusterForm(instance=cluster)["slurm__login__private_key"].value() == encrypted_settings.MASK
    kept = cluster.config["login"]["private_key"]
    assert post(admin_client, cluster, slurm__timeout_s="9") == ""
    cluster.refresh_from_db()
    assert (cluster.config["login"]["private_key"], cluster.config["timeout_s"]) == (kept, 9)
    page = post(admin_client, cluster, slurm__login__host="elsewhere")
    assert "Enter again: login/private_key" in problem_at(page, "slurm__login__private_key")
    assert private not in page


def test_cluster_form_shows_only_fields_of_the_chosen_backend(admin_client: Client) -> None:
    page = unescape(admin_client.get("/admin/quotas/cluster/add/").content.decode())
    for backend in registry.names():
        assert page.count(f"x-show=\"backend == '{backend}'\"") == len(registry.find(backend).fields())
    assert 'name="initial-config"' in page, "a browser tells whether the JSON was changed"


def test_cluster_form_changed_json_replaces_the_fields(admin_client: Client) -> None:
    cluster = make_cluster(backend="slurm", config={"timeout_s": 7})
    assert post(admin_client, cluster, config='{"images": "pyxis"}', slurm__timeout_s="9") == ""
    assert Cluster.objects.get(pk=cluster.pk).config == {"images": "pyxis"}
    page = post(admin_client, cluster, config='{"image": "pyxis"}')
    assert problem_at(page, "config") == "image: Unknown setting. Did you mean images?"


@pytest.mark.parametrize("backend", registry.names())
def test_backend_settings_each_have_a_label_and_a_field(backend: str) -> None:
    registration = registry.find(backend)
    fields = {each.name for each in registration.fields()}
    assert fields == set(registration.labels)
    assert all(all(texts) for texts in registration.labels.values())
    model = registration.config
    ours = {"root", "hide", "bell", "own", *model.CONSOLE, "tries_assets", "CONSOLE", "OVERLAY"}
    assert set(model.__annotations__) - ours == {name.partition(".")[0] for name in fields}


def test_cluster_form_tries_the_connection_before_saving(admin_client: Client) -> None:
    cluster = make_cluster(backend="slurm", config={})
    typed = {"slurm__way": "rest", "slurm__url": "http://127.0.0.1:9", "slurm__timeout_s": "1"}
    page = post(admin_client, cluster, save_untested="", **typed)
    assert problem_at(page, "slurm__url").startswith("The cluster did not answer: ")
    assert "http://127.0.0.1:9" in page
    assert Cluster.objects.get(pk=cluster.pk).config == {}
    assert post(admin_client, cluster, save_untested="", region="north") == "", "no setting is new"
    page = post(admin_client, cluster, save_untested="", slurm__programs="/nowhere")
    assert problem_at(page, "slurm__way").startswith("The cluster did not answer: ")
    local = make_cluster(backend="local", config={"isolation": "none"})
    typed = sent(local, local__cpu_milli="2000", save_untested="")
    answer = admin_client.post(f"/admin/quotas/cluster/{local.pk}/change/", typed, follow=True)
    assert "The cluster answered: 1 node." in answer.content.decode()
    assert Cluster.objects.get(pk=local.pk).config["cpu_milli"] == 2000


@pytest.mark.parametrize(
    ("backend", "config", "told"),
    [
        ("slurm", {"imags": "pyxis"}, "imags: Unknown setting. Did you mean images?"),
        ("nomad", {}, "There is no backend “nomad”. Backends: kubernetes, local, ray, slurm."),
    ],
)
def test_wrong_settings_of_a_stored_cluster_are_named_everywhere(
    admin_client: Client, backend: str, config: dict[str, Any], told: str
) -> None:
    cluster = make_cluster("north", backend=backend, config=config)
    for address in ("/admin/", "/admin/quotas/cluster/", f"/admin/quotas/cluster/{cluster.pk}/change/"):
        page = unescape(admin_client.get(address).content.decode())
        assert told in page, address
    reconcile.take_inventory(cluster.pk)
    cluster.refresh_from_db()
    assert cluster.trouble, "the worker says so too"


def test_certificate_of_a_cluster_is_entered_in_several_lines(admin_client: Client) -> None:
    page = admin_client.get("/admin/quotas/cluster/add/").content.decode()
    assert re.search(r'<textarea[^>]* name="kubernetes[^"]*ca"', page)
