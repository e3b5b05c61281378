"""Every system check: it fires, with its id, on what it is for, and on nothing else."""

import os
import re
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.test import Client
from pytest_django import Settings

from console.checks import system_checks
from console.configuration import identities, keys, single
from console.configuration.servers import SQLITE
from console.home import CHECKOUT
from jobs.backends.local import machine
from jobs.node.sandbox.isolation import Isolation
from quotas.accounts.bootstrap import FIRST_CLUSTER
from quotas.models import Cluster, User, single_person
from tests.factories import make_cluster, make_user


@pytest.fixture(autouse=True)
def _sound_home(settings: Settings, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    made = keys.ensure(home)
    settings.CONSOLE_HOME = home
    settings.SECRET_KEY = made.secret_key[0]
    settings.CONSOLE_FERNET_KEYS = made.fernet
    settings.CONSOLE_INSTALLATION = made.installation
    single_person.read_note.cache_clear()
    return home


def found(databases: list[str] | None = None) -> list[str]:
    return sorted(str(message.id) for message in run_checks(tags=["console"], databases=databases))


def test_new_installation_passes_all_checks() -> None:
    assert found() == []


@pytest.mark.parametrize("limit", ["CONSOLE_CODE_MIB", "CONSOLE_CODE_PERSON_MIB"])
def test_mutually_exclusive_code_limits_are_reported(settings: Settings, limit: str) -> None:
    setattr(settings, limit, 1)
    assert found() == ["console.E015"]


def test_home_on_network_file_system_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_checks, "network_filesystem", lambda _: "nfs4")
    assert found() == ["console.E001"]


def test_home_or_key_readable_by_others_is_reported(settings: Settings) -> None:
    settings.CONSOLE_HOME.chmod(0o750)
    assert found() == ["console.E002"]
    settings.CONSOLE_HOME.chmod(0o700)
    (settings.CONSOLE_HOME / "keys" / "redis").chmod(0o644)
    assert found() == ["console.E003"]


@pytest.mark.parametrize("weak", ["changeme", "x" * 80])
def test_guessable_secret_key_is_reported(settings: Settings, weak: str) -> None:
    settings.SECRET_KEY = weak
    assert found() == ["console.E004"]


def test_invalid_key_ring_line_is_reported_without_its_content(settings: Settings) -> None:
    settings.CONSOLE_FERNET_KEYS = (*settings.CONSOLE_FERNET_KEYS, "hello")
    (message,) = run_checks(tags=["console"])
    assert message.id == "console.E005"
    assert message.msg.startswith("Line 2 ")
    assert "hello" not in str(message)


@pytest.mark.parametrize("name", ["", "ABC123", "abc-12", "abcdefg", "ａｂｃｄｅｆ"])
def test_invalid_installation_name_is_reported(settings: Settings, name: str) -> None:
    settings.CONSOLE_INSTALLATION = name
    assert found() == ["console.E006"]


@pytest.mark.parametrize(("bind", "ids"), [("127.0.0.1", []), ("localhost", []), ("::1", [])])
def test_debug_mode_on_loopback_is_allowed(settings: Settings, bind: str, ids: list[str]) -> None:
    settings.DEBUG = True
    settings.CONSOLE_BIND = bind
    assert found() == ids


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.1", "host.example"])
def test_debug_mode_beyond_loopback_is_reported(settings: Settings, bind: str) -> None:
    settings.DEBUG = True
    settings.CONSOLE_TLS = True
    settings.CONSOLE_BIND = bind
    assert found() == ["console.E007"]


@pytest.mark.parametrize("host", ["apps.localhost", "x.apps.localhost", ".apps.localhost"])
def test_console_host_on_the_jobs_domain_is_reported(settings: Settings, host: str) -> None:
    settings.CONSOLE_HOSTS = ["localhost", host]
    assert found() == ["console.E008"]


def test_host_with_similar_ending_to_the_jobs_domain_is_allowed(settings: Settings) -> None:
    settings.CONSOLE_HOSTS = ["myapps.localhost"]
    assert found() == []


