"""A job on a Spark whose own processes encrypt what they say."""

import os

from spark_jobs import job, submit, trained  # noqa: F401 (job is a fixture)
from support.overheard import Overheard

ENCRYPTED = (
    "spark.authenticate=true",
    "spark.authenticate.secret=a secret of this test",
    "spark.network.crypto.enabled=true",
)


def test_where_spark_encrypts_gradients_are_encrypted_too(job):  # noqa: F811
    said, models = {}, {}
    for name, settings in (("plain", ()), ("sealed", ENCRYPTED)):
        with Overheard() as overheard:
            done = submit(job, "local-cluster[2,1,1024]", "-train", "-clusterSize", 2, conf=settings)
        assert done.returncode == 0, done.stderr[-3000:]
        said[name], models[name] = overheard.text(), trained(job)
    assert models["plain"] == models["sealed"] and models["plain"]
    for word in (b"CRMF", os.uname().nodename.encode() + b" 127.0.0.1"):  # frames of gradients; who a worker says it is
        assert word in said["plain"] and word not in said["sealed"], word
