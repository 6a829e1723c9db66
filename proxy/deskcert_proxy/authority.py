"""The run's own certificate authority: made fresh in the run's folder, trusted by one browser by its key's hash, never
installed anywhere."""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import Path

__all__ = ["make_authority", "spki_hash"]

_KEY_BITS = 2048
_NAME = "mitmproxy"


def make_authority(confdir: Path) -> str:
    """Make it where mitmproxy looks for it, unless it is there; returns the hash that Chromium is given."""
    from mitmproxy.certs import CertStore

    confdir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (confdir / f"{_NAME}-ca.pem").exists():
        CertStore.create_store(confdir, _NAME, _KEY_BITS, organization="deskcert", cn="deskcert run")
    return spki_hash(confdir)


def spki_hash(confdir: Path) -> str:
    """Base64 of SHA-256 of the public key, as `--ignore-certificate-errors-spki-list` takes it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    certificate = x509.load_pem_x509_certificate((confdir / f"{_NAME}-ca-cert.pem").read_bytes())
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(sha256(key).digest()).decode("ascii")
