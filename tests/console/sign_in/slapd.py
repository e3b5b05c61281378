"""A real OpenLDAP for tests: in a folder and on a port of its own, and gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.ports import free_port
from tests.waiting import wait_for

BASE: Final = "dc=example,dc=org"
ROOT: Final = f"cn=admin,{BASE}"
SECRET: Final = "directory-secret"
PROGRAMS: Final = ("/usr/sbin/slapd", "/usr/lib/openldap/slapd")

_CONFIG: Final = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/slapd.pid
TLSCACertificateFile {folder}/cert.pem
TLSCertificateFile {folder}/cert.pem
TLSCertificateKeyFile {folder}/key.pem
security simple_bind={strength}
database mdb
maxsize 10485760
suffix "{base}"
rootdn "{root}"
rootpw {secret}
directory {folder}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
"""

_TREE: Final = f"""\
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{BASE}
objectClass: organizationalUnit
ou: groups
"""


def program() -> str:
    """Where slapd is; it is not on everybody's PATH."""
    return next((path for path in (shutil.which("slapd"), *PROGRAMS) if path and Path(path).exists()), "")


def missing() -> str:
    """What this machine lacks for a directory; nothing when all is there."""
    if not program():
        return "there is no slapd (Debian: slapd)"
    try:
        import ldap  # noqa: F401, PLC0415
    except ImportError:
        return "there is no LDAP library (`make ldap`)"
    return ""


@dataclass
class Slapd:
    """The server, and what an admin of it does."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """For CONSOLE_LDAP."""
        return {
            "url": self.url,
            "starttls": True,
            "ca": str(self.folder / "cert.pem"),
            "bind_dn": ROOT,
            "people": f"ou=people,{BASE}",
            "people_filter": "(&(objectClass=inetOrgPerson)(!(employeeType=gone)))",
            "groups": f"ou=groups,{BASE}",
        }

    def start(self) -> None:
        command = [program(), "-f", str(self.folder / "slapd.conf"), "-h", self.url, "-d", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(self._answers)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
            self.process = None

    def _answers(self) -> bool:
        import ldap  # noqa: PLC0415

        try:
            ldap.initialize(self.url).get_option(ldap.OPT_PROTOCOL_VERSION)
            self.change(lambda connection: connection.search_s("", ldap.SCOPE_BASE))
        except ldap.LDAPError:
            return False
        return True

    def change(self, what: Any) -> Any:
        """Let an admin's connection do `what`."""
        import ldap  # noqa: PLC0415

        connection = ldap.initialize(self.url)
        connection.set_option(ldap.OPT_X_TLS_CACERTFILE, str(self.folder / "cert.pem"))
        connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
        connection.start_tls_s()
        connection.simple_bind_s(ROOT, SECRET)
        try:
            return what(connection)
        finally:
            connection.unbind_s()

    def add(self, dn: str, **attributes: str | list[str]) -> None:
        """An entry, or these attributes and no others for one that there is: its id stays."""
        import ldap  # noqa: PLC0415

        rows = [
            (name, [each.encode() for each in ([value] if isinstance(value, str) else value)])
            for name, value in attributes.items()
        ]

        def put(connection: Any) -> None:
            try:
                connection.add_s(dn, rows)
            except ldap.ALREADY_EXISTS:
                [(_dn, has)] = connection.search_s(dn, ldap.SCOPE_BASE)
                gone = [(ldap.MOD_DELETE, name, None) for name in has if name not in attributes]
                connection.modify_s(dn, [*gone, *((ldap.MOD_REPLACE, name, values) for name, values in rows)])

        self.change(put)

    def remove(self, dn: str) -> None:
        import ldap  # noqa: PLC0415

        def take(connection: Any) -> None:
            try:
                connection.delete_s(dn)
            except ldap.NO_SUCH_OBJECT:
                return

        self.change(take)

    def person(self, uid: str, password: str, **more: str | list[str]) -> str:
        """Somebody; the distinguished name."""
        dn = f"uid={uid},ou=people,{BASE}"
        rows: dict[str, str | list[str]] = {
            "objectClass": ["inetOrgPerson"],
            "uid": uid,
            "cn": uid.title(),
            "sn": "Example",
            "mail": f"{uid}@example.org",
            "userPassword": password,
        }
        self.add(dn, **{**rows, **more})
        return dn

    def group(self, name: str, *members: str, kind: str = "groupOfNames") -> None:
        """A group of `members`: distinguished names, or user names in a posixGroup."""
        dn = f"cn={name},ou=groups,{BASE}"
        if kind == "posixGroup":
            self.add(dn, objectClass=[kind], cn=name, gidNumber="5000", memberUid=list(members))
        else:
            member = list(members) or [ROOT]  # a group of names has one at least
            key = "uniqueMember" if kind == "groupOfUniqueNames" else "member"
            self.add(dn, objectClass=[kind], cn=name, **{key: member})


@contextmanager
def running() -> Iterator[Slapd]:
    """A directory with two branches and nobody in them."""
    folder = Path(tempfile.mkdtemp(prefix="slapd-"))
    server = Slapd(free_port(), folder)
    try:
        (folder / "data").mkdir()
        _certificate(folder)
        text = _CONFIG.format(folder=folder, base=BASE, root=ROOT, secret=SECRET, strength=128)
        (folder / "slapd.conf").write_text(text)
        tree = [program().replace("slapd", "slapadd"), "-f", str(folder / "slapd.conf")]
        if not os.access(tree[0], os.X_OK):
            tree = [program(), "-T", "add", "-f", str(folder / "slapd.conf")]
        subprocess.run(tree, input=_TREE.encode(), check=True, stderr=subprocess.DEVNULL)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _certificate(folder: Path) -> None:
    """For localhost, by itself."""
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*request, *files, *names], check=True, capture_output=True)
