"""Where a stage of RDDs comes from; stacks as Spark 4.3 logs them, without frames that say the same."""

from __future__ import annotations

from typing import Any

import pytest

from spark_events.diagnosis.rdds.stage_place import place_of_stage

WRITES = "runJob at SparkHadoopWriter.scala:85"
RDD_WRITES = """\
org.apache.spark.SparkContext.runJob(SparkContext.scala:2552)
org.apache.spark.internal.io.SparkHadoopWriter$.write(SparkHadoopWriter.scala:85)
org.apache.spark.rdd.PairRDDFunctions.$anonfun$saveAsHadoopDataset$1(PairRDDFunctions.scala:1094)
scala.runtime.java8.JFunction0$mcV$sp.apply(JFunction0$mcV$sp.scala:18)
org.apache.spark.rdd.RDD.withScope(RDD.scala:467)
org.apache.spark.rdd.PairRDDFunctions.saveAsHadoopFile(PairRDDFunctions.scala:1029)
"""
OF_PYTHON = """\
java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke(NativeMethodAccessorImpl.java:77)
java.base/java.lang.reflect.Method.invoke(Method.java:569)
py4j.reflection.MethodInvoker.invoke(MethodInvoker.java:244)
"""
TAKES = """\
org.apache.spark.rdd.RDD.take(RDD.scala:1539)
org.apache.spark.api.python.SerDeUtil$.pythonToPairRDD(SerDeUtil.scala:210)
org.apache.spark.api.python.PythonRDD$.saveAsHadoopFile(PythonRDD.scala:672)
org.apache.spark.api.python.PythonRDD.saveAsSequenceFile(PythonRDD.scala)
"""
SEQUENCES = """\
org.apache.spark.internal.io.SparkHadoopWriter$.write(SparkHadoopWriter.scala:85)
org.apache.spark.rdd.PairRDDFunctions.saveAsHadoopFile(PairRDDFunctions.scala:1029)
org.apache.spark.rdd.SequenceFileRDDFunctions.$anonfun$saveAsSequenceFile$1(SequenceFileRDDFunctions.scala:67)
scala.runtime.java8.JFunction0$mcV$sp.apply(JFunction0$mcV$sp.scala:18)
org.apache.spark.rdd.RDDOperationScope$.withScope(RDDOperationScope.scala:169)
"""


def rdd(number: int, place: str) -> dict[str, Any]:
    return {"RDD ID": number, "Name": "MapPartitionsRDD", "Callsite": place}


@pytest.mark.parametrize(
    ("name", "details", "last", "expected"),
    [
        pytest.param(WRITES, RDD_WRITES, "saveAsTextFile at NativeMethodAccessorImpl.java:0", "saveAsTextFile"),
        pytest.param(WRITES, RDD_WRITES, "map at PythonHadoopUtil.scala:186", "saveAsHadoopFile"),
        pytest.param(WRITES, SEQUENCES, "map at PythonHadoopUtil.scala:186", "saveAsSequenceFile"),
        pytest.param("take at SerDeUtil.scala:210", TAKES + OF_PYTHON, "x at y.scala:1", "saveAsSequenceFile"),
        # Of Scala programs, too, Spark knows where the RDD is made.
        pytest.param(WRITES, RDD_WRITES, "saveAsTextFile at Nightly.scala:12", "saveAsTextFile at Nightly.scala:12"),
    ],
)  # fmt: skip
def test_within_spark(name: str, details: str, last: str, expected: str) -> None:
    """A line in Spark's own code is no place for a user: what was called is."""
    rdds = [rdd(9, last), rdd(3, "saveAsText at old.py:1")]
    assert place_of_stage({"Stage Name": name, "Details": details, "RDD Info": rdds}) == expected


@pytest.mark.parametrize(
    "name",
    [
        "count at nightly.py:7",
        "count at NativeMethodAccessorImpl.java:0",
        "",
        "nightly at SerDeUtil.scala:210",
    ],
)
def test_others(name: str) -> None:
    """All other names stay, also of a user's file with such a name."""
    assert place_of_stage({"Stage Name": name, "Details": RDD_WRITES, "RDD Info": []}) == name


def test_no_stack() -> None:
    """A log may have no details."""
    assert place_of_stage({"Stage Name": WRITES}) == WRITES
