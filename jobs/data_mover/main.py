"""Bringing data to a job and back: `main.py ORDER [FOLDER LOGIN]`; `main.py --git …` begins git.

An order is a JSON file that only the job's user can read; it is removed at once.  What is said goes to the
job's log.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, Any, Final

sys.path.insert(0, str(Path(__file__).parent))  # the folder may lie anywhere: it is laid into jobs

import archives  # type: ignore[import-not-found]
import guard  # type: ignore[import-not-found]
import webhdfs  # type: ignore[import-not-found]

TOGETHER: Final = 8
"""So many objects at once."""

PIECE: Final = 1 << 20
MOST_OBJECTS: Final = 1_000_000
SHOWN: Final = 20
MOST_SIGNED: Final = 10_000
SIGNED_S: Final = 7 * 24 * 3600
"""The longest time that S3 signs an address for."""
EVERY_S: Final = 2.0
WAIT_S: Final = 60

_UNTOLD: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Trouble(Exception):
    """An error, with a message for the log."""


@dataclass(frozen=True)
class Entry:
    """One object: `path` below the place; `tag` changes whenever its bytes do."""

    path: str
    size: int
    tag: str
    name: str
    at: float = 0.0


@dataclass
class Progress:
    """Progress that is logged now and then."""

    what: str
    files: int = 0
    size: int = 0
    done_files: int = 0
    done: int = 0
    kept: int = 0
    told_at: float = field(default_factory=time.monotonic)

    def more(self, size: int, *, kept: bool = False) -> None:
        """One more is there; `kept` when it was in the cache."""
        self.done_files += 1
        self.done += size
        self.kept += kept
        if time.monotonic() - self.told_at > EVERY_S:
            self.told_at = time.monotonic()
            say(f"{self.what}: {self.done_files} of {self.files} files, {amount(self.done)} of {self.all}")

    @property
    def all(self) -> str:
        """How much there is."""
        return amount(self.size)


def say(text: str) -> None:
    """One line of the log."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def amount(size: int) -> str:
    """Bytes as people write them."""
    value = float(size)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


# --- where data lies -------------------------------------------------------------------------------------


class Objects:
    """A folder, or an object, of an object store that speaks S3's words."""

    def __init__(self, order: dict[str, Any]) -> None:
        import s3fs  # type: ignore[import-untyped]  # noqa: PLC0415  # takes long, and git needs nothing of it

        virtual = order["addressing"]
        self._fs = s3fs.S3FileSystem(
            key=order["user"] or None,
            secret=order["password"] or None,
            anon=not order["user"],
            endpoint_url=order["endpoint"] or None,
            client_kwargs={"region_name": order["region"]} if order["region"] else {},
            config_kwargs={
                **({"signature_version": "s3v4"} if order.get("do") == "sign" and order["user"] else {}),
                "s3": {"addressing_style": virtual},
                "connect_timeout": WAIT_S,
                "read_timeout": WAIT_S,
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
                "proxies": {},
            },
            skip_instance_cache=True,
            use_listings_cache=False,
        )
        place = urllib.parse.urlsplit(order["uri"])
        self._bucket = place.netloc
        self._prefix = urllib.parse.unquote(place.path).strip("/")
        self._where = f"{order['endpoint']}|{place.netloc}"

    def entries(self) -> list[Entry]:
        """Everything below the place, or the one object that it is."""
        root = f"{self._bucket}/{self._prefix}".rstrip("/")
        found = self._fs.find(root, detail=True)
        listed = []
        for name, about in found.items():
            below = name[len(root) :].lstrip("/") or name.rpartition("/")[2]
            if name.endswith("/"):
                continue
            when = about.get("LastModified")
            tag = f"{self._where}|{name}|{about.get('ETag')}|{about.get('size')}"
            at = when.timestamp() if when else 0
            listed.append(Entry(below, int(about.get("size") or 0), tag, name, at))
        return listed

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """Its bytes."""
        with self._fs.open(entry.name, "rb", block_size=8 * PIECE, cache_type="readahead") as file:
            while piece := file.read(PIECE):
                yield piece

    def sign(self, entry: Entry) -> str:
        """Return an address from which anybody can read the object for SIGNED_S."""
        return str(self._fs.url(entry.name, expires=SIGNED_S))

    def has_objects(self) -> bool:
        """Tell whether there is anything below the place, by one request."""
        prefix = f"{self._prefix}/" if self._prefix else ""
        answer = self._fs.call_s3("list_objects_v2", Bucket=self._bucket, Prefix=prefix, MaxKeys=1)
        return bool(answer.get("Contents"))

    def upload(self, path: str, source: str) -> None:
        """Let a file lie below the place."""
        self._fs.put_file(source, f"{self._bucket}/{self._prefix}/{path}".replace("//", "/"))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Never from https to http, and no login to another host."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == ("https", "http"):
            raise Trouble(f"it leads to {after.scheme}://, where nothing is fetched from")
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None and (before.scheme, before.netloc) != (after.scheme, after.netloc):
            new.remove_header("Authorization")
        return new


