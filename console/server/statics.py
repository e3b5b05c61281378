"""Collecting static files, only when there is something new: it hashes and compresses each one."""

import hashlib
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from servestatic.storage import CompressedManifestStaticFilesStorage

STAMP = ".collected"


class RememberedAddresses:
    """A storage that works out the address of each file once: a page has sixty, most of them the icons'."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._addresses: dict[str, str] = {}

    def url(self, name: str | None, *args: Any, **kwargs: Any) -> str:
        """Return the address of a file."""
        if args or kwargs or name is None:
            return str(super().url(name, *args, **kwargs))  # type: ignore[misc]  # a storage's
        if name not in self._addresses:
            self._addresses[name] = str(super().url(name))  # type: ignore[misc]  # a storage's
        return self._addresses[name]


class HashedStorage(RememberedAddresses, CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # no types
    """Our own modules import each other by their hashed names too, so that browsers may keep them for ever.

    Django can do so for all scripts or for none; others' scripts have comments that name no files of ours.
    """

    patterns: ClassVar[Any] = (
        *CompressedManifestStaticFilesStorage.patterns,
        ("console/*.js", CompressedManifestStaticFilesStorage._js_module_import_aggregation_patterns[1]),  # noqa: SLF001
    )

    def save_manifest(self) -> None:
        """Write the names that were just made; addresses with earlier ones are forgotten."""
        self._addresses.clear()
        super().save_manifest()


def collect_if_changed() -> None:
    """Run `collectstatic --clear` unless STATIC_ROOT was made from the same files.

    With DEBUG they are served from where they lie.
    """
    if settings.DEBUG:
        return
    stamp = settings.STATIC_ROOT / STAMP
    state = _fingerprint()
    if stamp.is_file() and stamp.read_text(encoding="ascii") == state:
        return
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(state, encoding="ascii")


def _fingerprint() -> str:
    """Changes with any file's name, size or time, and with the storage that makes the result."""
    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for name, storage in sorted(finder.list([]), key=lambda found: found[0]):
            modified = storage.get_modified_time(name).timestamp()
            digest.update(f"{name}\0{storage.size(name)}\0{modified}\n".encode())
    return digest.hexdigest()
