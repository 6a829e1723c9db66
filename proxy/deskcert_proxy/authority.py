"""The run's own certificate authority: made fresh for the run, trusted by one browser by its key's hash, never
installed anywhere.

Its key is on the P-256 curve: it is made in a moment, so a campaign can make those of all its runs before its browser
starts, which has to know their hashes then.
"""

from __future__ import annotations

import base64
import datetime
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["Authority", "make_authority", "spki_of"]

_NAME: Final = "mitmproxy"
"""What mitmproxy's files of it begin with."""
_BEFORE: Final = datetime.timedelta(days=2)
"""Clocks differ."""
_VALID: Final = datetime.timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Authority:
    key: bytes
    """PEM. Whoever has it can read what its browser sends; nobody else trusts it."""
    certificate: bytes
    """PEM."""
    spki: str
    """Base64 of SHA-256 of the public key, as `--ignore-certificate-errors-spki-list` takes it."""

    @classmethod
    def new(cls) -> Self:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(key)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return cls(pem, certificate.public_bytes(Encoding.PEM), spki_of(certificate))

    def write(self, confdir: Path) -> None:
        """Where mitmproxy looks for it; the key's file is its owner's alone."""
        confdir.mkdir(parents=True, exist_ok=True, mode=0o700)
        secret = confdir / f"{_NAME}-ca.pem"
        secret.touch(mode=0o600)
        secret.write_bytes(self.key + self.certificate)
        (confdir / f"{_NAME}-ca-cert.pem").write_bytes(self.certificate)


def make_authority(confdir: Path) -> str:
    """Make one unless there is one; returns the hash that Chromium is given."""
    from cryptography import x509

    certificate = confdir / f"{_NAME}-ca-cert.pem"
    if not (confdir / f"{_NAME}-ca.pem").exists():
        Authority.new().write(confdir)
    return spki_of(x509.load_pem_x509_certificate(certificate.read_bytes()))


def spki_of(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(sha256(key).digest()).decode("ascii")


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "deskcert run"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "deskcert"),
        ]
    )
    now = datetime.datetime.now(datetime.UTC)
    usage = dict.fromkeys(
        ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "encipher_only", "decipher_only"),
        False,
    )  # fmt: skip
    return (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .subject_name(name)
        .issuer_name(name)
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _VALID)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