def _make_opener() -> urllib.request.OpenerDirector:
    """Return what opens addresses of the web, without proxies."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


class File:
    """A file behind an address of the web."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._uri = order["uri"]
        self._opener = _make_opener()
        self._headers = {"User-Agent": "job-console", "Accept-Encoding": "identity"}
        if order["user"] or order["password"]:
            login = b64encode(f"{order['user']}:{order['password']}".encode()).decode()
            self._headers["Authorization"] = f"Basic {login}"

    def _ask(self, method: str) -> Any:
        request = urllib.request.Request(self._uri, headers=self._headers, method=method)  # noqa: S310 guarded
        return self._opener.open(request, timeout=WAIT_S)

    def entries(self) -> list[Entry]:
        """The file, called as the last part of its address."""
        try:
            with self._ask("HEAD") as answer:
                headers = answer.headers
        except urllib.error.HTTPError as error:
            if error.code not in (403, 405, 501):  # of servers that know GET alone
                raise
            headers = {}
        name = urllib.parse.unquote(urllib.parse.urlsplit(self._uri).path.rstrip("/").rpartition("/")[2])
        size = int(headers.get("Content-Length") or 0)
        tag = headers.get("ETag") or headers.get("Last-Modified") or secrets.token_hex(16)
        with contextlib.suppress(TypeError, ValueError):
            at = parsedate_to_datetime(headers.get("Last-Modified")).timestamp()
            return [Entry(name or "index.html", size, f"{self._uri}|{tag}|{size}", self._uri, at)]
        return [Entry(name or "index.html", size, f"{self._uri}|{tag}|{size}", self._uri)]

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """Its bytes."""
        with self._ask("GET") as answer:
            while piece := answer.read(PIECE):
                yield piece

    def upload(self, path: str, source: str) -> None:
        """There is no way back."""
        raise Trouble("nothing can be written to an address of the web")


class HdfsFolder:
    """A folder, or a file, of an HDFS: `hdfs://namenode:9000/path`, spoken to at the order's `endpoint`."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._fs = webhdfs.WebHdfs(order["endpoint"], order["user"], order["allowed"])
        place = urllib.parse.urlsplit(order["uri"])
        self._path = urllib.parse.unquote(place.path).rstrip("/")
        self._where = f"{order['endpoint']}|{order['user']}|{place.netloc}"

    def entries(self) -> list[Entry]:
        """Every file below the place, or the one file that it is."""
        listed = []
        with contextlib.suppress(FileNotFoundError):
            for below, size, at in self._fs.list_files(self._path):
                name = f"{self._path}/{below}".rstrip("/")
                tag = f"{self._where}|{name}|{at}|{size}"
                listed.append(Entry(below or name.rpartition("/")[2], size, tag, name, at / 1000))
        return listed

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """Its bytes."""
        with self._fs.open(entry.name) as answer:
            while piece := answer.read(PIECE):
                yield piece

    def upload(self, path: str, source: str) -> None:
        """Let a file lie below the place."""
        self._fs.upload(f"{self._path}/{path}", source)


class SignedObjects:
    """Objects of a store, each by an address that was signed for reading; `objects` has those by name."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._rows = order.get("objects", {}).get(order["name"])
        self._opener = _make_opener()

    def entries(self) -> list[Entry]:
        """All of them."""
        if self._rows is None:
            raise Trouble("its addresses are not there")
        return [Entry(path, size, "", url, at) for path, size, at, url in self._rows]

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """Its bytes."""
        try:
            answer = self._opener.open(entry.name, timeout=WAIT_S)
        except urllib.error.HTTPError as error:
            days = SIGNED_S // 86400
            late = f"; its address was valid for {days} days from submission" if error.code == 403 else ""
            raise Trouble(f"{entry.path}: {error.code} {error.reason}{late}") from None
        with answer:
            while piece := answer.read(PIECE):
                yield piece

    def upload(self, path: str, source: str) -> None:
        """There is no way back."""
        raise Trouble("nothing can be written by a signed address")


