"""The page itself. Verdict, matrix and findings are plain HTML: they are there at once, without script, and print.

A content security policy in the page forbids every connection; script and style are allowed by their own hashes.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any, Final

from deskcert.report.html.collect import Campaign, Collected
from deskcert.report.html.pack import inert_json
from deskcert.report.visible import visible

__all__ = ["page"]

_SCRIPTS: Final = ("base.js", "saw.js", "detail.js", "list.js", "main.js")
_LONGEST: Final = 600
_TONE: Final = {0: "good", 1: "bad", 2: "warn", 3: "warn", 4: "bad"}
_MARK: Final = {"passed": "✓", "refused_correctly": "✓", "failed": "✗", "unsafe": "!!", "not_run": "–"}


def page(made: Collected) -> Iterator[str]:
    """In pieces, for a file."""
    style = _asset("report.css")
    script = "".join(_asset(name) for name in _SCRIPTS)
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:"
    title = " · ".join(dict.fromkeys(c.overview.verdict for c in made.campaigns))
    agents = ", ".join(dict.fromkeys(c.agent for c in made.campaigns))
    yield "<!DOCTYPE html>\n" + '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
    yield f"<title>{_text(title)}: {_text(agents)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    yield '<a class="skip" href="#main">Skip to the report</a>\n'
    yield (
        '<header class="bar"><a class="brand" href="#overview">deskcert</a>'
        '<nav aria-label="Report"><a href="#overview">Overview</a><a href="#findings">Findings</a>'
        '<a href="#matrix">Runs</a></nav>'
        '<span class="grow"></span><button type="button" id="help-button" aria-haspopup="dialog">Keys</button>'
        '<button type="button" id="theme">Dark</button></header>\n'
    )
    yield f'<main id="main" tabindex="-1">\n<h1 class="sr">deskcert report: {_text(agents)}</h1>\n'
    yield '<section id="overview" aria-label="Verdict">\n'
    for campaign in made.campaigns:
        yield from _verdict(campaign)
    yield "</section>\n"
    yield from _matrix(made)
    yield from _findings(made)
    yield '<section id="run" hidden aria-labelledby="run-title"></section>\n</main>\n'
    yield _foot(made)
    yield _HELP
    yield f'<script type="application/json" id="data">{inert_json(_data(made))}</script>\n'
    yield from made.pieces.as_html()
    yield f"<script>{script}</script>\n</body>\n</html>\n"


_HELP: Final = """<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">Keys</h2><dl>
<dt>j k or arrows</dt><dd>next, previous step</dd><dt>Page Up, Page Down, Home, End</dt><dd>further</dd>
<dt>n p</dt><dd>next, previous step that proves a finding</dd><dt>d</dt><dd>next denial or refusal</dd>
<dt>/</dt><dd>search</dd><dt>] [</dt><dd>next, previous run</dd><dt>o or Escape</dt><dd>overview</dd>
<dt>t</dt><dd>dark or light</dd><dt>?</dt><dd>this list</dd></dl>
<form method="dialog"><button>Close</button></form></dialog>
"""


def _asset(name: str) -> str:
    return (files("deskcert.report.html") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(words: str) -> str:
    """Foreign text as HTML text: harmless, and never endless."""
    shown = words if len(words) <= _LONGEST else f"{words[:_LONGEST]}… ({len(words):,} characters)"
    return escape(visible(shown))


def _verdict(campaign: Campaign) -> Iterator[str]:
    told = campaign.overview
    tone = _TONE[int(told.exit_code)]
    yield f'<div class="verdict {tone}">'
    yield f'<p class="word">{_text(told.verdict)}</p>'
    yield f'<p class="subject">{_text(told.subject)}</p>'
    if told.reasons:
        yield '<ul class="reasons">' + "".join(f"<li>{_text(r)}</li>" for r in told.reasons) + "</ul>"
    yield '<ul class="numbers">' + "".join(f"<li>{_text(n)}</li>" for n in told.numbers) + "</ul>"
    yield f'<p class="environment">{_text(told.environment)}</p></div>\n'


def _matrix(made: Collected) -> Iterator[str]:
    """Scenario × agent. One cell holds a mark for each trial, each a link to its run."""
    agents = [c.agent for c in made.campaigns]
    rows: dict[tuple[str, str], dict[int, list[int]]] = {}
    for number, run in enumerate(made.runs):
        rows.setdefault((run["area"], run["scenario"]), {}).setdefault(run["campaign"], []).append(number)
    yield '<section id="matrix" aria-labelledby="matrix-title"><h2 id="matrix-title">Runs</h2>\n'
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Table of runs"><table class="matrix">'
    yield '<thead><tr><th scope="col">Area</th><th scope="col">Scenario</th>'
    yield (
        "".join(f'<th scope="col">{_text(a)}</th>' for a in agents) + '<th scope="col">Attribution</th></tr></thead>\n'
    )
    yield "<tbody>"
    for (area, scenario), cells in sorted(rows.items()):
        yield f'<tr><td class="quiet">{_text(area)}</td><th scope="row">{_text(scenario)}</th>'
        for campaign in range(len(agents)):
            yield "<td>" + " ".join(_cell(made.runs[n], n) for n in cells.get(campaign, ())) + "</td>"
        blamed = sorted({made.runs[n].get("attribution", "") for ns in cells.values() for n in ns} - {""})
        yield f'<td class="quiet">{_text(", ".join(b.replace("_", " ") for b in blamed))}</td></tr>\n'
    yield "</tbody></table></div></section>\n"


def _cell(run: dict[str, Any], number: int) -> str:
    outcome = run["outcome"]
    shown = f"{_MARK.get(outcome, '?')} {outcome.replace('_', ' ')}"
    if not run["count"]:
        return f'<span class="chip {outcome}">{shown}</span>'
    return f'<a class="chip {outcome}" href="#run={number}">{shown}</a>'


def _findings(made: Collected) -> Iterator[str]:
    yield '<section id="findings" aria-labelledby="findings-title">'
    yield f'<h2 id="findings-title">Findings <span class="count">{len(made.findings)}</span></h2>\n'
    if not made.findings:
        yield '<p class="quiet">None. No rule found anything in these records.</p>'
    yield '<div class="findings">'
    for found in made.findings:
        run = made.runs[found["run"]]
        yield f'<article class="finding {found["severity"]}"><h3><span class="severity">{found["severity"]}</span> '
        yield f'<span class="rule">{found["rule"]}</span> {_text(found["name"])}</h3>'
        yield f"<p>{_text(found['text'])}</p>"
        yield '<p class="proof">' + _proof(found) + f' <span class="quiet">{_text(run["run"])}</span></p>'
        yield f"<details><summary>Why it matters, how to fix it</summary><p>{_text(found['why'])}</p>"
        yield f"<p>{_text(found['fix'])}</p></details></article>\n"
    yield "</div></section>\n"


def _proof(found: dict[str, Any]) -> str:
    if not found["seqs"]:
        return f'<a href="#run={found["run"]}">the ledger as a whole</a>'
    links = (f'<a href="#run={found["run"]}&amp;seq={seq}">{seq}</a>' for seq in found["seqs"][:40])
    more = f" and {len(found['seqs']) - 40} more" if len(found["seqs"]) > 40 else ""
    return ("record " if len(found["seqs"]) == 1 else "records ") + ", ".join(links) + more


def _foot(made: Collected) -> str:
    left = f" Of {made.trees_left_out:,} snapshots the tree was left out to keep this file small." * bool(
        made.trees_left_out
    )
    left += f" {made.pictures_left_out:,} pictures were left out for the same reason." * bool(made.pictures_left_out)
    counted = f"{len(made.runs):,} run{'s' * (len(made.runs) != 1)}, {made.records:,} records."
    return (
        f"<footer><p>{counted} This page was computed from the ledgers named in it, and is a view, not evidence: the"
        " evidence is the run folders. <code>deskcert ledger verify RUN --key KEY</code> checks them,"
        f" <code>deskcert score RUNS --key KEY</code> gives this verdict again.{left}</p></footer>\n"
    )


def _data(made: Collected) -> dict[str, Any]:
    return {
        "runs": made.runs,
        "findings": [{k: f[k] for k in ("rule", "name", "severity", "text", "run", "seqs")} for f in made.findings],
        "agents": [c.agent for c in made.campaigns],
    }
