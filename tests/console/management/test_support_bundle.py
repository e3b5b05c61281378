"""The support bundle: secrets are planted wherever there may be some, and none is in it."""

from __future__ import annotations

import json
import stat
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from console.configuration.config import env
from console.management import support_bundle
from jobs.models import JobFile, JobSecret, PersonalSecret
from quotas import encryption
from quotas.clusters import encrypted_settings
from quotas.models import AccessKey, AccessToken, AuditEntry, Cluster
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import make_cluster, make_job, make_quota, make_user, make_workspace

pytestmark = pytest.mark.django_db

PAGE = "/admin/support-bundle/"


def unpack(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(BytesIO(content)) as bundle:
        return {name: bundle.read(name).decode() for name in bundle.namelist()}


@pytest.fixture
def run(settings: Any, tmp_path: Path) -> Path:
    """A home with keys and the programs' logs."""
    settings.CONSOLE_HOME = tmp_path
    (tmp_path / "run").mkdir()
    (tmp_path / "keys").mkdir()
    return tmp_path / "run"


@pytest.fixture
def secrets(run: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Secrets by where they are; each stands in a log as well."""
    planted = {
        name: f"{name}-Qx7$\"k'/{number}zzW"
        for number, name in enumerate(
            ("environment", "file", "foreign", "url", "json", "key", "cluster", "job", "person", "access")
        )
    }
    monkeypatch.setenv("CONSOLE_METRICS_TOKEN", planted["environment"])
    (run.parent / "password").write_text(planted["file"])
    monkeypatch.setenv("CONSOLE_LDAP_PASSWORD_FILE", str(run.parent / "password"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", planted["foreign"])
    monkeypatch.setenv("CONSOLE_MAIL", "smtp://console:url-Qx7kzzW@mail.example.org")
    planted["url"] = "url-Qx7kzzW"
    monkeypatch.setenv("CONSOLE_OIDC_SECRETS", json.dumps({"login": planted["json"]}))
    (run.parent / "keys" / "secret_key").write_text(f"{planted['key']}\n")
    cluster = make_cluster("north", backend="slurm")
    config = encrypted_settings.encrypt({"url": "https://slurm", "token": planted["cluster"]}, {})
    Cluster.objects.filter(pk=cluster.pk).update(config=config, trouble=f"refused token {planted['cluster']}")
    owner = make_user("alice")
    job = make_job(owner=owner, quota=make_quota(make_workspace("vision"), cluster))
    JobSecret.objects.create(job=job, name="HF_TOKEN", ciphertext=encryption.encrypt(planted["job"]))
    PersonalSecret.objects.create(owner=owner, name="WANDB", ciphertext=encryption.encrypt(planted["person"]))
    AccessKey.objects.create(
        user=owner, key_id="LTAI1", name="sdk", ciphertext=encryption.encrypt(planted["access"])
    )
    planted["variable"] = "variable-of-a-job-9zzW"
    JobFile.objects.filter(job=job).update(text=f"env: {planted['variable']}")
    planted["token"] = "jc_0123456789_abcdefghijklmnop"
    AccessToken.objects.filter(user=owner).delete()
    lines = [f"could not use {value!r} at {json.dumps(value)}" for value in planted.values()]
    lines = [line for line in lines if planted["variable"] not in line]
    planted["named"] = "hunter2-never-stored"
    planted["bearer"] = "eyJhbGciOi.bearer-never-stored"
    lines += [f"login password={planted['named']} failed", f"Authorization: Bearer {planted['bearer']}"]
    lines += ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBg", "-----END PRIVATE KEY-----"]
    planted["pem"] = "MIIEvQIBADANBg"
    (run / "web.log").write_text("\n".join(lines) + "\nthe last line is readable\n")
    return planted


def test_support_bundle_has_none_of_the_planted_secrets(secrets: dict[str, str]) -> None:
    content = BytesIO()
    support_bundle.write(content)
    parts = unpack(content.getvalue())
    whole = "\n".join(parts.values())
    for name, secret in secrets.items():
        for form in {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]}:
            assert form not in whole, name
    assert "the last line is readable" in parts["logs/web.log"]


def test_support_bundle_says_what_support_needs(secrets: dict[str, str]) -> None:
    content = BytesIO()
    support_bundle.write(content)
    parts = unpack(content.getvalue())
    found = {
        name.removesuffix(".json"): json.loads(text) for name, text in parts.items() if "logs/" not in name
    }
    assert found["versions"]["version"]
    assert found["versions"]["packages"]["Django"]
    assert found["settings"]["CONSOLE_METRICS_TOKEN"] == "••••"
    assert set(found["settings"]) <= set(env.variables)
    assert found["migrations"]["missing"] == []
    assert found["migrations"]["applied"]["jobs"].startswith("00")
    assert found["rows"]["jobs.Job"] == 1
    (cluster,) = found["clusters"]
    assert (cluster["slug"], cluster["settings"]) == ("north", ["token", "url"])
    assert cluster["trouble"].startswith("refused token")
    assert found["health"]["database"] == "ok"
    assert found["disk"]["free_mib"] > 0
    assert isinstance(found["checks"], list)


def test_long_log_is_cut_to_its_last_whole_lines(run: Path) -> None:
    (run / "beat.log").write_bytes(b"".join(b"line %07d\n" % number for number in range(50_000)))
    content = BytesIO()
    support_bundle.write(content)
    text = unpack(content.getvalue())["logs/beat.log"]
    assert len(text) <= support_bundle.LOG_BYTES
    assert text.startswith("line ")
    assert text.endswith("line 0049999\n")


def test_command_writes_a_private_file_and_overwrites_none(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    call_command("support_bundle", str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "versions.json" in unpack(path.read_bytes())
    with pytest.raises(CommandError, match="can't be written"):
        call_command("support_bundle", str(path))


@pytest.mark.parametrize("who", OTHERS)
def test_support_bundle_is_refused_to_non_admins(who: str, run: Path) -> None:
    quota = make_quota(make_workspace("vision"), make_cluster("north"))
    assert client_of(who, quota).post(PAGE).status_code in {302, 403}


def test_admin_downloads_the_bundle_and_it_is_audited(client: Client, run: Path) -> None:
    client.force_login(make_user("root", admin=True))
    assert client.get(PAGE).status_code == 405
    response = client.post(PAGE)
    assert response["Content-Disposition"].endswith('.zip"')
    assert "versions.json" in unpack(b"".join(response.streaming_content))  # type: ignore[attr-defined]
    assert AuditEntry.objects.get(action="export").details == {"what": "support bundle"}
