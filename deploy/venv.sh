#!/bin/sh
# Makes .venv hold what requirements.lock pins and nothing else, with Sennit itself installed editable.
# Does nothing when it already does: the two stamps hold the digests of what it was made from and are written last, so
# an interrupted run is simply done again. A change of pyproject.toml alone installs Sennit again and nothing else.
# PYTHON=... chooses the interpreter (3.11 to 3.14).
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "make venv: $*" >&2
    exit 1
}

lacks_venv() {
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    fail "$1 cannot create virtual environments; on Debian or Ubuntu: apt install python$version-venv (or python3-venv)"
}

supported() { # a version manager may put commands on PATH that exist and fail: only running one tells
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

complete() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

choose_python() {
    if [ -n "${PYTHON:-}" ]; then
        supported "$PYTHON" || fail "PYTHON=$PYTHON does not run or is not Python 3.11 to 3.14"
        complete "$PYTHON" || lacks_venv "$PYTHON"
        python=$PYTHON
        return
    fi
    incomplete=
    for candidate in python3.14 python3.13 python3.12 python3.11 python3; do
        supported "$candidate" || continue
        if complete "$candidate"; then
            python=$candidate
            return
        fi
        if [ -z "$incomplete" ]; then incomplete=$candidate; fi
    done
    if [ -n "$incomplete" ]; then lacks_venv "$incomplete"; fi
    fail "Sennit needs Python 3.11 to 3.14 and found none on PATH; install one or name it: make PYTHON=/path/to/python"
}

digest() { # of a file and this directory: a moved checkout needs a new .venv
    .venv/bin/python -c 'import hashlib, os, sys
print(hashlib.sha256(open(sys.argv[1], "rb").read() + os.getcwd().encode()).hexdigest())' "$1"
}

current() { # FILE STAMP; a .venv whose interpreter is gone is not current either
    [ -f ".venv/$2" ] && [ "$(digest "$1" 2>/dev/null)" = "$(cat ".venv/$2")" ]
}

install() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

if ! current requirements.lock lock-stamp; then
    choose_python
    echo "making .venv with $("$python" -c 'import platform, sys; print(platform.python_version(), sys.executable)') ..." >&2
    "$python" -m venv --clear .venv
    install --require-hashes -r requirements.lock
    digest requirements.lock >.venv/lock-stamp
fi
if ! current pyproject.toml sennit-stamp; then
    install --no-deps --no-build-isolation -e .
    digest pyproject.toml >.venv/sennit-stamp
fi
