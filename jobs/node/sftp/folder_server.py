"""SFTP for the file pages: a job's folders, and nothing beside them.

Run as the job's user, in the job's own view while it lives.  A path begins with a root's name (`paths`), no
link is followed, what is no ordinary file is never opened, and what was written appears when its handle is
closed.  A refusal's message is a code of `jobs.messages.folders`, a colon, and the name that it is about.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from contextlib import AbstractContextManager
from typing import Final

from jobs.node import sftp_packets as packets
from jobs.node.sftp import changes, folder_pages, paths
from jobs.node.sftp import server as base
from jobs.node.sftp.archive import Archive
from jobs.node.sftp.paths import BrowsableFolders, FolderError, check_name, decode_name, raise_trouble
from jobs.node.sftp.server import ServedFile, Server, extended_reply
from jobs.node.sftp_packets import PacketReader, status

_FOLDER_MODE: Final = 0o777
_HEAD: Final = 64
_PATIENT: Final = 10
"""What is left of an ended job is read without its limits, and so behind everybody else."""

_FIRST_TO_GO: Final = b"1000"
"""Where the job has no memory left it is not the job that pays for being looked at."""


def serve(site: BrowsableFolders) -> None:
    """Until stdin ends.

    Neither a hangup nor a broken pipe is the end: whoever asked is gone then, which stdin says too, and what
    was half written is removed.
    """
    for number in (signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
        file.write(_FIRST_TO_GO)
    if not site.live:
        os.nice(_PATIENT)
    base.serve(FolderServer(site))


class FolderServer(Server):
    """Only the requests in these tables; all of them keep to the folders of `site`."""

    def __init__(self, site: BrowsableFolders) -> None:
        super().__init__()
        self._site = site
        roots = [{"name": root.name, "label": root.label} for root in site.roots]
        about = json.dumps({"live": site.live, "roots": roots})
        self._extensions = ((packets.FOLDERS, about.encode()),)
        self._answers = {
            packets.OPEN: self._open_file,
            packets.READ: self._read,
            packets.DESCRIBE: self._describe,
            packets.LIST: self._list_page,
            packets.ARCHIVE: self._open_archive,
        }
        self._acts = {
            packets.CLOSE: self._close,
            packets.WRITE: self._write,
            packets.MKDIR: self._make,
            packets.RENAME: self._rename,
            packets.REMOVE: self._remove,
        }

    def _do(self, verb: int | bytes, reader: PacketReader) -> bytes:
        try:
            with raise_trouble(""):
                return super()._do(verb, reader)
        except FolderError as trouble:
            return status(packets.FAILURE, f"{trouble.code}: {trouble.name}")

    def _open_file(self, reader: PacketReader) -> bytes:
        path, wanted = reader.text(), reader.number()
        if wanted & packets.FOR_WRITING:
            with self._open_parent(path) as (around, name):
                return self._keep(changes.Upload(around, name, replace=not wanted & packets.EXCLUSIVE))
        with paths.entry(self._site, path) as (around, name):
            return self._keep(ServedFile(paths.open_file(around, name)))

    def _describe(self, reader: PacketReader) -> bytes:
        """The tag is another one as soon as the file is another one, or was written to."""
        fd = self._file(reader)
        seen = os.fstat(fd)
        tag = f"{seen.st_ino:x}-{seen.st_size:x}-{seen.st_mtime_ns:x}"
        head = os.pread(fd, _HEAD, 0).hex()
        about = {"size": seen.st_size, "time": seen.st_mtime, "tag": tag, "head": head}
        return extended_reply(json.dumps(about).encode())

    def _list_page(self, reader: PacketReader) -> bytes:
        with paths.folder(self._site, reader.text()) as fd:
            sort, down = reader.text().decode(), bool(reader.byte())
            page = folder_pages.page(fd, sort, reader.long(), reader.number(), down=down)
        return extended_reply(json.dumps(page).encode())

    def _open_archive(self, reader: PacketReader) -> bytes:
        with paths.folder(self._site, reader.text()) as fd:
            said = json.loads(reader.text())
            return self._keep(Archive(fd, [*map(check_name, reader.texts())], said))

    def _open_parent(self, path: bytes) -> AbstractContextManager[tuple[int, bytes]]:
        """The folder and the name of what is to be changed."""
        self._check_live()
        return paths.entry(self._site, path)

    def _check_live(self) -> None:
        if not self._site.live:
            raise FolderError("ended")

    def _make(self, reader: PacketReader) -> None:
        with self._open_parent(reader.text()) as (around, name), raise_trouble(decode_name(name)):
            os.mkdir(name, _FOLDER_MODE, dir_fd=around)

    def _rename(self, reader: PacketReader) -> None:
        """Rename, unless there is something of the new name."""
        with (
            self._open_parent(reader.text()) as (around, name),
            self._open_parent(reader.text()) as (into, to),
        ):
            with raise_trouble(decode_name(name)):
                os.stat(name, dir_fd=around, follow_symlinks=False)
            with raise_trouble(decode_name(to)):
                changes.rename_new(around, name, into, to)

    def _remove(self, reader: PacketReader) -> None:
        """Trouble at the first that can't be removed; those before it are gone then."""
        self._check_live()
        with paths.folder(self._site, reader.text()) as around:
            mount = paths.mount_of(around)
            for name in [*map(check_name, reader.texts())]:
                with raise_trouble(decode_name(name)):
                    changes.remove(around, name, mount)
