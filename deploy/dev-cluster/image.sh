#!/bin/sh
# Builds the image of the workers as it is in this tree, and gives it to the node.
set -eu
. "$(dirname "$0")/common.sh"
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=overlay
import="ctr -a $run/node/containerd.sock -n k8s.io images import"

pause() {
    cp "$(program pause)" "$run/pause"
    printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' | buildah build -q -f - -t localhost/pause:dev "$run"
    buildah push -q localhost/pause:dev "oci-archive:$run/pause.tar:localhost/pause:dev"
    $import "$run/pause.tar"
    rm "$run/pause" "$run/pause.tar"
}

{
    pause
    BASE=${BASE:-debian} sh "$deploy/image/build.sh" localhost/sennit:dev "$run/sennit.tar"
    $import "$run/sennit.tar"
    rm "$run/sennit.tar"
} >"$run/log/image" 2>&1 || {
    tail -n 20 "$run/log/image" >&2
    fail "the image could not be built; the end of $run/log/image is above"
}
