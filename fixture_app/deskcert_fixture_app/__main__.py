"""`python -m deskcert_fixture_app --port 0 --db FILE --effects FILE [--exit-with-stdin]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deskcert_fixture_app", description="Larkfield, a back office")
    parser.add_argument("--port", type=int, default=0, help="port of the application; 0 takes a free one")
    parser.add_argument("--db", type=Path, required=True, help="SQLite file; made when it is not there")
    parser.add_argument("--effects", type=Path, required=True, help="JSON lines, one an effect; emptied at each start")
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input closes")
    parser.add_argument("--tls-cert", type=Path, help="PEM; with --tls-key the application is served over HTTPS")
    parser.add_argument("--tls-key", type=Path, help="PEM; the control port stays plain HTTP")
    given = parser.parse_args()
    if (given.tls_cert is None) != (given.tls_key is None):
        parser.error("--tls-cert and --tls-key belong together")
    tls = None if given.tls_cert is None else (given.tls_cert, given.tls_key)
    try:
        from deskcert_fixture_app.server import serve
    except ImportError as error:
        sys.stderr.write(f"{error.name} is missing: install deskcert[fixture]\n")
        return 2
    try:
        serve(port=given.port, db=given.db, effects=given.effects, exit_with_stdin=given.exit_with_stdin, tls=tls)
    except OSError as error:
        sys.stderr.write(f"cannot start: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
