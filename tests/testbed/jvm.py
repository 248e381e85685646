"""Options of the JVMs that tests start. They live for seconds: a quick start is worth more than optimised code, and
most of a start is reading Spark's classes, which an archive has ready (ensure_class_archive in scripts/lib.sh).
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def options(spark_home):
    """For a JVM with that Spark's jars at the head of its class path. Another one, or one of another version of Java,
    passes over the archive; the last option keeps it from saying so.
    """
    core = next(pathlib.Path(spark_home).glob("jars/spark-core_*.jar"), None)
    archive = core and ROOT / f"build/cds/{core.stem}.jsa"
    if not archive or not archive.exists():
        return BRIEF
    return f"{BRIEF} -XX:SharedArchiveFile={archive} -Xlog:cds*=off"


def environment(spark_home):
    """What gives them to the drivers and executors of all jobs, to spark-submit's own first JVM and to Spark's daemons.
    Jobs may have java options of their own beside these.
    """
    given = options(spark_home)
    return {
        "SPARK_SUBMIT_OPTS": f'{given} -Dspark.executor.defaultJavaOptions="{given}"',
        "SPARK_LAUNCHER_OPTS": given,
        "SPARK_DAEMON_JAVA_OPTS": given,
    }
