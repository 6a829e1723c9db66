"""Two kinds of key: the project's, which lasts, and the run's, which dies with the run.

The project key introduces each run key in a signed note that stands in `run.start` (and in `recovery`); the run key
signs the checkpoints and is dropped when the run is sealed, so that nobody can go back and sign another history.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from deskcert_ledger.key_file import PRIVATE, KeyFile, given_passphrase, passphrase, plain_text, protected_text
from deskcert_ledger.note import ALG_ED25519, Note, Signer, Verifier, parse_note, parse_vkey
from deskcert_schema.errors import LedgerFormatError, UsageError

__all__ = [
    "ProjectKey",
    "RunKey",
    "default_key_path",
    "introduction_text",
    "load_pins",
    "local_pin",
    "project_of",
    "protect",
    "public_key",
]

KEY_FILE_VARIABLE = "DESKCERT_KEY_FILE"


def introduction_text(origin: str, vkey: str) -> str:
    """What the project key signs to introduce a run key."""
    return f"deskcert run key\n{origin}\n{vkey}\n"


def witness_text(origin: str, vkey: str) -> str:
    """What the project key signs to introduce the witness of a run."""
    return f"deskcert witness key\n{origin}\n{vkey}\n"


def project_of(folder: Path) -> str:
    """A key-name-safe project name from the folder that holds `.deskcert`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-") or "project"


