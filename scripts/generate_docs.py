"""Write the pages that are made from code. The tests fail when one of them is not current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {
    "dispositions.md": ["deskcert_schema.docs"],
    "rules.md": ["deskcert.cli.main", "rules", "--markdown"],
}


def main() -> None:
    for name, arguments in PAGES.items():
        done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, check=True)
        (DOCS / name).write_bytes(done.stdout)
        print(f"docs/{name}: {len(done.stdout)} bytes")


if __name__ == "__main__":
    main()
