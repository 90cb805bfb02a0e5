#!/bin/bash
# A run on a SLURM allocation: the driver and Ray's head on the first node, a Ray worker on each other node.
#
#     sbatch deploy/slurm.sh train configs/digit_sum_qwen2_5_vl_3b.yaml run.dir=/shared/runs trainer.num_ranks=16
#
# Submit it in the checkout, on a file system that all nodes mount. docs/clusters.md explains what to change.
#SBATCH --job-name=vlrl
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@900
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -euo pipefail

# shellcheck source=/dev/null
source "${VENV:-.venv}/bin/activate"
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")

if [[ -n ${INTERFACE:-} ]]; then # the network between the nodes, such as ib0
    export NCCL_SOCKET_IFNAME=$INTERFACE GLOO_SOCKET_IFNAME=$INTERFACE
    read -r _ _ _ ip _ < <(ip -4 -oneline address show dev "$INTERFACE")
else
    read -r ip _ < <(hostname -I)
fi
export RAY_ADDRESS=${ip%/*}:$((20000 + SLURM_JOB_ID % 10000))
export RAY_TEMP_DIR=/tmp/ray_$SLURM_JOB_ID NUM_NODES=${#nodes[@]}
# Whoever reaches Ray's port may run programs as this user, so only this job's processes know the token.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token

head='' workers=()
stop_ray() {
    local pids
    # By SIGTERM srun kills its step. Workers first, so that none of them misses its head.
    for pids in "${workers[*]}" "$head"; do
        # shellcheck disable=SC2086
        kill $pids 2> /dev/null && wait $pids || true
    done
}
trap stop_ray EXIT
on_node() {
    exec srun --nodes=1 --ntasks=1 --nodelist="$1" --cpu-bind=none bash deploy/ray_node.sh "$2"
}
on_node "${nodes[0]}" head &
head=$!
for node in "${nodes[@]:1}"; do
    on_node "$node" worker &
    workers+=($!)
done

python deploy/run.py "$@" &
run=$! requeue=''
# SIGTERM: vlrl finishes its step, saves and ends. SIGUSR1, which SLURM sends before the time limit: the same, and the
# job is queued again.
trap 'interrupted=yes; kill -TERM "$run" || true' TERM
trap 'interrupted=yes requeue=yes; kill -TERM "$run" || true' USR1
interrupted=yes
while [[ -n $interrupted ]]; do # a trap ends `wait` early
    interrupted='' status=0
    wait "$run" || status=$?
done

stop_ray
trap - EXIT
if [[ -n $requeue && $status == 130 ]]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