Place = Objects | File | HdfsFolder | SignedObjects
_PLACES: Final[dict[str, type[Place]]] = {"s3": Objects, "hdfs": HdfsFolder, "signed": SignedObjects}


def place_of(order: dict[str, Any]) -> Place:
    """Return the store or file that the order is about."""
    return _PLACES.get(order["uri"].partition(":")[0], File)(order)


# --- bringing it -----------------------------------------------------------------------------------------


def parts_of(path: str) -> list[str]:
    """The names on the way to a file below a folder.  Trouble for what leads out, or is no name."""
    parts = path.split("/")
    wrong = path.startswith("/") or any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts)
    if wrong or "\0" in path:
        raise Trouble(f"the key “{_UNTOLD.sub('?', path)}” is no path of a file, and nothing is fetched")
    return parts


def check_entries(found: list[Entry], most: int) -> list[Entry]:
    """The entries, each of which is a file below a folder and no other's folder.  Raises Trouble."""
    if len(found) > MOST_OBJECTS:
        raise Trouble(f"there are more than {MOST_OBJECTS:,} files")
    if most and sum(entry.size for entry in found) > most:
        raise Trouble(f"it is {amount(sum(entry.size for entry in found))}, and may be {amount(most)}")
    folders = {"/".join(parts_of(entry.path)[:-1]) for entry in found}
    steps = [each.split("/") for each in folders]
    around = {"/".join(each[:depth]) for each in steps for depth in range(1, len(each) + 1)}
    for entry in found:
        if entry.path in around:
            raise Trouble(f"“{_UNTOLD.sub('?', entry.path)}” is a file and a folder at once")
    return found


class Folder:
    """A folder that is ours alone, reached by its descriptor: no link in it is followed."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    @contextlib.contextmanager
    def around(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder in which a file below this one lies, made if it has to be, and the file's name."""
        *way, name = parts_of(path)
        fd = os.dup(self.fd)
        try:
            for each in way:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(each, 0o777, dir_fd=fd)
                inner = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
                os.close(fd)
                fd = inner
            yield fd, name
        finally:
            os.close(fd)


class Cache:
    """Cache of what this person's jobs have fetched, by tag.  Nothing in it is used that is not a
    regular file of our own, of the right size.
    """

    def __init__(self, path: str, most: int) -> None:
        self._most = most
        self._fd = -1
        if path and most:
            made = Path(path, "objects")
            made.mkdir(mode=0o700, exist_ok=True)
            self._fd = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def find(self, entry: Entry) -> IO[bytes] | None:
        """Its bytes as they were fetched before."""
        if self._fd < 0:
            return None
        try:
            fd = os.open(_cache_name(entry), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._fd)
        except OSError:
            return None
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_size != entry.size:
            os.close(fd)
            return None
        os.utime(fd)
        return os.fdopen(fd, "rb")

    @contextlib.contextmanager
    def keep_copy(self, entry: Entry) -> Iterator[IO[bytes] | None]:
        """A file into which its bytes go too; kept once all of them are there."""
        if self._fd < 0 or entry.size > self._most:
            yield None
            return
        name = f".{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = os.open(name, flags, 0o600, dir_fd=self._fd)
        try:
            with os.fdopen(fd, "wb") as file:
                yield file
            os.rename(name, _cache_name(entry), src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            os.unlink(name, dir_fd=self._fd)
            raise

    def evict(self) -> None:
        """Remove what was not used for longest, until the rest fits."""
        if self._fd < 0:
            return
        rows = []
        for name in os.listdir(self._fd):  # noqa: PTH208 a descriptor has no other way
            with contextlib.suppress(OSError):
                about = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
                rows.append((about.st_mtime, about.st_size, name))
        total = sum(size for _, size, _ in rows)
        for _, size, name in sorted(rows):
            if total <= self._most:
                return
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self._fd)
            total -= size


def _cache_name(entry: Entry) -> str:
    return hashlib.sha256(entry.tag.encode("utf-8", "surrogateescape")).hexdigest()


