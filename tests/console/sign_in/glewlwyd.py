"""A real OIDC provider for tests: Debian's glewlwyd, in a folder and on a port of its own."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.ports import free_port
from tests.waiting import wait_for

SCHEMA: Final = Path("/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz")
CLIENT: Final = "console"
SECRET: Final = "client-secret-1"
PASSWORD: Final = "wonderland 7"

_CONFIG: Final = """\
port={port}
external_url="http://127.0.0.1:{port}"
login_url="login.html"
api_prefix="api"
log_mode="file"
log_level="ERROR"
log_file="{folder}/log"
cookie_secure=0
session_expiration=2419200
session_key="GLEWLWYD2_SESSION_ID"
admin_session_authentication="cookie"
profile_session_authentication="cookie"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
hash_algorithm="SHA512"
bind_address="127.0.0.1"
static_files_path="/usr/share/glewlwyd/webapp"
database = {{ type = "sqlite3"; path = "{folder}/db"; }};
"""


def missing() -> str:
    """What this machine lacks for a provider; nothing when all is there."""
    here = shutil.which("glewlwyd") and SCHEMA.exists()
    return "" if here else "there is no OIDC provider to start (Debian: glewlwyd)"


@dataclass
class Provider:
    """The provider, and what its admin does."""

    port: int
    folder: Path
    key: str = ""
    process: subprocess.Popen[bytes] | None = None
    admin: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def issuer(self) -> str:
        return f"{self.url}/api/oidc"

    @property
    def settings(self) -> dict[str, Any]:
        """For CONSOLE_OIDC."""
        return {
            "corp": {"label": "Company", "issuer": self.issuer, "client_id": CLIENT, "scopes": ["openid"]}
        }

    def ask(self, method: str, path: str, body: Any = None, cookies: dict[str, str] | None = None) -> Any:
        """The provider's own API, as its admin unless `cookies` are somebody else's."""
        who = self.admin if cookies is None else cookies
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in who.items())}
        answer = httpx.request(method, f"{self.url}/api/{path}", json=body, headers=headers, trust_env=False)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.json() if answer.content and method == "GET" else answer

    def sign_in(self, name: str, password: str) -> dict[str, str]:
        """Somebody's cookies at the provider.  Its cookies name no domain, which httpx does not like."""
        body = {"username": name, "password": password}
        answer = httpx.post(f"{self.url}/api/auth/", json=body, trust_env=False)
        assert answer.status_code == 200, answer.text
        name, _is, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
        return {name: value}

    def person(self, name: str, *groups: str, email: str = "") -> None:
        """Somebody who may use the console; anew where there was one."""
        self.remove(name)
        self.ask(
            "POST",
            "user/",
            {
                "username": name,
                "name": f"{name.title()} Example",
                "email": email or f"{name}@example.org",
                "enabled": True,
                "password": PASSWORD,
                "scope": ["openid", "g_profile"],
                "groups": list(groups),
            },
        )

    def regroup(self, name: str, *groups: str) -> None:
        row = self.ask("GET", f"user/{name}")
        self.ask("PUT", f"user/{name}", {**row, "groups": list(groups)})

    def remove(self, name: str) -> None:
        headers = {"Cookie": "; ".join(f"{key}={value}" for key, value in self.admin.items())}
        httpx.delete(f"{self.url}/api/user/{name}", headers=headers, trust_env=False)

    def client(self, callback: str) -> None:
        """The console, known to the provider under its address."""
        self.ask(
            "POST",
            "client/",
            {
                "client_id": CLIENT,
                "name": "Job Console",
                "enabled": True,
                "confidential": True,
                "password": SECRET,
                "client_secret": SECRET,
                "redirect_uri": [callback],
                "authorization_type": ["code", "refresh_token"],
                "scope": ["openid"],
                "token_endpoint_auth_method": ["client_secret_basic"],
            },
        )

    def back(self, name: str, question: str) -> str:
        """Where the provider sends somebody who signs in there and consents."""
        cookies = self.sign_in(name, PASSWORD)
        self.ask("PUT", f"auth/grant/{CLIENT}", {"scope": "openid"}, cookies)
        headers = {"Cookie": "; ".join(f"{key}={value}" for key, value in cookies.items())}
        answer = httpx.get(f"{question}&g_continue=", headers=headers, trust_env=False)
        assert answer.status_code == 302, answer.text
        return str(answer.headers["location"])


@contextmanager
def running(callback: str) -> Iterator[Provider]:
    """A provider that knows the console, and nobody yet."""
    folder = Path(tempfile.mkdtemp(prefix="glewlwyd-"))
    provider = Provider(free_port(), folder)
    database = sqlite3.connect(folder / "db")
    with gzip.open(SCHEMA, "rt") as schema:
        database.executescript(schema.read())
    database.close()
    (folder / "conf").write_text(_CONFIG.format(port=provider.port, folder=folder))
    provider.process = subprocess.Popen(
        ["glewlwyd", f"--config-file={folder / 'conf'}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: _answers(provider))
        _set_up(provider)
        provider.client(callback)
        yield provider
    finally:
        provider.process.terminate()
        provider.process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(provider: Provider) -> bool:
    try:
        provider.admin = provider.sign_in("admin", "password")
    except httpx.HTTPError:
        return False
    return True


def _set_up(provider: Provider) -> None:
    """People have groups, and the OIDC plug-in tells them."""
    module = provider.ask("GET", "mod/user/database")
    groups = {"multiple": True, "read": True, "write": True, "profile-read": False, "profile-write": False}
    module["parameters"]["data-format"]["groups"] = groups
    provider.ask("PUT", "mod/user/database", module)
    provider.ask("PUT", "mod/user/database/reset/")
    provider.key = _run("openssl", "genrsa", "2048")
    claims = [
        {
            "name": name,
            "user-property": source,
            "type": "string",
            "mandatory": True,
            "on-demand": False,
            "scope": [],
        }
        for name, source in (("groups", "groups"), ("preferred_username", "username"))
    ]
    off = ("token", "implicit", "password", "client", "none", "device")
    parameters = {
        "iss": provider.issuer,
        "jwt-type": "rsa",
        "jwt-key-size": "256",
        "key": provider.key,
        "cert": _run("openssl", "rsa", "-pubout", text=provider.key),
        "access-token-duration": 3600,
        "refresh-token-duration": 1209600,
        "code-duration": 600,
        "refresh-token-rolling": True,
        "allow-non-oidc": False,
        "auth-type-code-enabled": True,
        "auth-type-refresh-enabled": True,
        "auth-type-id-token-enabled": True,
        **{f"auth-type-{name}-enabled": False for name in off},
        "scope": [],
        "additional-parameters": [],
        "claims": claims,
        "name-claim": "mandatory",
        "email-claim": "mandatory",
        "scope-claim": "no",
        "address-claim": {"type": "no"},
        "pkce-allowed": True,
        "pkce-method-plain-allowed": False,
        "jwks-show": True,
        "jwks-x5c": [],
        "subject-type": "public",
    }
    plugin = {"module": "oidc", "name": "oidc", "display_name": "OIDC", "parameters": parameters}
    provider.ask("POST", "mod/plugin/", plugin)


def _run(*command: str, text: str = "") -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