def test_missing_redis_server_is_reported_only_for_private_redis(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(system_checks, "find_server", lambda: None)
    assert found() == ["console.E009"]
    settings.CONSOLE_REDIS_IS_PRIVATE = False
    assert found() == []


@pytest.fixture
def _in_plain_sight(settings: Settings, db: None) -> None:
    make_cluster()
    settings.CONSOLE_LOCAL = {"isolation": "none"}
    settings.CONSOLE_TLS = True


@pytest.mark.usefixtures("_in_plain_sight")
def test_single_user_mode_beyond_loopback_is_reported(settings: Settings) -> None:
    assert found(databases=["default"]) == []
    settings.CONSOLE_BIND = "192.0.2.1"
    assert found(databases=["default"]) == ["console.E010"]
    settings.CONSOLE_TRUST_EVERYBODY = True
    assert found(databases=["default"]) == []


@pytest.mark.usefixtures("_in_plain_sight")
def test_single_user_mode_with_a_second_active_account_is_reported(settings: Settings) -> None:
    make_user()
    second = make_user()
    assert found() == []  # the database is not asked
    assert found(databases=["default"]) == ["console.E010"]
    settings.CONSOLE_TRUST_EVERYBODY = True
    assert found(databases=["default"]) == []
    settings.CONSOLE_TRUST_EVERYBODY = False
    User.objects.filter(pk=second.pk).update(is_active=False)
    assert found(databases=["default"]) == []


@pytest.mark.django_db
def test_several_users_without_tls_on_a_shared_host_are_refused(settings: Settings) -> None:
    settings.CONSOLE_LOCAL = {"isolation": "persons", "network": "host"}
    make_user()
    second = make_user()
    assert found(databases=["default"]) == []
    cluster = make_cluster()
    assert found(databases=["default"]) == ["console.E016"]
    settings.CONSOLE_TLS = True
    assert found(databases=["default"]) == []
    settings.CONSOLE_TLS = False
    User.objects.filter(pk=second.pk).update(is_active=False)
    assert found(databases=["default"]) == []
    User.objects.filter(pk=second.pk).update(is_active=True)
    Cluster.objects.filter(pk=cluster.pk).update(backend="slurm", config={"identity": "sudo"})
    assert found(databases=["default"]) == []


@pytest.mark.django_db
def test_several_users_on_a_network_shared_for_want_of_programs_are_warned(settings: Settings) -> None:
    """The interpreter that would try it can't be started."""
    settings.CONSOLE_LOCAL = {"isolation": "persons", "engine": "none", "python": "/bin/false"}
    settings.CONSOLE_TLS = True
    make_cluster()
    make_user()
    assert found(databases=["default"]) == []
    make_user()
    (message,) = run_checks(tags=["console"], databases=["default"])
    assert (message.id, "Install or allow" in str(message.hint)) == ("console.W007", True)
    settings.CONSOLE_LOCAL |= {"network": "host"}
    assert found(databases=["default"]) == []


@pytest.mark.django_db
def test_several_users_without_tls_on_own_networks_are_accepted(settings: Settings) -> None:
    settings.CONSOLE_LOCAL = {"isolation": "persons", "engine": "none"}
    if lacking := machine.network_lacks(Isolation.PERSONS):
        pytest.skip(f"networks of jobs' own need {', '.join(lacking)}")
    make_cluster()
    make_user()
    make_user()
    assert found(databases=["default"]) == []


@pytest.mark.django_db
def test_several_users_on_slurm_cluster_with_one_identity_are_refused(settings: Settings) -> None:
    cluster = make_cluster(backend="slurm")
    make_user()
    assert found(databases=["default"]) == []
    second = make_user()
    assert found(databases=["default"]) == ["console.E017"]
    single.record()
    with pytest.raises(single_person.OnePersonOnly, match="identity"):
        User.objects.create_user("third")
    settings.CONSOLE_TRUST_EVERYBODY = True
    assert found(databases=["default"]) == []
    settings.CONSOLE_TRUST_EVERYBODY = False
    Cluster.objects.filter(pk=cluster.pk).update(config={"identity": "jwt"})  # without slurmrestd: no sense
    assert found(databases=["default"]) == ["console.E017"]
    by_tokens = {"identity": "jwt", "way": "rest", "url": "http://slurm:6820"}
    Cluster.objects.filter(pk=cluster.pk).update(config=by_tokens)
    assert found(databases=["default"]) == []
    Cluster.objects.filter(pk=cluster.pk).update(config={"identity": "single"}, enabled=False)
    assert found(databases=["default"]) == []
    assert second.is_active


@pytest.mark.django_db
def test_several_users_with_the_console_users_groups_are_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CONSOLE_LOCAL = {"isolation": "namespaces", "network": "host"}
    settings.CONSOLE_TLS = True
    make_cluster()
    make_user()
    monkeypatch.setattr(os, "getgroups", lambda: [os.getegid(), 4, 99_999])
    assert found(databases=["default"]) == []
    make_user()
    (problem,) = run_checks(tags=["console"], databases=["default"])
    assert problem.id == "console.E018"
    assert "groups 99999, adm" in problem.msg
    settings.CONSOLE_LOCAL = {"isolation": "persons", "network": "host"}
    assert found(databases=["default"]) == []


@pytest.mark.django_db
def test_job_user_ids_of_other_accounts_are_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "subuid").write_text("# none\nada:100000:65536\nbob:165536:65536\nodd:x:1\n")
    monkeypatch.setattr(identities, "SUBORDINATE", tmp_path / "subuid")
    settings.CONSOLE_LOCAL = {"isolation": "persons"}
    settings.CONSOLE_TLS = True
    cluster = make_cluster()
    make_user()
    assert found(databases=["default"]) == ["console.W006"]
    Cluster.objects.filter(pk=cluster.pk).update(config={"uid_base": FIRST_CLUSTER["uid_base"]})
    assert found(databases=["default"]) == []
    Cluster.objects.filter(pk=cluster.pk).update(config={"uid_base": 0})
    assert found(databases=["default"]) == ["console.W006"]  # accounts of this machine