def fetch(order: dict[str, Any]) -> None:
    """Bring everything into the folder."""
    place, cache = place_of(order), Cache(order["cache"], order["cache_most"])
    found = check_entries(place.entries(), order["most"])
    if not found and order.get("unpack"):
        raise Trouble("there is nothing there")
    if not found:
        say(f"{order['name']}: there is nothing there")
        return
    target = Folder(order["folder"])
    if order.get("unpack") and len(found) == 1 and archives.is_archive(found[0].path):
        _unpack(place, target, found[0], order)
        return
    progress = Progress(order["name"], len(found), sum(entry.size for entry in found))

    def bring(entry: Entry) -> None:
        kept = _bring(place, cache, target, entry, order["most"])
        progress.more(entry.size, kept=kept)

    with ThreadPoolExecutor(TOGETHER) as pool:
        try:
            for _ in pool.map(bring, found):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    cache.evict()
    before = f", {progress.kept} of them as they were fetched before" if progress.kept else ""
    say(f"{order['name']}: {progress.files} files, {amount(progress.done)}{before}")


def _unpack(place: Place, target: Folder, entry: Entry, order: dict[str, Any]) -> None:
    """Fetch an archive, and have the folder hold what is in it."""
    most, fetched = order["most"], 0
    with tempfile.TemporaryFile() as file:
        for piece in place.pieces(entry):
            fetched += len(piece)
            if most and fetched > most:
                raise Trouble(f"it is larger than {amount(most)}")
            file.write(piece)
        file.seek(0)
        try:
            files, size = archives.unpack(file, entry.path, target.around, most)
        except archives.BadArchive as error:
            raise Trouble(_UNTOLD.sub("?", str(error))) from error
    say(f"{order['name']}: {files} files, {amount(size)}, unpacked")


def _bring(place: Place, cache: Cache, target: Folder, entry: Entry, most: int) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with target.around(entry.path) as (folder, name):
        fd = os.open(name, flags, 0o666, dir_fd=folder)
    with os.fdopen(fd, "wb") as file:
        known = cache.find(entry)
        if known is not None:
            with known:
                while piece := known.read(PIECE):
                    file.write(piece)
        else:
            _fetch(place, cache, entry, file, most)
        file.flush()
        if entry.at:
            os.utime(file.fileno(), (int(entry.at), int(entry.at)))
    return known is not None


def _fetch(place: Place, cache: Cache, entry: Entry, file: IO[bytes], most: int) -> None:
    written = 0
    with cache.keep_copy(entry) as copy:
        for piece in place.pieces(entry):
            written += len(piece)
            if most and written > most:
                raise Trouble(f"{entry.path} is larger than {amount(most)}")
            file.write(piece)
            if copy is not None:
                copy.write(piece)
        if entry.size and written != entry.size:
            raise Trouble(f"{entry.path}: {written:,} of {entry.size:,} bytes came")


def store(order: dict[str, Any]) -> None:
    """Take what is new or has changed in the folder to where it came from; no link is followed."""
    place = place_of(order)
    there = {entry.path: entry for entry in place.entries()}
    root = Folder(order["folder"])
    changed: list[tuple[str, int]] = []
    for around, _, names, fd in os.fwalk(".", dir_fd=root.fd):
        for name in names:
            about = os.stat(name, dir_fd=fd, follow_symlinks=False)
            path = os.path.normpath(f"{around}/{name}")
            if stat.S_ISREG(about.st_mode) and not _same(there.get(path), about):
                changed.append((path, about.st_size))
    progress = Progress(f"back to {order['name']}", len(changed), sum(size for _, size in changed))
    for path, size in changed:
        with root.around(path) as (folder, name):
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            place.upload(path, f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
        progress.more(size)
    say(f"{progress.what}: {progress.files} files, {progress.all}")


def _same(entry: Entry | None, about: os.stat_result) -> bool:
    """Tell whether a file is as it was brought: with whole seconds, which no write leaves."""
    whole = 10**9
    return entry is not None and entry.size == about.st_size and int(entry.at) * whole == about.st_mtime_ns


def look(order: dict[str, Any]) -> None:
    """Say what is there, and read the beginning of one file; nothing is brought."""
    place = place_of(order)
    found = place.entries()
    if not found:
        raise Trouble(f"{order['name']}: there is nothing there")
    for entry in found[:SHOWN]:
        say(f"{amount(entry.size):>12}  {_UNTOLD.sub('?', entry.path)}")
    if len(found) > SHOWN:
        say(f"… and {len(found) - SHOWN:,} more")
    first = next((entry for entry in found if entry.size), found[0])
    next(iter(place.pieces(first)), b"")
    say(f"{order['name']}: {len(found):,} files, {amount(sum(entry.size for entry in found))}")


def probe(order: dict[str, Any]) -> None:
    """Say whether there are objects in a part of an object store."""
    say(f"{order['name']}: {'listed' if Objects(order).has_objects() else 'empty'}")


def sign(order: dict[str, Any]) -> None:
    """Say the path, size, time and signed address of each object in a part of a store, as JSON."""
    place = Objects(order)
    found = check_entries(place.entries(), order["most"])
    if len(found) > MOST_SIGNED:
        raise Trouble(f"there are more than {MOST_SIGNED:,} objects")
    say(json.dumps([[entry.path, entry.size, entry.at, place.sign(entry)] for entry in found]))


def read(order: dict[str, Any]) -> None:
    """Say what one small file holds."""
    place, text = place_of(order), b""
    for entry in place.entries():
        for piece in place.pieces(entry):
            text += piece
            if len(text) > order["most"]:
                raise Trouble(f"it is larger than {amount(order['most'])}")
        say(text.decode())
        return
    raise Trouble("there is no such file")


DO: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "fetch": fetch,
    "store": store,
    "look": look,
    "probe": probe,
    "sign": sign,
    "read": read,
}


