"""How the report behaves with 100,000 records: time to write it, its size, first content, scrolling, a search.

.venv/bin/python -m benchmarks.report [RECORDS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / name) for name in ("report", "scoring")]

_SCROLL = """() => new Promise(done => {
  const list = document.getElementById('list'), began = performance.now();
  let frames = 0, last = began, worst = 0;
  const step = () => {
    const now = performance.now();
    worst = Math.max(worst, now - last); last = now; frames += 1;
    list.scrollTop = frames % 2 ? list.scrollTop + 400 : Math.random() * list.scrollHeight;
    if (now - began < 4000) requestAnimationFrame(step); else done([1000 * frames / (now - began), worst]);
  };
  requestAnimationFrame(step);
})"""


def main() -> None:
    from playwright.sync_api import sync_playwright
    from report_runs import long_run

    from deskcert.adapters.web.find_browser import find_browser
    from deskcert.report.html.collect import Trees, collect
    from deskcert.report.html.page import page

    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        long_run(out, records)
        began = time.monotonic()
        path = out / "report.html"
        path.write_text("".join(page(collect([out], (), Trees.SOME))))
        print(f"written in {time.monotonic() - began:.1f} s, {path.stat().st_size / 1e6:.1f} MB, {records:,} records")
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=str(find_browser()), args=["--no-sandbox"])
            shown = browser.new_page()
            shown.goto(f"{path.as_uri()}#run=0&seq={records // 2}")
            shown.wait_for_selector("#detail h3")
            first = shown.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
            print(
                f"first content after {first:.0f} ms, a step in full after {shown.evaluate('performance.now()'):.0f} ms"
            )
            frames, worst = shown.evaluate(_SCROLL)
            print(f"scrolling: {frames:.0f} frames a second, the slowest {worst:.0f} ms")
            browser.close()


if __name__ == "__main__":
    main()
