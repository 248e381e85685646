#!/usr/bin/env bash
# setup-cifar10.sh [FOLDER|ARCHIVE]: CIFAR-10's binary version as data/cifar10_train_lmdb, data/cifar10_test_lmdb and data/mean.binaryproto.
# Without an argument the archive is fetched from its author's page. Runs from anywhere; CREMA_DATA_DIR names another place than data/.
source "$(dirname "${BASH_SOURCE[0]}")/setup_common.sh"
crema=$(find_crema)
mkdir -p "$DATA"
python3 "$HERE/cifar10.py" "$crema" "$DATA" "$@"
