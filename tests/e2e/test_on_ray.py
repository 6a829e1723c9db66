"""Shards as tasks of a Ray cluster: a real one on this machine, joined by its address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_campaigns import run_deskcert

ray_cluster = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed: pip install 'deskcert[ray]'")

pytestmark = pytest.mark.web

ARGUMENTS = ("--agent", "builtin:careful", "--suite", "builtin:smoke", "--only", "order*", "--shards", "3")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    cluster = ray_cluster.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        yield cluster.address
    finally:
        cluster.shutdown()


def test_three_shards_on_a_cluster_are_one_certification(address: str, tmp_path: Path) -> None:
    done = run_deskcert("ci", *ARGUMENTS, "--ray", address, "--out", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["certified"], len(verdict["runs"])) == (True, 3)
    assert (tmp_path / "out" / "suite.intoto.jsonl").exists()
    starts = [json.loads(p.open().readline()) for p in (tmp_path / "out" / "runs").glob("*/ledger.jsonl")]
    assert sorted(start["shard"] for start in starts) == ["1/3", "2/3", "3/3"]
    again = run_deskcert("score", *(f"out/shards/{n}" for n in (3, 1, 2)), "--json", cwd=tmp_path)
    assert again.stdout == done.stdout


def test_an_address_without_a_cluster_is_inconclusive_and_a_sentence(tmp_path: Path) -> None:
    done = run_deskcert("ci", *ARGUMENTS, "--ray", "127.0.0.1:1", "--out", "out", cwd=tmp_path)
    assert done.returncode == 3
    assert "there is no Ray cluster at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
