"""The settings as a whole, under different environments."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.configuration import keys
from console.home import CHECKOUT


@pytest.fixture
def home(tmp_path: Path) -> Path:
    keys.ensure(tmp_path)
    return tmp_path


def _python(code: str, home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={**clean, "CONSOLE_HOME": str(home), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def _read(home: Path, *names: str, **environ: str) -> Any:
    code = (
        f"import json; from console import settings as s; print(json.dumps([getattr(s, n) for n in {names}]))"
    )
    done = _python(code, home, **environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_settings_default_to_no_debug_and_a_local_address() -> None:
    from django.conf import settings  # noqa: PLC0415

    assert settings.DEBUG is False
    assert settings.CONSOLE_BIND == "127.0.0.1"


def test_cookie_settings_bind_cookies_to_this_host(home: Path) -> None:
    names = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
    assert _read(home, *names) == ["session", "csrftoken", False, False]
    assert _read(home, *names, CONSOLE_TLS="1") == ["__Host-session", "__Host-csrftoken", True, True]
    code = "from console import settings; print([n for n in dir(settings) if n.endswith('COOKIE_DOMAIN')])"
    assert _python(code, home).stdout == "[]\n"


def test_csrf_origins_over_tls_are_own_names_only(home: Path) -> None:
    read = _read(
        home, "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", CONSOLE_TLS="1", CONSOLE_HOSTS="a.example, b.example"
    )
    assert read == [["a.example", "b.example"], ["https://a.example", "https://b.example"]]


def test_settings_import_changes_nothing_on_disk(home: Path) -> None:
    before = sorted(home.rglob("*"))
    _read(home, "DEBUG")
    assert sorted(home.rglob("*")) == before


def test_settings_import_needs_no_django(home: Path) -> None:
    done = _python("import sys; import console.settings; print('django' in sys.modules)", home)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "http"), ("CONSOLE_TLS", "perhaps"), ("DATABASE_URL", "oracle://x"), ("REDIS_URL", "amqp://x")],
)
def test_invalid_variable_error_is_one_sentence(home: Path, name: str, value: str) -> None:
    environ = {**os.environ, "CONSOLE_HOME": str(home), name: value}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(name)
    assert done.stderr.count("\n") == 1


def test_secret_setting_is_read_from_a_file(home: Path) -> None:
    (home / "token").write_text("t0ken\n")
    assert _read(home, "CONSOLE_METRICS_TOKEN", CONSOLE_METRICS_TOKEN_FILE=str(home / "token")) == ["t0ken"]


def test_settings_table_lists_defaults_and_no_values(home: Path) -> None:
    environ = {**os.environ, "CONSOLE_HOME": str(home), "PORT": "1234", "CONSOLE_METRICS_TOKEN": "s3cret"}
    command = [sys.executable, "manage.py", "settings_table"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| `PORT` | The port of the web server. | number | `8000` |" in done.stdout
    assert "1234" not in done.stdout
    assert "s3cret" not in done.stdout
