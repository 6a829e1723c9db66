"""An indexed Job for Kubernetes: one shard a pod, which writes into a folder on a volume that all pods share.

`parallelism` and `completions` are the number of shards, and a pod's index is its shard's. A pod that failed is not
tried again (`backoffLimit: 0`): a shard that was run twice would be inconclusive, and rightly.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from deskcert_schema.errors import UsageError

__all__ = ["job", "manifest"]

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?")
_INDEX: Final = "JOB_COMPLETION_INDEX"
_OUT: Final = "/deskcert-out"
_HEAD: Final = """\
# deskcert in {count} shards, one a pod: kubectl create -f FILE. `create`, not `apply`: each attempt has its own name.
# Before: an image with deskcert, your project and its agent at /work; a PersistentVolumeClaim `deskcert-out` that all
# pods may write to; a Secret `deskcert-key` with the project's key under `key`.
# After: deskcert merge {out}/<job>/shard-* --out merged
"""


def job(count: int, arguments: Sequence[str], *, image: str, name: str = "deskcert") -> Mapping[str, Any]:
    """`arguments`: of `deskcert ci`. Raises `UsageError`."""
    if count < 1:
        raise UsageError("--emit k8s takes --shard 1/N, N being the number of pods")
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} cannot name a Job; use small letters, digits and '-'")
    # Kubernetes reads $(NAME) in a command as a variable of its own, and $$ as a $ (its expansion.go).
    words = shlex.join(arguments).replace("$", "$$")
    # Of a shell only what it is needed for: the index counts from 0, a shard from 1.
    script = (
        f'exec deskcert ci --shard "$(({_INDEX} + 1))/{count}" --attempt "$ATTEMPT"'
        f' --out "{_OUT}/$ATTEMPT/shard-$(({_INDEX} + 1))" {words}'
    ).rstrip()
    container = {
        "name": "deskcert",
        "image": image,
        "workingDir": "/work",
        "command": ["/bin/sh", "-c", script],
        "env": [
            {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['job-name']"}}},
            {"name": "DESKCERT_KEY_FILE", "value": "/deskcert-key/key"},
        ],
        "resources": {
            "requests": {"cpu": "1", "memory": "1Gi"},
            "limits": {"memory": "2Gi"},
        },
        "volumeMounts": [
            {"name": "out", "mountPath": _OUT},
            {"name": "key", "mountPath": "/deskcert-key", "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - Chromium's shared memory
        ],
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [
            {"name": "out", "persistentVolumeClaim": {"claimName": "deskcert-out"}},
            {"name": "key", "secret": {"secretName": "deskcert-key", "defaultMode": 0o400}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}},
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"{name}-", "labels": {"app.kubernetes.io/name": "deskcert"}},
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": 0,
            "template": {"metadata": {"labels": {"app.kubernetes.io/name": "deskcert"}}, "spec": pod},
        },
    }


def manifest(made: Mapping[str, Any]) -> str:
    head = _HEAD.format(count=made["spec"]["completions"], out=_OUT)
    return head + yaml.safe_dump(made, sort_keys=False, width=110)