def default_key_path(folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """`DESKCERT_KEY_FILE`, or `.deskcert/key` in `folder`."""
    named = environ.get(KEY_FILE_VARIABLE)
    return Path(named) if named else folder / ".deskcert" / "key"


class ProjectKey:
    """The long-term key that introduces run keys. Make one with `load_or_create` or `load`."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    @property
    def verifier(self) -> Verifier:
        return self._signer.verifier

    @property
    def vkey(self) -> str:
        """The public half as C2SP text: what others pin."""
        return str(self._signer.verifier)

    def sign_note(self, text: str) -> str:
        return self._signer.sign_note(text)

    def sign_bytes(self, message: bytes) -> bytes:
        """For certificates; what is signed names its own format at its beginning."""
        return self._signer.sign_bytes(message)

    def introduce(self, origin: str, run_vkey: str) -> str:
        """The signed note that stands as `key_intro` beside the run's vkey."""
        return self.sign_note(introduction_text(origin, run_vkey))

    def introduce_witness(self, origin: str, vkey: str) -> str:
        """The signed note that stands as `witness_intro` beside the witness's key."""
        return self.sign_note(witness_text(origin, vkey))

    @classmethod
    def load(cls, path: Path, *, ask: Callable[[], str] = passphrase) -> ProjectKey:
        """Read an existing key. `ask` gives the passphrase of one that is protected.

        Raises `UsageError` with the command that puts it right.
        """
        held = _read(path)
        signer = Signer(held.verifier.name, held.seed(ask))
        if signer.verifier != held.verifier:
            raise UsageError(f"{path} is not a project key: it does not fit its own id. Restore it, or move it away.")
        return cls(signer)

    @classmethod
    def load_or_create(
        cls, path: Path, *, name: str | None = None, rng: Callable[[int], bytes] = secrets.token_bytes
    ) -> ProjectKey:
        """The key at `path`; made once, mode 0600 in a folder of mode 0700, when there is none; under a passphrase if
        the environment gives one.

        Two processes that start together get the same key: the file appears complete or not at all.
        """
        if path.exists():
            return cls.load(path)
        seed, public_name = rng(32), name or f"deskcert/{project_of(path.absolute().parent.parent)}"
        secret, verifier = given_passphrase(), Signer(public_name, seed).verifier
        text = plain_text(verifier, seed) if secret is None else protected_text(verifier, seed, secret, rng)
        _put(path, text, replace=False)
        return cls.load(path)


def protect(path: Path, secret: str | None, *, ask: Callable[[], str] = passphrase) -> None:
    """Put the key at `path` under the passphrase `secret`, or under none. Raises `UsageError`."""
    held = _read(path)
    seed = held.seed(ask)
    rng = secrets.token_bytes
    text = plain_text(held.verifier, seed) if secret is None else protected_text(held.verifier, seed, secret, rng)
    _put(path, text, replace=True)


def public_key(path: Path) -> Verifier:
    """The public half of the key at `path`, for which no passphrase is needed. Raises `UsageError`."""
    return _read(path).verifier


def _read(path: Path) -> KeyFile:
    try:
        with path.open("rb") as file:
            mode, raw = os.fstat(file.fileno()).st_mode, file.read(4096)
    except FileNotFoundError as error:
        raise UsageError(
            f"No project key at {path}. `deskcert ci` makes one there; or name another with {KEY_FILE_VARIABLE}."
        ) from error
    except OSError as error:
        raise UsageError(f"The project key {path} cannot be read: {error.strerror}.") from error
    if mode & 0o077:
        raise UsageError(f"The project key {path} can be read by others. Run: chmod 600 {path}")
    try:
        return KeyFile(raw.decode("ascii"))
    except (LedgerFormatError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a project key: {error}. Restore it, or move it away.") from error


def _put(path: Path, text: str, *, replace: bool) -> None:
    """Whole or not at all, durably; without `replace` a file that is there already stays."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, text.encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        if replace:
            temporary.replace(path)
        else:
            try:
                os.link(temporary, path)
            except FileExistsError:
                pass
            finally:
                temporary.unlink()
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UsageError(f"A project key cannot be written at {path}: {error.strerror}.") from error


_TRUE = (os.urandom, secrets.token_bytes)


class RunKey:
    """The key of one epoch of one run. In memory only, and there only inside the library that signs, which wipes it."""

    def __init__(self, origin: str, rng: Callable[[int], bytes]) -> None:
        """`rng` makes the key where it has to come out the same again; a true one never sees it: what Python held would
        stay in its memory until something else came to lie there."""
        self._signer: Signer | None = Signer(origin, None if rng in _TRUE else rng(32))
        self.verifier = self._signer.verifier

    @property
    def vkey(self) -> str:
        return str(self.verifier)

    def sign_note(self, text: str) -> str:
        if self._signer is None:
            raise LedgerFormatError("this run is sealed: its key is destroyed")
        return self._signer.sign_note(text)

    def sign_bytes(self, message: bytes) -> bytes:
        if self._signer is None:
            raise LedgerFormatError("this run is sealed: its key is destroyed")
        return self._signer.sign_bytes(message)

    def destroy(self) -> None:
        """Drop the private key. The public half stays, for showing."""
        self._signer = None


def introduced_by(
    note_text: str, origin: str, vkey: str, pin: Verifier, said: Callable[[str, str], str] = introduction_text
) -> bool:
    """Does `note_text` introduce `vkey` for `origin`, with a signature of `pin` that holds? Never raises.

    `said`: what introductions of this kind of key say.
    """
    try:
        note: Note = parse_note(note_text)
    except LedgerFormatError:
        return False
    return note.text == said(origin, vkey) and note.holds(pin)


def load_pins(values: tuple[str, ...] | list[str]) -> tuple[Verifier, ...]:
    """Parse `--key` values: each is a vkey or a file of them. Raises `UsageError`."""
    pins: list[Verifier] = []
    for value in values:
        text = value
        if "+" not in value or Path(value).is_file():
            try:
                text = Path(value).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"--key {value}: not a verifier key, and not a file that holds one.") from error
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        if not lines or any(line.startswith(PRIVATE) for line in lines):
            raise UsageError(f"--key {value}: give the public key, as `deskcert key show` prints it.")
        try:
            pins.extend(parse_vkey(line.strip()) for line in lines)
        except LedgerFormatError as error:
            raise UsageError(f"--key {value}: {error}.") from error
    if any(pin.algorithm != ALG_ED25519 for pin in pins):
        raise UsageError("--key: a witness's key cosigns checkpoints; give the project's key.")
    return tuple(pins)


def local_pin(folder: Path, environ: Mapping[str, str] = os.environ) -> Verifier | None:
    """The local project key's public half, or None where there is no such key. Never makes one."""
    path = default_key_path(folder, environ)
    return public_key(path) if path.exists() else None
