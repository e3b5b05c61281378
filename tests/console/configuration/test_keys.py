"""Keys: made once, at random, private, and never made by reading."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet, MultiFernet

from console.configuration import keys
from console.home import CHECKOUT


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_keys_are_created_private_once_and_then_unchanged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = keys.ensure(home)
    assert _mode(home) == _mode(home / "keys") == 0o700
    assert {path.name: _mode(path) for path in (home / "keys").iterdir()} == {
        "secret_key": 0o600,
        "fernet": 0o600,
        "installation": 0o600,
        "redis": 0o600,
    }
    assert keys.ensure(home) == made == keys.load(home)


def test_key_files_are_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys.ensure(tmp_path / "home")
    finally:
        os.umask(before)
    assert {_mode(path) for path in (tmp_path / "home" / "keys").iterdir()} == {0o600}


def test_keys_of_two_installations_differ(tmp_path: Path) -> None:
    one, other = keys.ensure(tmp_path / "a"), keys.ensure(tmp_path / "b")
    assert not {*one.secret_key, one.installation, one.redis, *one.fernet} & {
        *other.secret_key,
        other.installation,
        other.redis,
        *other.fernet,
    }


def test_keys_of_simultaneous_starts_are_equal(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(keys.ensure, [tmp_path / "home"] * 8))
    assert set(made) == {keys.load(tmp_path / "home")}


def test_installation_name_can_begin_a_dns_label(tmp_path: Path) -> None:
    name = keys.ensure(tmp_path).installation
    assert len(name) == 6
    assert name[0].isalpha()
    assert name == name.lower()
    assert name.isalnum()


def test_key_ring_decrypts_with_old_keys_and_encrypts_with_the_first(tmp_path: Path) -> None:
    old = keys.ensure(tmp_path).fernet[0]
    token = Fernet(old).encrypt(b"secret")
    new = Fernet.generate_key().decode()
    (tmp_path / "keys" / "fernet").write_text(f"{new}\n{old}\n")
    ring = MultiFernet([Fernet(key) for key in keys.load(tmp_path).fernet])
    assert ring.decrypt(token) == b"secret"
    assert Fernet(new).decrypt(ring.encrypt(b"again")) == b"again"


def test_keys_load_creates_nothing_and_explains_how_to_create_keys(tmp_path: Path) -> None:
    with pytest.raises(keys.KeysMissing, match=r"There is no key file .*`make run` makes it"):
        keys.load(tmp_path / "home")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["fernet", "installation"])
def test_keys_tied_to_an_existing_database_are_not_replaced(tmp_path: Path, name: str) -> None:
    keys.ensure(tmp_path)
    (tmp_path / "db.sqlite3").touch()
    (tmp_path / "keys" / name).unlink()
    with pytest.raises(keys.KeysMissing, match=f"There is no key file .*/{name}"):
        keys.ensure(tmp_path)
    assert not (tmp_path / "keys" / name).exists()


@pytest.mark.parametrize("name", ["secret_key", "redis"])
def test_keys_independent_of_the_database_are_replaced(tmp_path: Path, name: str) -> None:
    before = keys.ensure(tmp_path)
    (tmp_path / "db.sqlite3").touch()
    (tmp_path / "keys" / name).unlink()
    after = keys.ensure(tmp_path)
    assert after != before
    assert after.fernet == before.fernet


def test_empty_key_is_not_replaced(tmp_path: Path) -> None:
    keys.ensure(tmp_path)
    (tmp_path / "keys" / "fernet").write_text("")
    with pytest.raises(keys.KeysMissing, match="is empty; restore it from a backup"):
        keys.ensure(tmp_path)


def test_command_without_keys_prints_one_sentence_and_creates_none(tmp_path: Path) -> None:
    environ = {**os.environ, "CONSOLE_HOME": str(tmp_path / "wrong")}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"There is no key file {tmp_path}/wrong/keys/secret_key: `make run` makes it"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "wrong").exists()


def test_keys_module_creates_keys_from_the_command_line(tmp_path: Path) -> None:
    environ = {**os.environ, "CONSOLE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "console.configuration.keys"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == f"The keys are in {tmp_path}/keys.\n"
    assert keys.load(tmp_path).installation