def carry(path: str, folder: str = "", login: str = "") -> int:
    """Do what the order says, in `folder` if one is given; how the process ends.

    `login` is a file that may have the `user` and the `password`, where the order has none.  An order without
    `inside` is of a job that could connect to anywhere itself.
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 removed while it is open
        os.unlink(path)  # noqa: PTH108
        order = json.load(file)
    with contextlib.suppress(FileNotFoundError), open(login, encoding="utf-8") as file:  # noqa: PTH123
        order |= json.load(file)
    order["folder"] = folder or order.get("folder")
    sys.path.insert(1, order["site"])
    os.umask(0o022)
    order["allowed"] = guard.Allowed(order["inside"] or ())
    if order["inside"] is not None:
        guard.keep_to(order["allowed"])
    hidden = [text for text in (order["password"],) if text]
    try:
        DO[order["do"]](order)
    except Trouble as trouble:
        say(f"{order['name']}: {trouble}")
    except Exception as error:  # noqa: BLE001  # in the library's own words
        text = " ".join(str(each) for each in _causes(error))
        for secret in hidden:
            text = text.replace(secret, "••••")
        say(f"{order['name']}: {_UNTOLD.sub(' ', text)[:2000]}")
    else:
        return 0
    return 1


def _causes(error: BaseException | None) -> Iterator[str]:
    seen: set[str] = set()
    while error is not None:
        text = f"{type(error).__name__}: {error}"
        if text not in seen:
            yield text
        seen.add(text)
        error = error.__cause__ or error.__context__


# --- git -------------------------------------------------------------------------------------------------


def git(uri: str, inside: str, argv: list[str]) -> int:
    """Become git, which connects to the host at no other address than the one that was looked at."""
    parts = urllib.parse.urlsplit(uri)
    host, port = parts.hostname or "", parts.port or guard.PORTS[parts.scheme]
    try:
        found = guard.addresses_of(host, port, inside=inside == "1")
    except OSError as error:
        say(f"{host}: {error.strerror or error}")
        return 128
    env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}  # our own
    if parts.scheme == "ssh":
        alias = host if port == guard.PORTS["ssh"] else f"[{host}]:{port}"
        env["GIT_SSH_COMMAND"] += f" -oHostName={found[0]} -oHostKeyAlias={alias}"
    else:
        number = int(env["GIT_CONFIG_COUNT"])
        pinned = ",".join(f"[{each}]" if ":" in each else each for each in found)
        env[f"GIT_CONFIG_KEY_{number}"] = "http.curloptResolve"
        env[f"GIT_CONFIG_VALUE_{number}"] = f"{host}:{port}:{pinned}"
        env["GIT_CONFIG_COUNT"] = str(number + 1)
    return os.execve(argv[0], argv, env)  # noqa: S606 git itself


if __name__ == "__main__":
    if sys.argv[1] == "--git":
        sys.exit(git(sys.argv[2], sys.argv[3], sys.argv[4:]))
    code = carry(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # threads of libraries are not waited for
