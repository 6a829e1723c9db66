from __future__ import annotations

import re
from typing import Final

from deskcert.scoring.read import Record, kind_of, ref_of, seq_of, shortened, text
from deskcert.scoring.rule import About, Rule
from deskcert_schema.vocabulary import Code, Severity

__all__ = ["RefWithoutSnapshot"]

_BARE: Final = re.compile(r"@?[A-Za-z]{0,3}[0-9]+")
"""A number of an element and nothing that says of which look."""


class RefWithoutSnapshot(Rule):
    about = About(
        id="DC206",
        name="named an element without its snapshot",
        summary="A ref was sent without the snapshot that it belongs to.",
        severity=Severity.HIGH,
        why="Element 7 of one look and element 7 of the next are two things. Tools that take the bare number press"
        " whatever bears it now; here it is refused.",
        fix="Send refs exactly as the snapshot gave them, `@<snapshot>:e<number>`, and build none yourself.",
        written_for="bare_ref",
    )

    def feed(self, record: Record) -> None:
        if kind_of(record) != "action.refused" or text(record, "code") != Code.INVALID_ARGS.value:
            return
        ref = ref_of(record)
        if _BARE.fullmatch(ref):
            words = f"{text(record, 'command')} named an element as “{shortened(ref)}”, of no snapshot in particular."
            self.found("ref", words, seq_of(record))
