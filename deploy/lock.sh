#!/bin/sh
# Resolves pyproject.toml for every supported Python and platform, with hashes, into requirements.lock, and what the
# container image needs of it into deploy/image/requirements.lock; what `make test-models` needs beside it into
# tests/models/requirements.lock, Docker Compose for tests, and the peers of `make bench-peers`. Arguments go to uv (--upgrade).
set -eu
cd "$(dirname "$0")/.."

uv=uv
if [ -x .venv/bin/uv ]; then uv=.venv/bin/uv; fi
if ! "$uv" --version >/dev/null 2>&1; then
    echo "make lock: uv is not installed; see https://docs.astral.sh/uv/ (only needed to change the dependencies)" >&2
    exit 1
fi
compile() { # SOURCE OUTPUT ARGUMENTS...
    source=$1 lock=$2
    shift 2
    "$uv" pip compile --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links "$source" -o "$lock" "$@"
}
compile pyproject.toml requirements.lock --extra dev "$@"
compile pyproject.toml deploy/image/requirements.lock --extra mcp --extra otel --extra pdf --extra prices --extra s3 --constraint requirements.lock --no-annotate
compile tests/models/requirements.in tests/models/requirements.lock --no-deps "$@"
compile tests/compose/standins/requirements.in tests/compose/standins/requirements.lock --no-deps "$@"
compile benchmarks/peers/requirements.in benchmarks/peers/requirements.lock --no-annotate "$@"
