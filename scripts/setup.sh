#!/bin/sh
# Makes .venv with everything pinned in requirements/dev.txt, and finds a browser. Does nothing twice.
# Each missing thing is one sentence with the command that gets it, and exit 2.
set -u
cd "$(dirname "$0")/.." || exit 2
stamp=.venv/.deskcert-setup

python=$(scripts/find-python.sh) || exit 2
want="$("$python" -c 'import sys; print(sys.version)' | tr '\n' ' ') $(cat pyproject.toml requirements/dev.txt | cksum) $(pwd)"

if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ] || ! .venv/bin/python -c 'import deskcert' 2>/dev/null; then
    echo "setup: building .venv with $python (about half a minute, once)"
    rm -rf .venv
    "$python" -m venv .venv || { echo "setup: could not make .venv with $python; set PYTHON to another CPython 3.12 or newer" >&2; exit 2; }
    log=$(mktemp)
    if ! .venv/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/dev.txt >"$log" 2>&1 ||
        ! .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-build-isolation --no-deps -e . >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "setup: the packages in requirements/dev.txt could not be installed (see above); check the network or the package index, then run: make setup" >&2
        exit 2
    fi
    rm -f "$log"
    printf '%s\n' "$want" >"$stamp"
fi

if ! browser=$(.venv/bin/python -m deskcert.adapters.web.find_browser 2>/dev/null); then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: no Chromium found; installing Debian's chromium-headless-shell"
        log=$(mktemp)
        if ! { apt-get -qq -o DPkg::Lock::Timeout=300 update &&
            DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends chromium-headless-shell fonts-dejavu-core; } >"$log" 2>&1; then
            tail -n 5 "$log" >&2
            echo "setup: Chromium could not be installed; get it with: apt-get install chromium-headless-shell" >&2
            exit 2
        fi
        rm -f "$log"
        browser=$(.venv/bin/python -m deskcert.adapters.web.find_browser) || exit 2
    else
        .venv/bin/python -m deskcert.adapters.web.find_browser
        exit 2
    fi
fi
echo "setup: ready ($(.venv/bin/python --version), $browser)"
