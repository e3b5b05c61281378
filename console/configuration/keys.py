"""The keys of one installation: made once, at random, readable by nobody else, and never given a default.

`make run` makes them on its first start, and so does `python -m console.configuration.keys`.  Loading the
settings only reads them: if settings quietly made new keys where the right ones are not mounted, every stored
secret and every running job would be orphaned.
"""

import os
import secrets
import string
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

from console.home import console_home

INSTALLATION_LENGTH = 6


class KeysMissing(RuntimeError):
    """There are no usable keys; the message is one sentence that says how to get them."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The contents of the files in `keys/`.

    `fernet` and `secret_key` are key rings, newest first: the first key encrypts or signs, all of them
    decrypt or verify. To change one, add a line at the file's beginning. `installation` is part of every
    job's name at an engine, so that two consoles never take each other's jobs; it is 6 characters of a-z
    and 0-9.
    """

    secret_key: tuple[str, ...]
    fernet: tuple[str, ...]
    installation: str
    redis: str


def _installation() -> str:
    letters = string.ascii_lowercase
    rest = (secrets.choice(letters + string.digits) for _ in range(INSTALLATION_LENGTH - 1))
    return secrets.choice(letters) + "".join(rest)


_MAKERS: dict[str, Callable[[], str]] = {
    "secret_key": lambda: secrets.token_urlsafe(64),
    "fernet": lambda: urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    "installation": _installation,
    "redis": lambda: secrets.token_urlsafe(32),
}


# Stored secrets are encrypted with one, running jobs are named after the other.
_IRREPLACEABLE = ("fernet", "installation")


def ensure(home: Path) -> Keys:
    """Make `home`, `home/keys` (both 0700) and every key file (0600) that does not exist yet; then load them.

    A file that exists is never written, also not when two processes start at once. Raises `OSError` where the
    folder cannot be written, and `KeysMissing` where a database lies that was used with other keys.
    """
    folder = home / "keys"
    for name in _IRREPLACEABLE if (home / "db.sqlite3").exists() else ():
        _read(folder / name)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, make in _MAKERS.items():
        _create(folder / name, make())
    return load(home)


def load(home: Path) -> Keys:
    """Read the keys under `home`. Raises `KeysMissing` when one is absent, empty or unreadable."""
    texts = {name: _read(home / "keys" / name) for name in _MAKERS}
    return Keys(
        secret_key=_lines(texts["secret_key"]),
        fernet=_lines(texts["fernet"]),
        installation=texts["installation"],
        redis=texts["redis"],
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _create(path: Path, text: str) -> None:
    """Write a complete file or none: linking into place fails when the name is taken."""
    if path.exists():
        return
    descriptor, draft = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        Path(draft).unlink()


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise KeysMissing(
            f"There is no key file {path}: `make run` makes it on its first start, and so does "
            "`python -m console.configuration.keys`; if this console has run before, CONSOLE_HOME names the "
            "wrong folder."
        ) from None
    except (OSError, UnicodeDecodeError) as problem:
        raise KeysMissing(f"The key file {path} cannot be read: {problem}.") from problem
    if not text:
        raise KeysMissing(f"The key file {path} is empty; restore it from a backup.")
    return text


if __name__ == "__main__":
    try:
        ensure(console_home(os.environ))
    except (KeysMissing, OSError) as problem:
        sys.exit(str(problem))
    print(f"The keys are in {console_home(os.environ) / 'keys'}.")
