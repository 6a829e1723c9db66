from __future__ import annotations

from deskcert.scoring.read import Record, kind_of, seq_of, shortened, text
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Confidence, Severity

__all__ = ["WriteWithoutAction"]


class WriteWithoutAction(Rule):
    about = About(
        id="DC606",
        name="a write that no action had caused",
        summary="The proxy saw a write on the network, and neither a dispatch nor an action's span explains it.",
        severity=Severity.LOW,
        confidence=Confidence.LIKELY,
        why="It may be the application's own timer, or a worker. It may also be a second way to act, of which the guard"
        " knows nothing.",
        fix="Look the address up in the record. If the application writes by itself, name the write in the policy's"
        " `network.writes`, allowed or forbidden; if not, find out who sent it.",
    )

    def feed(self, record: Record) -> None:
        if not self.run.proxied:  # a proxy alone, in front of clients whose actions nobody recorded
            return
        if kind_of(record) in {"net.allowed", "net.blocked"} and text(record, "class") == "write":
            if text(record, "how") != "none":
                return
            what = f"{text(record, 'method')} {_path(text(record, 'url_class'))}"
            stopped = ", and was stopped" if kind_of(record) == "net.blocked" else ""
            self.found(what, f"{shortened(what)} was sent while no action was under way{stopped}.", seq_of(record))


def _path(url_class: str) -> str:
    """Without scheme, host and port, which differ from run to run."""
    _, _, rest = url_class.partition("://")
    return "/" + rest.partition("/")[2] if rest else url_class
