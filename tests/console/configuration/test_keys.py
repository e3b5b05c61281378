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


def test_the_first_call_makes_private_files_and_the_second_leaves_them(tmp_path: Path) -> None:
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


def test_files_are_private_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        keys.ensure(tmp_path / "home")
    finally:
        os.umask(before)
    assert {_mode(path) for path in (tmp_path / "home" / "keys").iterdir()} == {0o600}


def test_two_installations_share_nothing(tmp_path: Path) -> None:
    one, other = keys.ensure(tmp_path / "a"), keys.ensure(tmp_path / "b")
    assert not {*one.secret_key, one.installation, one.redis, *one.fernet} & {
        *other.secret_key,
        other.installation,
        other.redis,
        *other.fernet,
    }


def test_starts_at_the_same_moment_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(keys.ensure, [tmp_path / "home"] * 8))
    assert set(made) == {keys.load(tmp_path / "home")}


def test_the_installation_can_begin_a_dns_label(tmp_path: Path) -> None:
    name = keys.ensure(tmp_path).installation
    assert len(name) == 6
    assert name[0].isalpha()
    assert name == name.lower()
    assert name.isalnum()


def test_the_key_ring_decrypts_with_old_keys_and_encrypts_with_the_first(tmp_path: Path) -> None:
    old = keys.ensure(tmp_path).fernet[0]
    token = Fernet(old).encrypt(b"secret")
    new = Fernet.generate_key().decode()
    (tmp_path / "keys" / "fernet").write_text(f"{new}\n{old}\n")
    ring = MultiFernet([Fernet(key) for key in keys.load(tmp_path).fernet])
    assert ring.decrypt(token) == b"secret"
    assert Fernet(new).decrypt(ring.encrypt(b"again")) == b"again"


def test_reading_makes_nothing_and_says_how_to_get_keys(tmp_path: Path) -> None:
    with pytest.raises(keys.KeysMissing, match=r"There is no key file .*`make run` makes it"):
        keys.load(tmp_path / "home")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["fernet", "installation"])
def test_what_a_database_was_used_with_is_not_replaced(tmp_path: Path, name: str) -> None:
    keys.ensure(tmp_path)
    (tmp_path / "db.sqlite3").touch()
    (tmp_path / "keys" / name).unlink()
    with pytest.raises(keys.KeysMissing, match=f"There is no key file .*/{name}"):
        keys.ensure(tmp_path)
    assert not (tmp_path / "keys" / name).exists()


@pytest.mark.parametrize("name", ["secret_key", "redis"])
def test_what_can_be_replaced_is(tmp_path: Path, name: str) -> None:
    before = keys.ensure(tmp_path)
    (tmp_path / "db.sqlite3").touch()
    (tmp_path / "keys" / name).unlink()
    after = keys.ensure(tmp_path)
    assert after != before
    assert after.fernet == before.fernet


def test_an_empty_key_is_not_replaced(tmp_path: Path) -> None:
    keys.ensure(tmp_path)
    (tmp_path / "keys" / "fernet").write_text("")
    with pytest.raises(keys.KeysMissing, match="is empty; restore it from a backup"):
        keys.ensure(tmp_path)


def test_a_command_without_keys_says_one_sentence_and_makes_none(tmp_path: Path) -> None:
    environ = {**os.environ, "CONSOLE_HOME": str(tmp_path / "wrong")}
    command = [sys.executable, "manage.py", "check"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"There is no key file {tmp_path}/wrong/keys/secret_key: `make run` makes it"
    )
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "wrong").exists()


def test_the_module_makes_them_by_hand(tmp_path: Path) -> None:
    environ = {**os.environ, "CONSOLE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "console.configuration.keys"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == f"The keys are in {tmp_path}/keys.\n"
    assert keys.load(tmp_path).installation
