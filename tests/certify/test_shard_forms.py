"""Shards in their forms: parts of a plan, the name of an attempt, a Kubernetes Job, a pipeline's file, a Ray task."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from deskcert.certify.shard import Shard, attempt_of
from deskcert_schema.errors import UsageError

SCHEMAS = Path(__file__).parents[1] / "report" / "schemas"


def deskcert(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DESKCERT_", "GITHUB_"))}
    command = [sys.executable, "-m", "deskcert.cli.main", *arguments]
    return subprocess.run(command, cwd=cwd, env=kept | more, capture_output=True, text=True, check=False)


def checked(schema: str, value: Any) -> None:
    read = json.loads((SCHEMAS / schema).read_text())
    jsonschema.validators.validator_for(read)(read).validate(value)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_shards_are_a_plan_cut_in_parts(count: int) -> None:
    plan = list(range(10))
    parts = [Shard(number, count).share(plan) for number in range(1, count + 1)]
    assert sorted(run for part in parts for run in part) == plan
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("words", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3/3", "١/3", "1/999999", ""])
def test_what_is_no_shard_is_refused_with_an_example(words: str) -> None:
    with pytest.raises(UsageError, match="for example 2/3"):
        Shard.read(words, "")


def test_more_shards_than_runs_are_refused(tmp_path: Path) -> None:
    only = ("--agent", "builtin:careful", "--suite", "builtin:smoke", "--only", "orders-rerender")
    done = deskcert("ci", *only, "--shard", "2/3", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "the plan has 1 runs only" in done.stderr
    assert not (tmp_path / "out" / "runs").exists()


def test_shards_of_one_attempt_have_one_certification_and_others_another() -> None:
    of = [Shard(n, 3, "pipeline-7").certification() for n in (1, 2, 3)]
    assert len(set(of)) == 1
    assert of[0] not in {Shard(1, 3, "pipeline-8").certification(), Shard(1, 4, "pipeline-7").certification()}
    assert Shard(1, 3).certification() != Shard(1, 3).certification()


def test_an_attempt_is_named_by_the_pipeline() -> None:
    github = {"GITHUB_RUN_ID": "12", "GITHUB_RUN_ATTEMPT": "2"}
    assert attempt_of(github) == "GITHUB_RUN_ID:12.2"
    assert attempt_of({"CI_PIPELINE_ID": "9"}) == "CI_PIPELINE_ID:9"
    assert attempt_of({"GITHUB_RUN_ID": "12"}) == attempt_of({}) == ""
    assert str(Shard.read("2/3", attempt_of(github))) == "2/3"


def test_the_job_for_kubernetes_holds_to_its_schema_and_its_words_arrive_whole(tmp_path: Path) -> None:
    agent = ["python3", "my agent.py", "it's $(ATTEMPT) `x` $Y $$", "{task}"]
    options = ["--suite", "builtin:smoke", "--trials", "2", "--only", "order*"]
    done = deskcert(
        "ci", "--emit", "k8s", "--shards", "3", "--image", "example/x:1", *options, "--", *agent, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    job = yaml.safe_load(done.stdout)
    checked("kubernetes-job-1.37.json", job)
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (
        "Indexed",
        3,
        3,
        0,
    )
    (container,) = spec["template"]["spec"]["containers"]
    shell, minus_c, script = container["command"]
    # What Kubernetes does to a command, and then the pod's shell with a program that says what it was given.
    values = {"ATTEMPT": "deskcert-abc", "DESKCERT_KEY_FILE": "/deskcert-key/key"}
    script = re.sub(r"\$\$|\$\(([^)]*)\)", lambda m: "$" if m[1] is None else values.get(m[1], m[0]), script)
    (tmp_path / "deskcert").write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n')
    (tmp_path / "deskcert").chmod(0o755)
    pod = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "JOB_COMPLETION_INDEX": "1", "ATTEMPT": "deskcert-abc"}
    said = subprocess.run([shell, minus_c, script], env=pod, capture_output=True, text=True, check=True).stdout
    shard = ["ci", "--shard", "2/3", "--attempt", "deskcert-abc", "--out", "/deskcert-out/deskcert-abc/shard-2"]
    words = said.splitlines()
    assert words[: len(shard)] == shard
    assert sorted(words[len(shard) :]) == sorted([*options, "--", *agent])
    assert words[-len(agent) - 1 :] == ["--", *agent]


def test_what_makes_no_sense_together_is_refused(tmp_path: Path) -> None:
    careful = ("--agent", "builtin:careful")
    for words in (
        ("--emit", "k8s"),
        ("--emit", "k8s", "--image", "x", "--shard", "1/2"),
        ("--shards", "3"),
        ("--attempt", "x"),
    ):
        done = deskcert("ci", *careful, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), words


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("workflow.yml", "github-workflows.json"),
        ("workflow_certify.yml", "github-workflows.json"),
        ("gitlab.yml", "gitlab-ci.json"),
    ],
)
def test_the_pipelines_hold_to_their_schemas(name: str, schema: str) -> None:
    text = (files("deskcert.ways.templates") / name).read_text("utf-8")
    told = yaml.safe_load(text)
    if True in told:  # `on` is a truth value for YAML 1.1
        told["on"] = told.pop(True)
    checked(schema, told)


def test_every_deskcert_command_in_a_pipeline_is_one_that_there_is(tmp_path: Path) -> None:
    from deskcert.cli.main import cli

    for name in ("workflow_certify.yml", "gitlab.yml"):
        text = (files("deskcert.ways.templates") / name).read_text("utf-8").replace("\\\n", " ")
        found = re.findall(r"^\s*(?:run: |- )?(deskcert .*)$", re.sub(r">-\n\s+(.*)\n\s+", r"\1 ", text), re.MULTILINE)
        assert len(found) >= 3
        for line in found:
            words = [word for word in shlex.split(line.partition("||")[0], comments=True) if not word.startswith("$")]
            command = cli.get_command(None, words[1])  # type: ignore[arg-type]
            assert command is not None
            known = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in words[2:] if word.startswith("--")} <= known, line


def test_init_writes_either_pipeline(tmp_path: Path) -> None:
    assert deskcert("init", "hub", cwd=tmp_path).returncode == 0
    assert deskcert("init", "lab", "--gitlab", cwd=tmp_path).returncode == 0
    hub, lab = tmp_path / "hub", tmp_path / "lab"
    called = yaml.safe_load((hub / ".github/workflows/deskcert.yml").read_text())["jobs"]["certify"]["uses"]
    assert (hub / called).is_file()
    assert (lab / ".gitlab-ci.yml").is_file()
    assert not (lab / ".github").exists()
    assert not (hub / ".gitlab-ci.yml").exists()


def test_without_ray_the_option_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('hidden by the test')\n")
    words = ("--agent", "builtin:careful", "--suite", "builtin:smoke", "--ray", "auto", "--out", "out")
    done = deskcert("ci", *words, cwd=tmp_path, PYTHONPATH=str(tmp_path), DESKCERT_KEY_FILE=str(tmp_path / "key"))
    assert done.returncode == 2
    assert "pip install 'deskcert[ray]'" in done.stderr
