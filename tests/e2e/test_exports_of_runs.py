"""What the second line saw, as an HTTP archive: by the published schema, and by a reader that none of us wrote."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import Certify, of_kind, run_deskcert

pytestmark = pytest.mark.web
TWIN = ("--agent", "builtin:careful", "--suite", "builtin:core", "--only", "orders-approve-twin")

NODE_MODULES = Path(
    os.environ.get("DESKCERT_NODE_MODULES", Path(tempfile.gettempdir()) / "deskcert-foreign/node_modules")
)


def schema_of(name: str) -> tuple[dict[str, Any], Any]:
    """The schema of one part of an archive, and where the parts that it refers to are found."""
    from referencing import Registry, Resource

    folder = NODE_MODULES / "har-schema" / "lib"
    if not folder.is_dir():
        sentence = "har-schema is missing; .ci/run installs it"
        pytest.fail(sentence) if os.environ.get("CI") == "true" else pytest.skip(sentence)
    parts = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    registry = Registry().with_resources((part["$id"], Resource.from_contents(part)) for part in parts.values())
    return parts[name], registry


@pytest.mark.parametrize("openings", [(), ("--with-openings",)])
def test_an_archive_of_the_second_line_is_read_by_others(certify: Certify, openings: tuple[str, ...]) -> None:
    import haralyzer
    from jsonschema import Draft6Validator

    campaign = certify(*TWIN, "--proxy", "required")
    (run,) = campaign.runs
    out = campaign.out / f"archive{len(openings)}.har"
    done = run_deskcert("ledger", "export", str(run), "--to", "har", "--out", str(out), *openings, cwd=campaign.cwd)
    assert done.returncode == 0, done.stderr
    told = json.loads(out.read_text())
    schema, registry = schema_of("har.json")
    assert [e.message for e in Draft6Validator(schema, registry=registry).iter_errors(told)] == []

    (page,) = haralyzer.HarParser(told).pages
    seen = of_kind(run, "net.allowed") + of_kind(run, "net.blocked")
    assert len(page.entries) == len(seen) > 3
    (write,) = (e for e in page.entries if e.request.method == "POST")
    (effect,) = campaign.effects_of(run)
    assert write.request.url.endswith(f"/api/orders/{effect['id']}/approve" if openings else "/api/orders/:id/approve")
    assert write.response.status == 200
