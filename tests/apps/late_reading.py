"""An application whose plans are read only once Spark has stopped; the arguments are a table and its format."""

import sys

from pyspark.sql import DataFrame, SparkSession

from tests.support.java_source import compile_java

SOURCE = """
package tests;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;

/** A table which the reader of plans takes for one of JDBC, until it asks for more. */
public class UnhurriedTable extends BaseRelation {
    private final SQLContext context;

    public UnhurriedTable(SQLContext context) {
        this.context = context;
    }

    public SQLContext sqlContext() {
        return context;
    }

    public StructType schema() {
        return new StructType().add("id", "long");
    }

    public Object jdbcOptions() throws InterruptedException {
        while (!context.sparkContext().isStopped()) {
            Thread.sleep(5L);
        }
        return null;
    }
}
"""

table, of_format = sys.argv[1:3]
spark = SparkSession.builder.appName("last").getOrCreate()
spark.range(3).selectExpr("id", "id * 2 AS twice").write.parquet("rows")
arguments = spark.sparkContext._gateway.new_array(spark._jvm.Object, 1)
arguments[0] = spark._jsparkSession.sqlContext()
unhurried = compile_java(spark._jvm, SOURCE, "tests.UnhurriedTable").getConstructors()[0]
relation = spark._jsparkSession.baseRelationToDataFrame(unhurried.newInstance(arguments))
DataFrame(relation, spark).limit(0).collect()
spark.sql(f"CREATE TABLE {table} USING {of_format} AS SELECT * FROM parquet.rows")
spark.stop()
