"""What DATABASE_URL and REDIS_URL mean."""

from pathlib import Path

import pytest
import redis

from console.env import EnvError
from console.servers import celery_broker, database, private_redis

HOME = Path("/srv/console")


def test_postgresql_by_host_with_escaped_parts_and_options() -> None:
    settings = database("postgres://ann:p%40ss@db.example:5433/jobs?sslmode=require", HOME, pool=4)
    assert settings["ENGINE"] == "django.db.backends.postgresql"
    assert (settings["USER"], settings["PASSWORD"]) == ("ann", "p@ss")
    assert (settings["HOST"], settings["PORT"], settings["NAME"]) == ("db.example", "5433", "jobs")
    assert settings["OPTIONS"]["sslmode"] == "require"
    assert settings["OPTIONS"]["pool"]["max_size"] == 4


def test_postgresql_by_socket() -> None:
    settings = database("postgresql:///jobs?host=/run/postgresql", HOME, pool=4)
    assert (settings["HOST"], settings["PORT"], settings["USER"]) == ("/run/postgresql", "", "")
    assert "host" not in settings["OPTIONS"]


def test_sqlite_lies_in_the_home_unless_its_path_is_absolute() -> None:
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
def test_other_databases_are_refused_in_one_sentence(url: str, sentence: str) -> None:
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
def test_celery_and_redis_mean_the_same_server(url: str, broker: str) -> None:
    assert celery_broker(url) == broker


@pytest.mark.parametrize("url", ["amqp://h", "redis://", "unix://", "localhost:6379"])
def test_other_brokers_are_refused(url: str) -> None:
    with pytest.raises(EnvError, match="REDIS_URL must be redis://"):
        celery_broker(url)


def test_the_private_server_is_found_under_any_path_and_password() -> None:
    home, password = Path("/srv/a folder"), "p/w@:?"
    url = private_redis(home, password)
    options = redis.ConnectionPool.from_url(url).connection_kwargs
    assert (options["path"], options["password"]) == ("/srv/a folder/run/redis.sock", password)
