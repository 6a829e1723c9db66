"""Verifier policies: whose keys count, which witnesses have to have seen the final checkpoint, and exit code 3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deskcert_ledger import ProjectKey, verify_run
from deskcert_ledger.cosignature import PostQuantumWitness, Witness
from deskcert_ledger.policy import VerifierPolicy, parse_policy
from deskcert_schema.errors import LedgerFormatError

W = [Witness(f"w{number}.example", bytes([number + 1]) * 32) for number in range(4)]
SEEN = 1_764_500_000


def policy(key: ProjectKey, *rest: str) -> VerifierPolicy:
    lines = [f"log {key.vkey}", *(f"witness W{number} {w.verifier}" for number, w in enumerate(W)), *rest]
    return parse_policy("".join(f"{line}\n" for line in lines).encode())


def cosign(folder: Path, *witnesses: Witness) -> None:
    path = folder / "checkpoint"
    text = path.read_text().split("\n\n")[0] + "\n"
    path.write_text(path.read_text() + "".join(witness.cosign(text, SEEN) for witness in witnesses))


class TestTheFile:
    def test_comments_blanks_urls_and_groups_of_groups(self, key: ProjectKey) -> None:
        found = parse_policy(
            b"# comment\n\n \t# another\n"
            + f"\tlog {key.vkey} https://x.example/log \n".encode()
            + f"witness A {W[0].verifier}\nwitness \xff {W[1].verifier} https://b.example\n".encode("latin-1")
            + b"group G 2 A \xff\ngroup H any G\nquorum H\n"
        )
        assert found.logs == (key.verifier,)
        names = tuple(found.witnesses)
        assert found.met_by(frozenset(names))
        assert not found.met_by(frozenset(names[:1]))

    @pytest.mark.parametrize(
        ("quorum", "cosigned", "met"),
        [
            (["quorum none"], [], True),
            (["quorum W0"], [], False),
            (["quorum W0"], ["W0"], True),
            (["quorum W0"], ["W1"], False),
            (["group G all W0 W1", "quorum G"], ["W0"], False),
            (["group G all W0 W1", "quorum G"], ["W0", "W1"], True),
            (["group G 2 W0 W1 W2", "quorum G"], ["W0", "W2"], True),
            (["group X 2 W0 W1 W2", "group Y any W3", "group Z all X Y", "quorum Z"], ["W0", "W1"], False),
            (["group X 2 W0 W1 W2", "group Y any W3", "group Z all X Y", "quorum Z"], ["W0", "W1", "W3"], True),
            (["group unused any W1", "quorum W0"], ["W1"], False),
        ],
    )
    def test_when_a_quorum_is_reached(self, key: ProjectKey, quorum: list[str], cosigned: list[str], met: bool) -> None:
        assert policy(key, *quorum).met_by(frozenset(cosigned)) is met

    @pytest.mark.parametrize(
        "rest",
        [
            [],
            ["quorum none", "quorum none"],
            ["quorum nobody"],
            ["group G any W9", "quorum G"],
            ["quorum G", "group G any W0"],
            ["group G any W0 W0", "quorum G"],
            ["group G any W0", "group H any W0", "quorum G"],
            ["group G 0 W0", "quorum G"],
            ["group G 2 W0", "quorum G"],
            ["group G 01 W0", "quorum G"],
            ["group G most W0", "quorum G"],
            ["group G any", "quorum G"],
            ["group none any W0", "quorum none"],
            ["group W0 any W1", "quorum W0"],
            ["group G any none", "quorum G"],
            ["quorum"],
            ["quorum none none"],
            ["witnes W x", "quorum none"],
            ["witness W0 " + str(W[0].verifier), "quorum none"],
            ["witness V " + str(W[0].verifier), "quorum none"],
            ["log " + str(W[0].verifier), "quorum none"],
            ["log rubbish", "quorum none"],
            ["quorum none\r"],
            ["quorum\u00a0none"],
            ["quorum none\x00"],
        ],
    )
    def test_what_is_no_policy_is_refused_with_a_sentence(self, key: ProjectKey, rest: list[str]) -> None:
        with pytest.raises(LedgerFormatError):
            policy(key, *rest)

    def test_a_projects_key_is_no_witness_and_no_line_is_left_open(self, key: ProjectKey) -> None:
        with pytest.raises(LedgerFormatError, match="cosigns"):
            policy(key, f"witness P {key.vkey}", "quorum P")
        with pytest.raises(LedgerFormatError, match="does not end"):
            parse_policy(b"quorum none")
        with pytest.raises(LedgerFormatError, match="twice"):
            policy(key, f"log {key.vkey}", "quorum none")
        with pytest.raises(LedgerFormatError, match="more than"):
            parse_policy(b"\n" * 5000 + b"quorum none\n")


def test_a_reached_quorum_is_complete_and_says_who_saw_it_when(sealed: Path, key: ProjectKey) -> None:
    cosign(sealed, W[0], W[2])
    report = verify_run(sealed, policy=policy(key, "group G 2 W0 W1 W2", "quorum G"))
    assert (report.headline, report.exit_code, report.problems) == ("complete", 0, ())
    assert [witness.seconds for witness in report.witnesses] == [SEEN, None, SEEN, None]
    assert any("witness 'W0'" in text and "2025-11-30T" in text for text in report.checked)
    assert not any("no witness was asked" in text for text in report.not_checked)


def test_a_quorum_that_is_not_reached_is_unverifiable_and_named(sealed: Path, key: ProjectKey) -> None:
    cosign(sealed, W[0])
    report = verify_run(sealed, policy=policy(key, "group G 2 W0 W1 W2", "quorum G"))
    assert (report.headline, report.exit_code) == ("unverifiable", 3)
    assert "quorum 'G' is not reached: cosigned by ['W0']" in report.problems[0].text
    assert any("quorum is not reached" in text for text in report.not_checked)


def test_a_stranger_who_cosigned_is_named_and_counts_for_nothing(sealed: Path, key: ProjectKey) -> None:
    cosign(sealed, Witness("w0.example", b"\x77" * 32))  # the same name, another key
    report = verify_run(sealed, policy=policy(key, "quorum W0"))
    assert (report.headline, report.exit_code) == ("unverifiable", 3)
    assert any("a cosignature by 'w0.example'" in text for text in report.not_checked)
    report = verify_run(sealed, pins=[key.vkey])
    assert report.headline == "complete"
    assert any("a cosignature by 'w0.example': no policy names its key" in text for text in report.not_checked)


def test_a_cosignature_over_another_checkpoint_is_tampering(sealed: Path, key: ProjectKey) -> None:
    text = (sealed / "checkpoint").read_text().split("\n\n")[0] + "\n"
    line = W[0].cosign(text.replace("\n8\n", "\n7\n"), SEEN)
    (sealed / "checkpoint").write_text((sealed / "checkpoint").read_text() + line)
    report = verify_run(sealed, policy=policy(key, "quorum none"))
    assert report.headline == "tampered"
    assert "the cosignature of w0.example does not hold" in report.problems[0].text


@pytest.mark.parametrize("post_quantum", [False, True])
@pytest.mark.parametrize(("seconds", "why"), [(0, "names no time"), (1 << 62, "is still to come"), (1 << 63, "")])
def test_a_cosignature_without_a_time_of_the_past_proves_nothing(
    sealed: Path, key: ProjectKey, seconds: int, why: str, post_quantum: bool
) -> None:
    """A witness that says 0 does not vouch for the tree being the largest; past 2^63 - 1 there is no time at all."""
    try:
        witness = PostQuantumWitness("w0.example") if post_quantum else W[0]
    except LedgerFormatError:
        pytest.skip("no ML-DSA here")
    asked = parse_policy(f"log {key.vkey}\nwitness W {witness.verifier}\nquorum W\n".encode())
    text = (sealed / "checkpoint").read_text().split("\n\n")[0] + "\n"
    (sealed / "checkpoint").write_text((sealed / "checkpoint").read_text() + witness.cosign(text, seconds))
    report = verify_run(sealed, policy=asked)
    if not why:
        assert (report.headline, report.exit_code) == ("tampered", 1)
        return
    assert (report.headline, report.exit_code) == ("unverifiable", 3)
    assert any("the cosignature of witness 'W'" in text and why in text for text in report.not_checked)
    assert not any("cosignature of witness" in text for text in report.checked)


def test_one_witness_who_cosigns_twice_counts_once(sealed: Path, key: ProjectKey) -> None:
    cosign(sealed, W[0], W[0])
    report = verify_run(sealed, policy=policy(key, "group G 2 W0 W1", "quorum G"))
    assert report.exit_code != 0


def test_a_cosignature_under_another_witnesses_name_is_a_strangers(sealed: Path, key: ProjectKey) -> None:
    """The key of W1 signs as `w0.example`: the id is of name and key, so that it is neither of them."""
    cosign(sealed, Witness("w0.example", bytes([2]) * 32))
    for quorum in ("W0", "W1"):
        report = verify_run(sealed, policy=policy(key, f"quorum {quorum}"))
        assert (report.headline, report.exit_code) == ("unverifiable", 3)
        assert any("a cosignature by 'w0.example': no policy" in text for text in report.not_checked)


def test_every_byte_of_a_cosignature_counts_or_its_loss_is_named(sealed: Path, key: ProjectKey) -> None:
    path = sealed / "checkpoint"
    before = len(path.read_bytes())
    cosign(sealed, W[0])
    raw, asked = path.read_bytes(), policy(key, "quorum W0")
    words = set()
    for position in range(before, len(raw)):
        for new in {raw[position] ^ 1, b"\nA="[position % 3]} - {raw[position]}:
            path.write_bytes(raw[:position] + bytes([new]) + raw[position + 1 :])
            report = verify_run(sealed, policy=asked)
            assert report.exit_code != 0, position
            words.add(report.headline)
            if report.headline == "unverifiable":
                assert any("a cosignature by" in text for text in report.not_checked), position
    assert words == {"tampered", "unverifiable"}


def test_the_command_takes_a_policy_file(sealed: Path, key: ProjectKey, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "p.policy").write_text(f"log {key.vkey}\nwitness W {W[0].verifier}\nquorum W\n")
    (elsewhere / "bad.policy").write_text("quorum nobody\n")
    environ = {name: value for name, value in os.environ.items() if name != "DESKCERT_KEY_FILE"}

    def verify(name: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "deskcert.cli.main",
            "ledger",
            "verify",
            "--json",
            "--policy",
            name,
            str(sealed),
        ]
        return subprocess.run(command, cwd=elsewhere, env=environ, capture_output=True, text=True, check=False)

    done = verify("p.policy")
    assert (done.returncode, json.loads(done.stdout)["headline"]) == (3, "unverifiable")
    cosign(sealed, W[0])
    done = verify("p.policy")
    assert (done.returncode, json.loads(done.stdout)["witnesses"][0]["cosigned_at"]) == (0, SEEN)
    done = verify("bad.policy")
    assert done.returncode == 2
    assert "line 1" in done.stderr
    assert "C2SP tlog-policy" in done.stderr
