"""The command lines of CaffeOnSpark's README for captions (README-coco), unchanged but for the machine's paths and
the nets' widths.
"""

import json
import re
import subprocess

import pytest

from caption_nets import small
from conftest import ROOT
from spark_jobs import ENVIRONMENT, JAR, SPARK

WORDS = (
    "A grey cat looks straight ahead.",
    "The green cat sits still.",
    "A dog with long ears.",
    "One brown dog waits and waits.",
)


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    """CAFFE_ON_SPARK as `make dist` lays it out, and a folder in place of /tmp/coco with four pictures and their
    captions.
    """
    folder = tmp_path_factory.mktemp("readme")
    subprocess.run(
        [str(ROOT / "scripts/dist"), str(folder / "caffeonspark"), JAR], check=True, timeout=60, capture_output=True
    )
    images = folder / "coco/images/train2014"
    images.mkdir(parents=True)
    (folder / "coco/annotations").mkdir()
    names = sorted((folder / "caffeonspark/data/images").glob("*.jpg"))
    for name in names:
        (images / name.name).write_bytes(name.read_bytes())
    (folder / "coco/annotations/captions_train2014.json").write_text(
        json.dumps(
            {
                "images": [
                    {"id": i, "height": 160, "width": 200, "file_name": n.name, "flickr_url": "", "coco_url": ""}
                    for i, n in enumerate(names)
                ],
                "annotations": [{"image_id": i, "id": 100 + i, "caption": words} for i, words in enumerate(WORDS)],
            }
        )
    )
    return folder


def typed(coco, lines):
    """Runs lines of shell in ${CAFFE_ON_SPARK}/data."""
    env = {
        **ENVIRONMENT,
        "CAFFE_ON_SPARK": str(coco / "caffeonspark"),
        "MASTER_URL": "local[2]",
        "PATH": f"{SPARK}/bin:{ENVIRONMENT['PATH']}",
    }
    return subprocess.run(
        ["bash", "-ec", lines.replace("/tmp/coco", str(coco / "coco"))],
        cwd=coco / "caffeonspark/data",
        env=env,
        capture_output=True,
        text=True,
        timeout=240,
    )


# length: two of the document's command lines, as long as they are there.
def test_the_frame_of_captions_trains_its_net(coco):
    made = typed(
        coco,
        r"""
    spark-submit --master ${MASTER_URL} --deploy-mode client \
        --conf spark.executor.extraClassPath=${CAFFE_ON_SPARK}/caffe-grid/target/caffe-grid-0.1-SNAPSHOT-jar-with-dependencies.jar \
        --conf --driver-class-path=${CAFFE_ON_SPARK}/caffe-grid/target/caffe-grid-0.1-SNAPSHOT-jar-with-dependencies.jar \
        --class com.yahoo.ml.caffe.tools.CocoDataSetConverter  \
        ${CAFFE_ON_SPARK}/caffe-grid/target/caffe-grid-0.1-SNAPSHOT-jar-with-dependencies.jar \
        -output  /tmp/coco/parquet/ \
        -imageRoot /tmp/coco/images/train2014/ \
        -captionFile /tmp/coco/annotations/captions_train2014.json \
        -outputFormat parquet \
        -imageCaptionDFDir df_image_caption_train2014 \
        -vocabDir vocab \
        -vocabSize 8800 \
        -embeddingDFDir df_embedded_train2014
    ln -s /tmp/coco/parquet/vocab/part-00000 /tmp/coco/parquet/vocab.txt
    """,  # noqa: E501  as the document has it
    )
    assert made.returncode == 0, made.stderr[-3000:]
    assert (coco / "coco/parquet/vocab.txt").read_text().split()

    data = coco / "caffeonspark/data"
    net = small((data / "lrcn_cos.prototxt").read_text(), 8801).replace("batch_size: 1\n", "batch_size: 2\n")
    (data / "lrcn_cos.prototxt").write_text(
        re.sub(r'source: ".*"', f'source: "{coco}/coco/parquet/df_embedded_train2014/"', net)
    )
    solver = (data / "lrcn_solver.prototxt").read_text()
    for field, value in (("max_iter", 2), ("snapshot", 0)):
        solver = re.sub(rf"^{field}: .*", f"{field}: {value}", solver, flags=re.M)
    (data / "lrcn_solver.prototxt").write_text(solver)
    trained = typed(
        coco,
        r"""
    TOTAL_CORES=2 CORES_PER_WORKER=1
    spark-submit --master ${MASTER_URL} \
        --files lrcn_cos.prototxt,lrcn_solver.prototxt \
        --conf spark.cores.max=${TOTAL_CORES} \
        --conf spark.task.cpus=${CORES_PER_WORKER} \
        --conf spark.driver.extraLibraryPath="${DYLD_LIBRARY_PATH}" \
        --conf spark.executorEnv.DYLD_LIBRARY_PATH="${DYLD_LIBRARY_PATH}" \
        --class com.yahoo.ml.caffe.CaffeOnSpark  \
          ${CAFFE_ON_SPARK}/caffe-grid/target/caffe-grid-0.1-SNAPSHOT-jar-with-dependencies.jar \
             -train \
             -conf lrcn_solver.prototxt \
             -devices 1 \
             -resize \
             -model /tmp/coco/parquet/lrcn_coco.model
    """,
    )
    assert trained.returncode == 0, trained.stderr[-3000:]
    assert (coco / "coco/parquet/lrcn_coco.model").stat().st_size > 0
    # The converter's default is 20 places and the net has 21: rows are padded, and one log line says so and names the
    # flag.
    reported = re.findall(
        r"has 20 values where the top holds 21: the others are 0, as in CaffeOnSpark. -captionLength 21",
        trained.stdout + trained.stderr,
    )
    assert len(reported) >= 1, trained.stderr[-3000:]
