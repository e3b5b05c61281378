"""What DATABASE_URL and REDIS_URL mean."""

from pathlib import Path

import pytest
import redis

from console.configuration.env import EnvError
from console.configuration.servers import Mail, address, celery_broker, database, mail, private_redis
from console.configuration.tls import Mode, Tls

HOME = Path("/srv/console")
SMTP = "django.core.mail.backends.smtp.EmailBackend"


def test_postgresql_url_with_host_escaped_parts_and_options_is_parsed() -> None:
    settings = database("postgres://ann:p%40ss@db.example:5433/jobs?sslmode=require", HOME, pool=4)
    assert settings["ENGINE"] == "django.db.backends.postgresql"
    assert (settings["USER"], settings["PASSWORD"]) == ("ann", "p@ss")
    assert (settings["HOST"], settings["PORT"], settings["NAME"]) == ("db.example", "5433", "jobs")
    assert settings["OPTIONS"]["sslmode"] == "require"
    assert settings["OPTIONS"]["pool"]["max_size"] == 4


def test_postgresql_sessions_of_lost_hosts_end_unless_the_url_says_otherwise() -> None:
    options = database("postgres://db.example/jobs?tcp_user_timeout=5000", HOME, pool=4)["OPTIONS"]
    assert "idle_in_transaction_session_timeout" in options["options"]
    assert (options["keepalives_idle"], options["tcp_user_timeout"]) == ("10", "5000")


def test_postgresql_url_with_socket_is_parsed() -> None:
    settings = database("postgresql:///jobs?host=/run/postgresql", HOME, pool=4)
    assert (settings["HOST"], settings["PORT"], settings["USER"]) == ("/run/postgresql", "", "")
    assert "host" not in settings["OPTIONS"]


def test_sqlite_path_is_relative_to_home_unless_absolute() -> None:
    assert database("sqlite:///db.sqlite3", HOME, pool=1)["NAME"] == "/srv/console/db.sqlite3"
    assert database("sqlite:////data/db.sqlite3", HOME, pool=1)["NAME"] == "/data/db.sqlite3"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://h/n", "must begin with postgres:// or sqlite:///"),
        ("db.sqlite3", "must begin with"),
        ("postgres://h", "names no database"),
        ("postgres://h:x/n", "cannot be read"),
        ("sqlite://", "names no file"),
    ],
)
def test_unknown_database_url_is_refused_in_one_sentence(url: str, sentence: str) -> None:
    with pytest.raises(EnvError, match=rf"^DATABASE_URL {sentence}"):
        database(url, HOME, pool=1)


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        ("redis://h:6380/2", "redis://h:6380/2"),
        ("rediss://:pw@h/0", "rediss://:pw@h/0"),
        ("unix:///run/r.sock?db=3", "redis+socket:///run/r.sock?virtual_host=3"),
        ("unix://:p%40w@/run/r.sock", "redis+socket://:p%40w@/run/r.sock?virtual_host=0"),
    ],
)
def test_celery_broker_url_names_the_same_redis_server(url: str, broker: str) -> None:
    assert celery_broker(url) == broker


@pytest.mark.parametrize("url", ["amqp://h", "redis://", "unix://", "localhost:6379"])
def test_unknown_broker_url_is_refused(url: str) -> None:
    with pytest.raises(EnvError, match="REDIS_URL must be redis://"):
        celery_broker(url)


def test_private_redis_url_works_with_any_path_and_password() -> None:
    home, password = Path("/srv/a folder"), "p/w@:?"
    url = private_redis(home, password)
    options = redis.ConnectionPool.from_url(url).connection_kwargs
    assert (options["path"], options["password"]) == ("/srv/a folder/run/redis.sock", password)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("", Mail()),
        ("smtp://mail.example", Mail(SMTP, "mail.example", 587, starttls=True)),
        ("smtps://me:p%40ss@mail.example:4465", Mail(SMTP, "mail.example", 4465, "me", "p@ss", tls=True)),
        ("smtp+plain://127.0.0.1:2525", Mail(SMTP, "127.0.0.1", 2525)),
    ],
)
def test_mail_url_is_parsed(url: str, meant: Mail) -> None:
    assert mail(url) == meant


@pytest.mark.parametrize("url", ["mail.example", "http://mail.example", "smtp://", "smtp://a:b"])
def test_unknown_mail_url_is_refused(url: str) -> None:
    with pytest.raises(EnvError, match="CONSOLE_MAIL"):
        mail(url)


def test_mail_password_over_unencrypted_connection_is_refused() -> None:
    with pytest.raises(EnvError, match="unencrypted"):
        mail("smtp+plain://me:secret@mail.example")


@pytest.mark.parametrize(
    ("hosts", "mode", "meant"),
    [
        (["localhost"], Mode.OFF, "http://localhost:8000"),
        (["*", ".example.org", "console.example.org"], Mode.PROXY, "https://console.example.org"),
        (["console.example.org"], Mode.OWN, "https://console.example.org:8000"),
        (["*"], Mode.OFF, "http://localhost:8000"),
    ],
)
def test_console_address_follows_hosts_and_tls_mode(hosts: list[str], mode: Mode, meant: str) -> None:
    assert address(hosts, 8000, Tls(mode)) == meant
