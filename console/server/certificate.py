"""The certificate of the web server: its context, its fingerprint, and the one that the console makes."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from console.configuration.env import EnvError
from console.configuration.tls import Tls

LIFETIME: Final = timedelta(days=397)
RENEWED_BEFORE: Final = timedelta(days=30)


def context(tls: Tls) -> ssl.SSLContext:
    """Return the server's context.  Raises EnvError where certificate and key are unusable."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    try:
        made.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as problem:
        raise EnvError(f"CONSOLE_TLS: {tls.certificate} cannot be used: {problem}.") from problem
    return made


def fingerprint(certificate: Path) -> str:
    """Return the SHA-256 fingerprint as browsers show it."""
    der = ssl.PEM_cert_to_DER_cert(_first(certificate))
    digits = sha256(der).hexdigest().upper()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def _first(certificate: Path) -> str:
    end = "-----END CERTIFICATE-----"
    return certificate.read_text(encoding="ascii").partition(end)[0] + end


def ensure(tls: Tls, hosts: Sequence[str], apps_domain: str, bind: str) -> None:
    """Make the console's own certificate where it is missing, soon over or of other names."""
    if not tls.made:
        return
    names = _names(hosts, apps_domain, bind)
    if not _holds(tls, names):
        _make(tls, names)


def _names(hosts: Sequence[str], apps_domain: str, bind: str) -> list[x509.GeneralName]:
    """Return every name under which the console and jobs' endpoints are reached, this machine's included."""
    dotted = [f"*{host}" if host.startswith(".") else host for host in hosts if host != "*"]
    texts = dict.fromkeys([*dotted, socket.gethostname(), socket.getfqdn(), f"*.{apps_domain}", bind])
    return [name for text in texts if (name := _name(text)) is not None]


def _name(text: str) -> x509.GeneralName | None:
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        pass
    else:
        return None if address.is_unspecified else x509.IPAddress(address)
    try:
        return x509.DNSName(text.encode("idna").decode() if not text.isascii() else text.lower())
    except ValueError:
        return None


def _holds(tls: Tls, names: Sequence[x509.GeneralName]) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(tls.certificate.read_bytes())
        has = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    lasts = certificate.not_valid_after_utc > datetime.now(UTC) + RENEWED_BEFORE
    return lasts and tls.key.is_file() and set(names) <= set(has)


def _make(tls: Tls, names: Sequence[x509.GeneralName]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Job Console")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    tls.certificate.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(tls.key, secret, 0o600)
    _write(tls.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    draft.replace(path)
