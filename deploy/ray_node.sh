#!/bin/bash
# One node of a Ray cluster, in the foreground; SIGTERM ends it with all its processes:
#
#     RAY_ADDRESS=IP:PORT bash deploy/ray_node.sh head|worker
#
# A worker waits for the head and ends, with exit code 0, when the head is gone. The head also takes RAY_TEMP_DIR (logs
# and sockets of all nodes: a short path on a local disk), and every node OBJECT_STORE_GIB (of /dev/shm, for Ray's
# objects; weights on their way to the engines need room beside them).
set -euo pipefail

ip=${RAY_ADDRESS%:*} port=${RAY_ADDRESS##*:}
options=(--block --disable-usage-stats --num-cpus="$(nproc)")
options+=(--object-store-memory="$((${OBJECT_STORE_GIB:-16} * 1024 ** 3))")

head_listens() {
    (: < "/dev/tcp/$ip/$port") 2> /dev/null
}

case ${1:-} in
    head)
        exec ray start --head --node-ip-address="$ip" --port="$port" --temp-dir="${RAY_TEMP_DIR:-/tmp/ray}" \
            --include-dashboard=false "${options[@]}"
        ;;
    worker)
        until head_listens; do sleep 2; done
        ray start --address="$RAY_ADDRESS" "${options[@]}" &
        ray=$!
        trap 'kill "$ray" && wait "$ray" || true' EXIT
        trap 'exit 143' TERM
        misses=0
        while ((misses < 3)); do # Ray itself needs a minute to notice, and takes it for a failure
            sleep 5 &
            wait $!
            kill -0 "$ray" || exit 1
            if head_listens; then misses=0; else misses=$((misses + 1)); fi
        done
        ;;
    *)
        echo "usage: RAY_ADDRESS=IP:PORT $0 head|worker" >&2
        exit 2
        ;;
esac
