#!/bin/sh
# Resolves pyproject.toml for every supported Python and platform, with hashes, into requirements.lock, and what the
# container image needs of it into deploy/image/requirements.lock. Arguments go to uv (--upgrade).
set -eu
cd "$(dirname "$0")/.."

uv=uv
if [ -x .venv/bin/uv ]; then uv=.venv/bin/uv; fi
if ! "$uv" --version >/dev/null 2>&1; then
    echo "make lock: uv is not installed; see https://docs.astral.sh/uv/ (only needed to change the dependencies)" >&2
    exit 1
fi
compile() { # OUTPUT ARGUMENTS...
    lock=$1
    shift
    "$uv" pip compile --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links pyproject.toml -o "$lock" "$@"
}
compile requirements.lock --extra dev "$@"
compile deploy/image/requirements.lock --extra mcp --extra s3 --constraint requirements.lock --no-annotate
