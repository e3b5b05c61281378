"""The SFTP server by itself: every request, and what it makes of nonsense."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.node import sftp_packets as packets
from jobs.node.sftp import server
from jobs.node.sftp.folder_server import FolderServer
from jobs.node.sftp.paths import BrowsableFolders, BrowsableRoot
from jobs.node.sftp.server import Server
from jobs.node.sftp_packets import Attributes, Malformed, PacketReader, byte, long, number, text

NOTHING = number(0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Client:
    """Asks, and takes the answer apart: its kind, and a reader of the rest."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def ask(self, kind: int, *parts: bytes) -> tuple[int, PacketReader]:
        reader = PacketReader(self.server.answer(byte(kind) + number(77) + b"".join(parts)))
        answered = reader.byte()
        assert reader.number() == 77
        return answered, reader

    def code(self, kind: int, *parts: bytes) -> int:
        answered, reader = self.ask(kind, *parts)
        assert answered == packets.STATUS
        return reader.number()

    def handle(self, kind: int, *parts: bytes) -> bytes:
        answered, reader = self.ask(kind, *parts)
        assert answered == packets.HANDLE, reader.number()
        return reader.text()


@pytest.fixture
def client(here: Path) -> Client:
    return Client(Server())


@pytest.fixture
def browser(here: Path) -> Client:
    """Of a live replica's folder `here`, as `work`."""
    return Client(FolderServer(BrowsableFolders((BrowsableRoot("work", "/job", base=str(here)),), live=True)))


def _open(client: Client, name: bytes, flags: int, attributes: bytes = NOTHING) -> bytes:
    return client.handle(3, text(name), number(flags), attributes)


def test_sftp_init_answers_version_3_and_extensions() -> None:
    reader = PacketReader(Server().answer(byte(1) + number(3)))
    assert (reader.byte(), reader.number()) == (2, 3)
    named = [reader.text(), reader.text()]
    assert named == [b"posix-rename@openssh.com", b"1"]


def test_sftp_file_is_written_at_any_offset_and_read_back(client: Client, here: Path) -> None:
    handle = _open(client, b"new", 2 | 8 | 32, number(4) + number(0o640))
    assert client.code(6, text(handle), long(3), text(b"def")) == packets.OK
    assert client.code(6, text(handle), long(0), text(b"abc")) == packets.OK
    assert client.code(4, text(handle)) == packets.OK
    assert (here / "new").read_bytes() == b"abcdef"
    handle = _open(client, b"new", 1)
    answered, reader = client.ask(5, text(handle), long(2), number(100))
    assert (answered, reader.text()) == (packets.DATA, b"cdef")
    assert client.code(5, text(handle), long(6), number(100)) == packets.END
    assert client.code(3, text(b"new"), number(2 | 8 | 32), NOTHING) == packets.FAILURE


def test_sftp_attributes_are_reported_and_changed(client: Client, here: Path) -> None:
    (here / "file").write_bytes(b"12345")
    wanted = number(1 | 4 | 8) + long(3) + number(0o600) + number(10) + number(20)
    assert client.code(9, text(b"file"), wanted) == packets.OK
    found = (here / "file").stat()
    assert (found.st_size, stat.S_IMODE(found.st_mode), found.st_mtime) == (3, 0o600, 20)
    _, reader = client.ask(17, text(b"file"))
    told = reader.attributes()
    assert told == Attributes(3, (found.st_uid, found.st_gid), found.st_mode, (10, 20))


def test_sftp_folders_are_created_listed_and_removed(client: Client, here: Path) -> None:
    assert client.code(14, text("中文".encode()), NOTHING) == packets.OK
    (here / "中文" / "a").write_bytes(b"")
    handle = client.handle(11, text("中文".encode()))
    _, reader = client.ask(12, text(handle))
    names = []
    for _ in range(reader.number()):
        names.append(reader.text())
        reader.text()
        reader.attributes()
    assert sorted(names) == [b".", b"..", b"a"]
    assert client.code(12, text(handle)) == packets.END
    assert client.code(15, text("中文".encode())) == packets.FAILURE  # not empty
    assert client.code(13, text("中文/a".encode())) == packets.OK
    assert client.code(15, text("中文".encode())) == packets.OK


