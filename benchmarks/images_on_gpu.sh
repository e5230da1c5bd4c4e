#!/usr/bin/env bash
# The tables of private images that need a GPU, in pieces of under ten minutes each.
#
#     benchmarks/images_on_gpu.sh speed            # a sketch stage by stage: first, about a minute
#     benchmarks/images_on_gpu.sh mnist            # DP-MEPF, ε = 1 and 0.2, three runs
#     benchmarks/images_on_gpu.sh fashion
#     benchmarks/images_on_gpu.sh letters          # MNIST, begun with public letters
#     benchmarks/images_on_gpu.sh clothes          # FashionMNIST, layer by layer
#     benchmarks/images_on_gpu.sh cifar 10         # VGG16, ε = 10; then 1; then 0.2
#
# Each piece goes on where it was stopped. RESULTS and WORK say where lines of results and the
# pretrained ResNet18 are kept; LIMIT is in seconds. Besides torch, numpy and safetensors the
# benchmark imports opendp (noise here is simulated, but its module is the same), pydantic, pyarrow,
# scipy, scikit-learn, pandas, sqlglot, rich, matplotlib, numba and threadpoolctl. Where nothing can
# be installed, unpack their wheels into a folder and name it in PYTHONPATH. opendp, sqlglot and
# matplotlib are imported and not called, but a release records the version of opendp, which its
# metadata has to tell; numba counts the classes, pyarrow holds the rows.
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:?speed, mnist, fashion, letters, clothes or cifar}
python=${PYTHON:-python3}
words=(--device cuda --results "${RESULTS:-benchmarks/results}" --work "${WORK:-/tmp/aquatint-bench}")
case $part in
    speed) asked=(speed) ;;
    mnist | fashion) asked=(mepf --images "$part") ;;
    letters | clothes) asked=("$part") ;;
    cifar) asked=(cifar --epsilon "${2:?which ε: 10, 1 or 0.2}") ;;
    *) echo "unknown piece $part: speed, mnist, fashion, letters, clothes or cifar" >&2 && exit 2 ;;
esac
PYTHONPATH=src${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 \
    timeout "${LIMIT:-570}" "$python" benchmarks/images.py "${asked[@]}" "${words[@]}"
