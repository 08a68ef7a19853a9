"""Tables with owners and tags; the arguments are a folder, a format, and the name of a table."""

import json
import sys

from pyspark.sql import SparkSession

folder, of_format, table = sys.argv[1:4]
spark = SparkSession.builder.appName("owned").getOrCreate()
PREFIX = "openlineage.dataset.facets."


def facet(name: str, content: object) -> str:
    return f"'{PREFIX}{name}' = '{json.dumps(content)}'"


pii = {"tags": [{"key": "pii", "value": "true", "field": "email"}, {"key": "tier", "value": "gold"}]}
owners = {"owners": [{"name": "team:data", "type": "MAINTAINER"}, {"name": "user:jdoe"}]}
database, _, name = table.rpartition(".")
for suffix, properties in {
    "plain": "",
    "tagged": f"TBLPROPERTIES ({facet('tags', pii)}, {facet('ownership', owners)})",
    "wrong": f"TBLPROPERTIES ('{PREFIX}tags' = 'gold', '{PREFIX}ownership' = '[1]')",
}.items():
    spark.sql(f"CREATE TABLE {table}_{suffix} (id INT, email STRING) {of_format} {properties}")
spark.sql(f"INSERT INTO {table}_tagged VALUES (1, 'a@example.com')")
spark.sql(f"INSERT INTO {table}_plain SELECT * FROM {table}_tagged")
spark.sql(f"INSERT INTO {table}_wrong SELECT * FROM {table}_plain")
spark.sql(f"CREATE TABLE {table}_made {of_format} AS SELECT id FROM {table}_plain")
spark.sql(f"ALTER TABLE {table}_plain SET TBLPROPERTIES ({facet('tags', {'tags': []})})")
later = {"tags": [{"key": "year", "value": 2026, "source": "DBT"}]}
spark.sql(f"ALTER TABLE {table}_plain SET TBLPROPERTIES ({facet('tags', later)})")
spark.range(1).count()  # so that the next one does not overtake the answer of the catalog
spark.sql(f"INSERT OVERWRITE {table}_plain SELECT 2, 'b'")
spark.table(f"{table}_plain").write.format("noop").mode("overwrite").save()
spark.stop()
