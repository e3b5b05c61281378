"""From a folder to a running console, and back: the whole of `make run` in the order in which it happens."""

import os
import shutil
from pathlib import Path

from console.configuration import config, keys
from console.configuration.servers import private_socket
from console.home import CHECKOUT
from console.run import broker, child_processes, first_password, preflight, programs
from console.run.lock import Lock
from console.run.stale_processes import clear
from console.run.supervise import supervise
from console.run.terminal_messages import TerminalMessages
from console.server import certificate


def run() -> None:
    """Check, prepare, start, say where it is, and keep it running until SIGINT, SIGTERM or SIGHUP."""
    os.umask(0o077)
    home, folder = config.HOME, config.HOME / "run"
    preflight.home(home)
    password = keys.ensure(home).redis
    certificate.ensure(config.TLS, config.HOSTS, config.APPS_DOMAIN, config.BIND)
    url = _url(config.BIND, config.PORT)
    lock = Lock(folder / "lock")
    lock.take(url)
    clear(folder)
    with preflight.port(config.BIND, config.PORT):
        print("Starting Job Console …", flush=True)
        _write_configuration(folder, private_socket(home), password)
        os.environ["CELERY_SKIP_CHECKS"] = "1"  # they are made once, in a moment
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(_empty(folder / "timings"))
        _empty(folder / "cache")
        child_processes.gather()
        message = _bootstrap() + _certificate()
        supervise(folder / "supervisord.conf", TerminalMessages(folder, url, config.HOSTS, message).each_step)
    print("Job Console has stopped; running jobs go on.")


def _url(bind: str, port: int) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(bind, f"[{bind}]" if ":" in bind else bind)  # noqa: S104
    return f"{config.TLS.scheme}://{host}:{port}"


def _certificate() -> str:
    """Return the fingerprint to compare for a self-signed certificate."""
    if not config.TLS.made:
        return ""
    path = config.TLS.certificate
    return f"Certificate: {path}\nIts SHA-256 fingerprint: {certificate.fingerprint(path)}\n"


def _write_configuration(folder: Path, socket: Path, password: str) -> None:
    redis = None
    if not config.REDIS_URL:
        server = broker.find_server()
        if server is None:
            raise preflight.CannotStart(
                "There is no Redis: install redis-server or valkey-server, or set REDIS_URL to a server."
            )
        redis = [str(server), str(folder / "redis.conf")]
        _write(folder / "redis.conf", broker.config_text(socket, password))
    listed = programs.programs(redis, config.WORKERS, config.WEB_PROCESSES)
    rotation = programs.Rotation(config.LOG_FILE_MIB, config.LOG_FILES)
    text = programs.supervisord_config(listed, checkout=CHECKOUT, root=os.geteuid() == 0, rotation=rotation)
    _write(folder / "supervisord.conf", text)


def _empty(folder: Path) -> Path:
    """Return `folder`, without what programs of an earlier start left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _bootstrap() -> str:
    """Bring database and static files up to date; return the message for the person, if any."""
    code, message = child_processes.call(["-m", "console", "bootstrap"], first_password.take)
    first_password.forget()
    if code:
        raise preflight.CannotStart("The database could not be prepared; the reason stands above.")
    return message
