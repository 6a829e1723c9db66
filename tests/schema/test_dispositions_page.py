from __future__ import annotations

from pathlib import Path

from deskcert_schema.disposition import RETRY_OF
from deskcert_schema.docs import page

PAGE = Path(__file__).parents[2] / "docs" / "dispositions.md"


def test_committed_page_is_what_the_table_gives() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m deskcert_schema.docs > docs/dispositions.md"


def test_page_has_one_row_for_each_delivery() -> None:
    for delivery, retry in RETRY_OF.items():
        assert page().count(f"| `{delivery}` | `{retry}` |") == 1
