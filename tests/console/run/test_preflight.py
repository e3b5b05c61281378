"""What is found before anything starts."""

import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from console.run import preflight
from console.run.preflight import CannotStart
from tests.ports import free_port


def test_a_new_folder_is_made_private(tmp_path: Path) -> None:
    preflight.home(tmp_path / "new" / "home")
    assert (tmp_path / "new" / "home").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "new" / "home" / "run").iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        CannotStart, match=r"/file/home cannot be written \(Not a directory\): set CONSOLE_HOME"
    ):
        preflight.home(tmp_path / "file" / "home")


def test_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "network_filesystem", lambda _: "nfs4")
    with pytest.raises(CannotStart, match=r"lies on a network file system \(nfs4\)"):
        preflight.home(tmp_path)


@pytest.mark.parametrize("name", ["a ;b", "a\nb"])
def test_a_path_that_the_process_list_cannot_hold(tmp_path: Path, name: str) -> None:
    with pytest.raises(CannotStart, match="semicolon, or a control character"):
        preflight.home(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_path_that_no_socket_can_have(tmp_path: Path) -> None:
    socket_name = len("/run/redis.sock")
    fits = tmp_path / ("x" * (preflight.SOCKET_PATH_LIMIT - socket_name - len(bytes(tmp_path)) - 1))
    preflight.home(fits)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(fits / "run" / "redis.sock"))
    with pytest.raises(CannotStart, match="too long for Unix sockets by 1 bytes"):
        preflight.home(fits.with_name(fits.name + "x"))


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_taken_port(family: socket.AddressFamily, address: str) -> None:
    with socket.create_server((address, 0), family=family) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"^Port {number} on {address} .*`make run PORT={number + 1}`"):
            preflight.port(address, number)
    preflight.port(address, number).close()


def test_port_is_refused_while_another_console_starts_on_it() -> None:
    number = free_port()
    with preflight.port("127.0.0.1", number), pytest.raises(CannotStart, match="Address already in use"):
        preflight.port("127.0.0.1", number)
    preflight.port("127.0.0.1", number).close()


def test_an_address_that_is_not_ours() -> None:
    with pytest.raises(CannotStart, match=r"Port 8000 on 192\.0\.2\.1 cannot be used"):
        preflight.port("192.0.2.1", 8000)


def test_every_package_is_there() -> None:
    preflight.packages()


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> None:
        if name == "supervisor":
            raise PackageNotFoundError(name)

    monkeypatch.setattr(preflight, "distribution", distribution)
    with pytest.raises(CannotStart, match="The package supervisor is not installed"):
        preflight.packages()


def test_the_default_folder_is_tightened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "CHECKOUT", tmp_path)
    (tmp_path / "var").mkdir(mode=0o755)
    preflight.home(tmp_path / "var")
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700