def test_sftp_links_are_read_and_files_renamed(client: Client, here: Path) -> None:
    (here / "one").write_bytes(b"1")
    (here / "two").write_bytes(b"2")
    assert client.code(20, text(b"one"), text(b"link")) == packets.OK
    _, reader = client.ask(19, text(b"link"))
    assert (reader.number(), reader.text()) == (1, b"one")
    assert client.code(18, text(b"one"), text(b"two")) == packets.FAILURE
    assert client.code(200, text(b"posix-rename@openssh.com"), text(b"one"), text(b"two")) == packets.OK
    assert (here / "two").read_bytes() == b"1"
    _, reader = client.ask(16, text(b""))
    assert (reader.number(), reader.text()) == (1, os.fsencode(here))
    assert client.code(17, text(b"link")) == packets.NO_FILE
    assert client.ask(7, text(b"link"))[0] == packets.ATTRS


def test_sftp_open_handles_are_limited(client: Client, here: Path) -> None:
    (here / "file").write_bytes(b"")
    for _ in range(server.MOST_HANDLES):
        client.handle(11, text(b"."))
    assert client.code(3, text(b"file"), number(1), NOTHING) == packets.FAILURE


def test_sftp_unknown_requests_and_handles_are_refused(client: Client) -> None:
    assert client.code(99) == packets.UNSUPPORTED
    assert client.code(200, text(b"run@example.org")) == packets.UNSUPPORTED
    assert client.code(5, text(b"none"), long(0), number(1)) == packets.NO_FILE
    assert client.code(13, text(b"a\0b")) == packets.BAD_MESSAGE
    assert client.code(13, number(1000)) == packets.BAD_MESSAGE


@given(st.binary(max_size=200))
def test_sftp_random_packet_is_answered_or_malformed(data: bytes) -> None:
    harmless = {1, 5, 8, 10, 12, 99}
    packet = bytes([sorted(harmless)[data[0] % len(harmless)]]) + data[1:] if data else data
    try:
        answer = Server().answer(packet)
    except Malformed:
        return
    assert answer[0] in {packets.VERSION, packets.STATUS}


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary())
def test_packet_fields_survive_round_trip(small: int, large: int, words: bytes) -> None:
    reader = PacketReader(number(small) + long(large) + text(words))
    assert (reader.number(), reader.long(), reader.text()) == (small, large, words)


def test_listing_line_follows_ls_format(here: Path) -> None:
    (here / "file").write_bytes(b"123")
    line = packets.long_name(b"file", (here / "file").stat()).decode()
    assert line.startswith("-rw")
    assert line.split()[4] == "3"
    assert line.endswith(" file")


# --- a job's folders alone --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted({*range(7, 21)} - {packets.MKDIR, packets.RENAME}))
def test_folder_server_refuses_requests_for_links_or_other_paths(
    browser: Client, here: Path, kind: int
) -> None:
    (here / "file").write_bytes(b"")
    assert browser.code(kind, text(b"work/file"), text(b"work/new"), NOTHING) == packets.UNSUPPORTED
    assert [path.name for path in here.iterdir()] == ["file"]


@pytest.mark.parametrize("name", [name for name, _version in server.EXTENSIONS])
def test_folder_server_supports_no_openssh_extensions(browser: Client, name: bytes) -> None:
    code = browser.code(packets.EXTENDED, text(name), text(b"work/file"), text(b"work/new"), NOTHING)
    assert code == packets.UNSUPPORTED


@pytest.mark.parametrize("path", [b"", b"/etc/passwd", b"etc/passwd", b"work/../x", b"work//x", b"../work"])
def test_folder_server_refuses_paths_outside_its_roots(browser: Client, here: Path, path: bytes) -> None:
    (here.parent / "x").write_bytes(b"")
    for flags in (packets.FOR_READING, packets.FOR_WRITING | packets.CREATED):
        assert browser.code(packets.OPEN, text(path), number(flags), NOTHING) == packets.FAILURE
    assert browser.code(packets.RENAME, text(path), text(b"work/new")) == packets.FAILURE
    assert browser.code(packets.EXTENDED, text(packets.REMOVE), text(b"work"), packets.texts([path])) == (
        packets.FAILURE
    )
    assert (here.parent / "x").exists()


def test_folder_server_shows_written_file_only_after_close(browser: Client, here: Path) -> None:
    flags = packets.FOR_WRITING | packets.CREATED | packets.EXCLUSIVE
    for name in (b"whole", b"half"):
        handle = _open(browser, b"work/" + name, flags)
        assert browser.code(packets.WRITE, text(handle), long(0), text(name)) == packets.OK
        assert not (here / name.decode()).exists()
        if name == b"whole":
            assert browser.code(packets.CLOSE, text(handle)) == packets.OK
    browser.server.abandon()
    assert [path.name for path in here.iterdir()] == ["whole"]
    handle = _open(browser, b"work/whole", packets.FOR_READING)
    assert browser.code(packets.WRITE, text(handle), long(0), text(b"x")) != packets.OK
    assert (here / "whole").read_bytes() == b"whole"
