"""The connection to a cluster's apiserver: its address, the trusted CA and the console's credentials.

It is made from settings, from a kubeconfig file or from the account of the pod in which the console runs.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from jobs.backends.kubernetes.client.credentials import (
    Certificate,
    ClientCertificate,
    Credentials,
    ExecPlugin,
    NoCredentials,
    Token,
    TokenFile,
)

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its own account."""

_UNSUPPORTED: Final = ("auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra")
"""Keys of a kubeconfig's user without which the console would be somebody else."""


class InvalidConnection(NoCredentials):
    """The settings, the kubeconfig file or the pod's account name no apiserver that can be used."""


@dataclass(frozen=True, slots=True)
class ApiConnection:
    """An apiserver by its URL, the certificates (PEM) that it is trusted by, and the console's credentials.

    Without `ca` the certificates count that this machine trusts.  `server_name` is what its certificate is
    for, where that is not the URL's host.
    """

    server: str
    ca: str = ""
    credentials: Credentials = field(default_factory=Token)
    server_name: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.server)
        is_local = parts.hostname in {"127.0.0.1", "::1", "localhost"}
        if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
            raise InvalidConnection(f"“{self.server}” is no https:// address of an apiserver")

    def headers(self, timeout_s: float) -> dict[str, str]:
        """Return the headers by which the console is known.  Raises NoCredentials."""
        return self.credentials.headers(timeout_s)

    def certificate(self, timeout_s: float) -> Certificate | None:
        """Return the certificate by which the console is known, if it is by one.  Raises NoCredentials."""
        return self.credentials.certificate(timeout_s)

    def make_tls_context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """Return a context that trusts the apiserver alone, and shows it a certificate.

        Raises InvalidConnection.
        """
        try:
            context = ssl.create_default_context(cadata=self.ca or None)
            if certificate is not None:
                with ExitStack() as files:
                    paths = [
                        files.enter_context(_in_memory(text)) for text in (certificate.pem, certificate.key)
                    ]
                    context.load_cert_chain(*paths)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise InvalidConnection(f"A certificate for {self.server} is invalid: {error}") from None
        return context


def from_settings(server: str, *, token: str = "", token_file: str = "", ca: str = "") -> ApiConnection:
    """Return the connection that an admin has set, with a token or the file of one.

    Raises InvalidConnection.
    """
    credentials = TokenFile(Path(token_file)) if token_file else Token(token)
    return ApiConnection(server.rstrip("/"), ca, credentials)


def in_cluster(account: Path = SERVICE_ACCOUNT) -> ApiConnection:
    """Return the connection of the pod in which the console runs.  Raises InvalidConnection elsewhere."""
    host, port = (
        os.environ.get("KUBERNETES_SERVICE_HOST", ""),
        os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    if not host:
        raise InvalidConnection("The console does not run in a pod: KUBERNETES_SERVICE_HOST is not set")
    address = f"[{host}]" if ":" in host else host
    return ApiConnection(f"https://{address}:{port}", _read(account / "ca.crt"), TokenFile(account / "token"))


def from_kubeconfig(path: Path, context: str = "") -> ApiConnection:
    """Return the connection of a context in a kubeconfig file, the file's current one by default.

    Raises InvalidConnection for a file that can't be read and for what the console does not support.
    """
    try:
        config = yaml.safe_load(_read(path))
    except yaml.YAMLError:  # whose message may quote a secret
        raise InvalidConnection(f"{path} is no YAML") from None
    if not isinstance(config, dict):
        raise InvalidConnection(f"{path} is no kubeconfig file")
    name = context or str(config.get("current-context") or "")
    chosen = _entry(path, config, "contexts", name).get("context") or {}
    cluster = _entry(path, config, "clusters", str(chosen.get("cluster"))).get("cluster") or {}
    user = _entry(path, config, "users", str(chosen.get("user"))).get("user") or {}
    if cluster.get("insecure-skip-tls-verify"):
        raise InvalidConnection(f"{path}: insecure-skip-tls-verify is not supported; name the cluster's CA")
    if cluster.get("proxy-url"):
        raise InvalidConnection(f"{path}: proxy-url is not supported")
    return ApiConnection(
        str(cluster.get("server", "")).rstrip("/"),
        _data_or_file(path, cluster, "certificate-authority"),
        _credentials(path, user),
        str(cluster.get("tls-server-name", "")),
    )


def _entry(path: Path, config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for each in config.get(kind) or ():
        if isinstance(each, dict) and each.get("name") == name:
            return each
    raise InvalidConnection(f"{path} has no entry “{name}” in {kind}")


def _credentials(path: Path, user: Mapping[str, Any]) -> Credentials:
    if unsupported := next((key for key in _UNSUPPORTED if user.get(key)), ""):
        raise InvalidConnection(f"{path}: {unsupported} is not supported")
    if user.get("tokenFile"):
        return TokenFile(path.parent / str(user["tokenFile"]))
    if user.get("token"):
        return Token(str(user["token"]))
    if plugin := user.get("exec"):
        command = str(plugin.get("command", ""))
        if os.sep in command:
            command = str(path.parent / command)
        environ = tuple((str(each["name"]), str(each["value"])) for each in plugin.get("env") or ())
        return ExecPlugin(
            (command, *map(str, plugin.get("args") or ())), str(plugin.get("apiVersion", "")), environ
        )
    if certificate := _data_or_file(path, user, "client-certificate"):
        return ClientCertificate(Certificate(certificate, _data_or_file(path, user, "client-key")))
    return Token()


def _data_or_file(path: Path, entry: Mapping[str, Any], key: str) -> str:
    """Return the text of a PEM file, which an entry has as base64 or by name; "" without it."""
    if data := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(str(data), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidConnection(f"{path}: {key}-data is no base64") from None
    return _read(path.parent / str(entry[key])) if entry.get(key) else ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConnection(f"{path} can't be read: {type(error).__name__}") from None


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """Give a path of a text for OpenSSL, which takes no key but from a file; it is on no disk."""
    with open(os.memfd_create("certificate"), "w") as file:  # noqa: PTH123 a descriptor
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
