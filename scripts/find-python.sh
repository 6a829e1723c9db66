#!/bin/sh
# Prints the path of a CPython >= 3.12 that can make virtual environments, under whatever name it has; else exits 2.
# A name being there is no proof: version managers leave shims that exist and then fail, so each one is run.
usable() {  # what ends well without a word is no Python either
    [ "$("$1" -c 'import sys, venv, ensurepip, ssl, sqlite3
print(sys.version_info >= (3, 12) and sys.implementation.name == "cpython")' 2>/dev/null)" = True ]
}

if [ -n "${PYTHON:-}" ]; then
    if usable "$PYTHON"; then "$PYTHON" -c 'import sys; print(sys.executable)'; exit 0; fi
    echo "PYTHON=$PYTHON is not a usable CPython 3.12 or newer (with venv, ssl and sqlite3); set PYTHON to one that is: PYTHON=/path/to/python3.12 make setup" >&2
    exit 2
fi
for candidate in python3.13 python3.12 python3 python3.14 python \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3 \
    /usr/bin/python3.1[2-9] /usr/local/bin/python3.1[2-9] /opt/homebrew/bin/python3.1[2-9]; do
    if usable "$candidate"; then "$candidate" -c 'import sys; print(sys.executable)'; exit 0; fi
done
found=$(python3 --version 2>/dev/null || echo "none")
echo "deskcert needs CPython 3.12 or newer with venv (found: $found); install it (Debian: apt-get install python3.12-venv; pyenv: pyenv install 3.12) or set PYTHON=/path/to/python3.12" >&2
exit 2
