#!/usr/bin/env bash
# setup-cifar10.sh [FOLDER|ARCHIVE]: CIFAR-10's binary version as data/cifar10_train_lmdb, data/cifar10_test_lmdb and data/mean.binaryproto.
# Without an argument the archive is fetched from its author's page. Runs from anywhere; CREMA_DATA_DIR names another place than data/.
source "$(dirname "${BASH_SOURCE[0]}")/setup_common.sh"
tools=$DATA/.tools
mkdir -p "$DATA"
if [ ! -e "$tools/complete" ]; then
  python3 -m venv "$tools" && "$tools/bin/pip" install -q --disable-pip-version-check lmdb==1.6.2 || fail "could not install the Python package lmdb into $tools"
  touch "$tools/complete"
fi
"$tools/bin/python" "$HERE/cifar10.py" "$DATA" "$@"
