"""Expressions of single rows that take far longer than others of the same result."""

from __future__ import annotations

import json

from tests.support.slow.case import Work, case, write_parquet


@case("parsed-for-each-field")
def field_after_field(work: Work) -> None:
    """A document is parsed for each of its fields that are asked for, and not once for all of them."""
    fields, rows = work.random.randrange(24, 36), 12_000
    folder = work.folder / "letters"
    letters = [json.dumps({f"field_{n}": f"{row} {n} " * 8 for n in range(40)}) for row in range(200)]
    write_parquet(folder, {"letter": letters * (rows // 200)}, 2 * work.cores)
    work.defect("parsed-for-each-field", None, "letter")
    spark = work.begin()
    schema = ", ".join(f"field_{n} string" for n in range(fields))
    each = [f"get_json_object(letter, '$.field_{n}') AS field_{n}" for n in range(fields)]
    whole = spark.read.schema("letter string").parquet(str(folder))
    parsed = (
        whole.selectExpr(*each) if work.bad else whole.selectExpr(f"from_json(letter, '{schema}')")
    )  # slow
    parsed.write.format("noop").mode("overwrite").save()  # slow


@case("slow-pattern")
def lines_of_a_log(work: Work) -> None:
    """A pattern looks for anything in between again and again, in vain; the twin's says what is there."""
    rows, column = work.random.randrange(100_000, 140_000), work.random.choice(["line", "message", "entry"])
    work.defect("slow-pattern", None, column, costed=False)
    spark = work.begin()
    made = f"concat('at ', id, ' ', repeat('word ', 12), sha2(cast(id AS string), 256)) AS {column}"
    spark.range(0, rows, 1, 2 * work.cores).selectExpr(made).write.parquet(str(work.folder / "log"))
    pattern = r"at (.*)\d(.*)\d(.*)end" if work.bad else r"^at (\d+) [a-z ]*(end)"
    lines = spark.read.parquet(str(work.folder / "log"))
    found = lines.selectExpr(
        f"regexp_extract({column}, r'{pattern}', 1) AS number", f"length({column}) AS long"
    )
    found.write.format("noop").mode("overwrite").save()  # slow


@case("long-case")
def mapped_by_conditions(work: Work) -> None:
    """Codes are mapped to groups by a CASE with a condition for each; the twin joins a table that has them."""
    rows, codes = work.random.randrange(4_000_000, 5_000_000), work.random.randrange(700, 1_000)
    column = work.random.choice(["code", "tariff", "icd"])
    work.defect("long-case", None, column, costed=False)
    spark = work.begin()
    made = f"concat('C', lpad(cast(pmod(hash(id), {codes}) AS string), 4, '0')) AS {column}"
    spark.range(0, rows, 1, 2 * work.cores).selectExpr(made).write.parquet(str(work.folder / "codes"))
    groups = [(f"C{number:04d}", f"group {number % 37}") for number in range(codes)]
    coded = spark.read.parquet(str(work.folder / "codes"))
    if work.bad:
        conditions = " ".join(f"WHEN {column} = '{code}' THEN '{group}'" for code, group in groups)
        mapped = coded.selectExpr(f"CASE {conditions} ELSE 'other' END AS group")
    else:
        mapped = coded.join(spark.createDataFrame(groups, f"{column} string, group string"), column, "left")
    mapped.groupBy("group").count().write.format("noop").mode("overwrite").save()  # slow


@case("columns-one-by-one")
def cleaned_one_by_one(work: Work) -> None:
    """Answers are cleaned in a loop, three columns of which each is made of the one before, question by question."""
    from pyspark.sql.functions import col, lower, trim, when

    questions, rows = work.random.randrange(36, 44), 20_000
    folder = work.folder / "answers"
    answers = [str(number % 9) for number in range(1_000)] * (rows // 1_000)
    write_parquet(folder, {f"q{n}": answers for n in range(questions)}, 2 * work.cores)
    work.defect("columns-one-by-one", None, "answers")
    spark = work.begin()
    cleaned = spark.read.parquet(str(folder))
    steps = (
        lambda name: when(lower(trim(col(name))) == "n/a", None).otherwise(trim(col(name))),
        lambda name: col(name).cast("int") + 1,
        lambda name: when(col(name) > 5, 5).otherwise(col(name)),
    )
    names = [f"q{n}" for n in range(questions)]
    if work.bad:
        for name in names:
            for step in steps:
                cleaned = cleaned.withColumn(name, step(name))
            cleaned = cleaned.withColumn(f"{name}_missing", col(name).isNull())
    else:
        for step in steps:
            cleaned = cleaned.withColumns({name: step(name) for name in names})
        cleaned = cleaned.withColumns({f"{name}_missing": col(name).isNull() for name in names})
    missing = " + ".join(f"CAST({name}_missing AS INT)" for name in names)
    cleaned.selectExpr("*", f"{missing} AS missing").write.format("noop").mode("overwrite").save()  # slow


@case("converted-to-compare")
def a_number_kept_as_text(work: Work) -> None:
    """A table is sorted by a text, which a query compares with numbers, so no file is left out."""
    import numpy

    files, rows = 12, work.random.randrange(1_300_000, 1_500_000)
    wanted = 1_000_000_000 + work.random.randrange(files * rows)
    folder = work.folder / "meters"
    for file in range(files):
        numbers = numpy.arange(1, rows + 1) + (1_000_000_000 + file * rows)
        columns = {"meter": numbers.astype(str), "used": numbers * 7919 % 10007}
        write_parquet(folder / f"{file}", columns)
    work.defect("converted-to-compare", None, "meter", costed=False)
    spark = work.begin()
    meters = spark.read.schema("meter string, used long").parquet(f"{folder}/*")
    chosen = meters.where(f"meter = {wanted}L" if work.bad else f"meter = '{wanted}'")  # slow
    chosen.selectExpr("max(used)").write.format("noop").mode("overwrite").save()  # slow
