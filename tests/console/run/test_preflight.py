"""What is found before anything starts."""

import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from console.run import preflight
from console.run.preflight import CannotStart
from tests.ports import free_port


def test_new_home_folder_is_made_private(tmp_path: Path) -> None:
    preflight.home(tmp_path / "new" / "home")
    assert (tmp_path / "new" / "home").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "new" / "home" / "run").iterdir()) == []


def test_home_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        CannotStart, match=r"/file/home cannot be written \(Not a directory\): set CONSOLE_HOME"
    ):
        preflight.home(tmp_path / "file" / "home")


def test_home_on_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "network_filesystem", lambda _: "nfs4")
    with pytest.raises(CannotStart, match=r"lies on a network file system \(nfs4\)"):
        preflight.home(tmp_path)


@pytest.mark.parametrize("name", ["a ;b", "a\nb"])
def test_home_path_with_unsupported_characters_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CannotStart, match="semicolon, or a control character"):
        preflight.home(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_home_path_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    socket_name = len("/run/job-service.sock")
    fits = tmp_path / ("x" * (preflight.SOCKET_PATH_LIMIT - socket_name - len(bytes(tmp_path)) - 1))
    preflight.home(fits)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(fits / "run" / "job-service.sock"))
    with pytest.raises(CannotStart, match="too long for Unix sockets by 1 bytes"):
        preflight.home(fits.with_name(fits.name + "x"))


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_port_in_use_is_refused_with_a_suggestion(family: socket.AddressFamily, address: str) -> None:
    with socket.create_server((address, 0), family=family) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"^Port {number} on {address} .*`make run PORT={number + 1}`"):
            preflight.port(address, number)
    preflight.port(address, number).close()


def test_port_held_by_another_starting_console_is_refused() -> None:
    number = free_port()
    with preflight.port("127.0.0.1", number), pytest.raises(CannotStart, match="Address already in use"):
        preflight.port("127.0.0.1", number)
    preflight.port("127.0.0.1", number).close()


def test_port_on_foreign_address_is_refused() -> None:
    with pytest.raises(CannotStart, match=r"Port 8000 on 192\.0\.2\.1 cannot be used"):
        preflight.port("192.0.2.1", 8000)


def test_packages_check_passes_when_all_are_installed() -> None:
    preflight.packages()


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> None:
        if name == "supervisor":
            raise PackageNotFoundError(name)

    monkeypatch.setattr(preflight, "distribution", distribution)
    with pytest.raises(CannotStart, match="The package supervisor is not installed"):
        preflight.packages()


def test_default_home_folder_is_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "CHECKOUT", tmp_path)
    (tmp_path / "var").mkdir(mode=0o755)
    preflight.home(tmp_path / "var")
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700
