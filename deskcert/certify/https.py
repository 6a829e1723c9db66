"""HTTPS in a campaign: whose keys its browser trusts, and the certificate of an application that is served over TLS.

One warm browser serves all runs and has to know their keys when it starts, so these are made first. With a proxy the
browser trusts each run's authority, and the proxy the application's certificate; without one the browser trusts the
application's. Nothing is installed anywhere, and no key outlives its campaign's folder.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from deskcert_proxy.authority import Authority

__all__ = ["ServerCertificate", "Trust", "trusting"]

_MOST: Final = 1000
"""Keys of one campaign: their hashes are one argument of the browser, which has a limit. After that they come again."""
_NAMES: Final = ("127.0.0.1", "::1", "localhost")
_BEFORE: Final = datetime.timedelta(days=2)
_VALID: Final = datetime.timedelta(days=30)


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """Self-signed, for the loopback's names."""

    key: bytes
    """PEM."""
    certificate: bytes
    """PEM."""
    spki: str

    @classmethod
    def new(cls) -> Self:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        from deskcert_proxy.authority import spki_of

        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _self_signed(key)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return cls(pem, certificate.public_bytes(Encoding.PEM), spki_of(certificate))

    def write(self, folder: Path) -> tuple[Path, Path]:
        """(certificate, key) as files; the key's is its owner's alone."""
        certificate, key = folder / "tls-cert.pem", folder / "tls-key.pem"
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        certificate.write_bytes(self.certificate)
        return certificate, key


def _self_signed(key: Any) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "deskcert application under test")])
    names: list[x509.GeneralName] = []
    for text in _NAMES:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(text)))
        except ValueError:
            names.append(x509.DNSName(text))
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .subject_name(name)
        .issuer_name(name)
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _VALID)
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )


class Trust:
    """The keys of one campaign: for run after run, its authority where there is a proxy, and its application's
    certificate where that is served over TLS."""

    def __init__(self, runs: int, *, proxied: bool, https: bool) -> None:
        self._authorities: list[Authority] = []
        self._certificates: list[ServerCertificate] = []
        most = min(runs, _MOST)
        if https:
            self._certificates = [ServerCertificate.new() for _ in range(most)]
        if proxied:
            from deskcert_proxy.authority import Authority

            self._authorities = [Authority.new() for _ in range(most)]

    @property
    def hashes(self) -> tuple[str, ...]:
        """What the browser is to trust: behind a proxy not the application itself."""
        if self._authorities:
            return tuple(a.spki for a in self._authorities)
        return tuple(c.spki for c in self._certificates)

    def authority(self, number: int) -> Authority | None:
        return self._authorities[number % len(self._authorities)] if self._authorities else None

    def certificate(self, number: int) -> ServerCertificate | None:
        return self._certificates[number % len(self._certificates)] if self._certificates else None


def trusting(hashes: Sequence[str]) -> tuple[str, ...]:
    """Chromium's argument."""
    return (f"--ignore-certificate-errors-spki-list={','.join(hashes)}",) if hashes else ()
