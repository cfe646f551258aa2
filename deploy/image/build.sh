#!/bin/sh
# Builds the image with buildah: build.sh [IMAGE [ARCHIVE]]. With ARCHIVE it is also written as an OCI archive, to be
# imported by containerd. BASE=... names the base image; BASE=debian makes one from Debian's packages, for machines that
# reach no container registry.
set -eu
image=${1:-localhost/sennit:dev} archive=${2:-} base=${BASE:-}
cd "$(dirname "$0")/../.."

command -v buildah >/dev/null || { echo "buildah is not installed; on Debian: apt install buildah" >&2; exit 1; }
# Without namespaces of its own the build also works as root in a container or a small virtual machine.
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}" STORAGE_DRIVER="${STORAGE_DRIVER:-overlay}"

if [ "$base" = debian ]; then
    base=localhost/debian-python:bookworm
    if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        mmdebstrap --quiet --variant=essential --include=python3,python3-venv,ca-certificates,tini \
            --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' bookworm "$work/base.tar"
        printf 'FROM scratch\nADD base.tar /\n' | buildah build --quiet -f - -t "$base" "$work" >/dev/null
    fi
fi
# The certificates of this machine, for a build behind a proxy; they do not get into the image.
set -- -v /etc/ssl/certs:/etc/ssl/certs:ro
if [ -n "$base" ]; then set -- "$@" --build-arg "BASE=$base"; fi
buildah build --layers "$@" -f deploy/image/Containerfile -t "$image" .
if [ -n "$archive" ]; then
    rm -f "$archive"
    buildah push --quiet "$image" "oci-archive:$archive:$image"
fi
