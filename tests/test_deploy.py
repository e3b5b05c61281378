"""The examples in `deploy/`: each is read by the program that it is for, and names what there is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import console.settings
from console.configuration.config import env
from console.home import CHECKOUT
from tests.required import skip_without
from tools.wheel import RESOURCES

DEPLOY = CHECKOUT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def checked(*command: str | Path, **environ: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_units_are_valid(tmp_path: Path) -> None:
    skip_without("systemd-analyze", "systemd")
    for unit in UNITS:
        text = unit.read_text().replace("/opt/job-console/bin/job-console-server", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    assert checked("systemd-analyze", "verify", "--man=no", *tmp_path.glob("*.service")) == ""


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_unit_leaves_jobs_alone_when_it_stops(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    assert {"KillMode=process", "OOMPolicy=continue", "UMask=0077", "StateDirectoryMode=0700"} <= set(lines)


def test_nginx_example_is_valid(tmp_path: Path) -> None:
    skip_without("nginx", "nginx-light")
    key, certificate = tmp_path / "privkey.pem", tmp_path / "fullchain.pem"
    request = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    checked("openssl", *request, "-subj", "/CN=console.example.com", "-keyout", key, "-out", certificate)
    site = (DEPLOY / "proxy" / "nginx.conf").read_text().replace("/etc/ssl/job-console", str(tmp_path))
    folders = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{name}_temp_path {tmp_path}/{name}; " for name in folders)
    config = tmp_path / "nginx.conf"
    config.write_text(f"pid {tmp_path}/pid; events {{}} http {{ access_log off; {temporary}\n{site}\n}}")
    assert "test is successful" in checked("nginx", "-t", "-p", tmp_path, "-c", config)


def test_caddy_example_is_valid(tmp_path: Path) -> None:
    skip_without("caddy", "caddy")
    file = DEPLOY / "proxy" / "Caddyfile"
    answer = checked("caddy", "validate", "--config", file, "--adapter", "caddyfile", HOME=str(tmp_path))
    assert "Valid configuration" in answer


def test_examples_name_settings_that_exist() -> None:
    assert console.settings.__name__ == "console.settings", "it declares the variables"
    own = {"CONSOLE_HOST", "CONSOLE_UPSTREAM"}  # of compose and Caddy
    for path in (path for path in DEPLOY.rglob("*") if path.is_file()):
        names = set(re.findall(r"\b(?:CONSOLE_[A-Z_]+|DATABASE_URL|REDIS_URL)\b", path.read_text()))
        assert names - own <= set(env.variables), path


def test_container_image_has_all_that_the_wheel_is_made_of() -> None:
    text = (DEPLOY / "container" / "Containerfile").read_text()
    copied = set(re.findall(r"^COPY (?!--)(.+) \S+$", text, flags=re.MULTILINE))
    names = {name for line in copied for name in line.split()}
    assert {"client", "console", "jobs", "locale", "quotas", "tools", "pyproject.toml", *RESOURCES} <= names
    assert all((CHECKOUT / name).exists() for name in names)


def test_compose_gives_the_console_its_servers() -> None:
    services = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())["services"]
    assert set(services) == {"console", "postgres", "redis", "caddy"}
    proxy = services["caddy"]["networks"]["inside"]["ipv4_address"]
    assert services["console"]["environment"]["CONSOLE_TRUSTED_PROXIES"] == proxy
    published = {name for name, service in services.items() if "ports" in service}
    assert published == {"console", "caddy"}, "the database and the broker are for the console alone"
    assert services["console"]["ports"] == ["${SSH_PORT:-2222}:2222"]
