"""Tables of formats that Spark does not bring; on PySpark 4.1, for which there are jars."""

from __future__ import annotations

from pathlib import Path

from tests.support.slow.case import Work, case

JARS = Path(__file__).parents[3] / ".cache" / "jars" / "lakehouse"
_DELTA = {
    "spark.jars": ",".join(map(str, sorted(JARS.glob("*.jar")))),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@case("rewrite-whole-files", conf=_DELTA, version="4.1")
def one_row_of_each_file(work: Work) -> None:
    """An UPDATE changes one row in each file of a Delta table, so that all files are written anew."""
    files, rows = 8, work.random.randrange(800_000, 1_000_000)
    path = work.folder / "accounts"
    work.defect("rewrite-whole-files", None, "accounts")
    with work.preparing() as spark:
        # With deletion vectors, the old files stay, and a few bytes say which rows are gone.
        vectors = str(not work.bad).lower()
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id LONG, note STRING) USING delta "
            f"TBLPROPERTIES (delta.enableDeletionVectors = {vectors})"
        )
        made = spark.range(0, rows, 1, files).selectExpr("id", "sha2(cast(id AS string), 256) AS note")
        made.write.format("delta").mode("append").save(str(path))
    spark = work.begin()
    each = rows // files
    spark.sql(
        f"UPDATE delta.`{path}` SET note = 'closed' WHERE id % {each} = 7 AND id < {each * files}"
    )  # slow
