"""Credentials of a job's role: a file in its attempt's folder, which a server beside each replica reads."""

from __future__ import annotations

import time

from jobs.backends.base import Handle
from jobs.backends.remote import attempts
from jobs.backends.remote.folder_backend import FolderBackend
from jobs.backends.remote.records import read_record
from jobs.node import credential_server


class CredentialFolders(FolderBackend):
    """See `base.CredentialFiles`."""

    def credentials_age_s(self, handle: Handle) -> float | None:
        """See `base.CredentialFiles`."""
        folder = self._find_folder(handle)
        try:
            return time.time() - (folder / credential_server.FILE).stat().st_mtime if folder else None
        except OSError:
            return None

    def put_credentials(self, handle: Handle, text: str) -> None:
        """See `base.CredentialFiles`."""
        folder = self._find_folder(handle)
        record = read_record(folder) if folder else None
        if folder is not None and record is not None and text:
            attempts.write_text(folder / credential_server.FILE, text, record.file_mode)
        elif folder is not None:
            (folder / credential_server.FILE).unlink(missing_ok=True)