@pytest.mark.django_db
def test_second_user_without_tls_cannot_be_created(settings: Settings, client: Client) -> None:
    settings.CONSOLE_LOCAL = {"isolation": "namespaces"}
    client.force_login(make_user(admin=True))
    make_cluster()
    single.record()
    fields = {
        "username": "second",
        "password1": "a-Long-one-7",
        "password2": "a-Long-one-7",
        "usable_password": "true",
    }
    answer = client.post("/admin/quotas/user/add/", fields)
    assert "Only one user can be active without TLS" in answer.content.decode()
    with pytest.raises(single_person.OnePersonOnly):
        User.objects.create_user("second")
    away = User.objects.create_user("away", is_active=False)
    away.is_active = True
    with pytest.raises(single_person.OnePersonOnly):
        away.save()
    User.objects.create_user("robot", kind=User.Kind.SERVICE)
    settings.CONSOLE_TRUST_EVERYBODY = True
    away.save()
    assert "No TLS: any job on this machine" in client.get("/").content.decode()


@pytest.mark.django_db
def test_several_users_with_isolated_jobs_are_allowed(settings: Settings) -> None:
    make_cluster()
    settings.CONSOLE_TLS = True
    settings.CONSOLE_LOCAL = {"isolation": "namespaces", "network": "host"}
    make_user()
    make_user()
    assert found(databases=["default"]) == []


@pytest.mark.django_db
def test_cluster_settings_count_only_while_the_cluster_is_enabled(settings: Settings) -> None:
    settings.CONSOLE_TLS = True
    make_user()
    make_user()
    cluster = make_cluster(config={"isolation": "none"})
    assert found(databases=["default"]) == ["console.E010"]
    Cluster.objects.filter(pk=cluster.pk).update(enabled=False)
    assert found(databases=["default"]) == []


@pytest.mark.usefixtures("_in_plain_sight")
def test_single_user_mode_notice_is_shown_only_while_active(settings: Settings, client: Client) -> None:
    client.force_login(make_user(admin=True))
    single.record()
    assert "Single-user mode" in client.get("/").content.decode()
    settings.CONSOLE_LOCAL = {"isolation": "namespaces"}
    single.record()
    single_person.read_note.cache_clear()
    assert "Single-user mode" not in client.get("/").content.decode()


def test_unencrypted_passwords_beyond_loopback_are_reported(settings: Settings) -> None:
    settings.CONSOLE_BIND = "0.0.0.0"
    assert found() == ["console.W001"]
    settings.CONSOLE_TLS = True
    assert found() == []


def test_wildcard_host_is_reported(settings: Settings) -> None:
    settings.CONSOLE_HOSTS = ["*"]
    assert found() == ["console.W002"]


@pytest.mark.parametrize(
    ("engine", "ids"), [(SQLITE, ["console.W003"]), ("django.db.backends.postgresql", [])]
)
def test_too_many_workers_for_sqlite_are_reported(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, engine: str, ids: list[str]
) -> None:
    settings.CONSOLE_WORKERS = {"control": 4, "logs": 1}
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", engine)
    assert found() == ids


def test_unreachable_redis_is_a_deployment_warning(settings: Settings, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    messages = run_checks(tags=["console"], include_deployment_checks=True)
    assert [message.id for message in messages] == ["console.W004"]


def test_check_ids_are_each_documented_once() -> None:
    given = set(re.findall(r'id="(console\.[EW]\d+)"', Path(system_checks.__file__).read_text()))
    explained = re.findall(
        r"^- `(console\.[EW]\d+)`", (CHECKOUT / "docs" / "checks.md").read_text(), re.MULTILINE
    )
    assert len(explained) == len(set(explained))
    assert set(explained) == given
