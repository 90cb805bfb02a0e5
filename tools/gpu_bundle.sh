#!/bin/sh
# Check and unpack the bundle that this file lies in, install its wheels into a folder of its own, and run
# benchmarks/gpu/check.py with the arguments given here (by default the stages without Ray and vLLM).
#
#     sh run.sh [STAGE ...]        PYTHON names another interpreter than python3, WORK another folder than ./work
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${WORK:-$here/work}
python=${PYTHON:-python3}
(cd "$here" && sha256sum --check --quiet SHA256SUMS)
rm -rf "$work/site" "$work/wheels" "$work/vlrl"
mkdir -p "$work/vlrl"
for part in "$here"/part_*.tar; do tar -xf "$part" -C "$work"; done
tar -xzf "$work/repository.tar.gz" -C "$work/vlrl"
"$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$work/site" "$work"/wheels/*.whl
[ $# -gt 0 ] || set -- facts attention agreement training
export PYTHONPATH="$work/vlrl:$work/site${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" "$work/vlrl/benchmarks/gpu/check.py" --out "$work/results" "$@"
