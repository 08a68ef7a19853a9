-- What the queries read and write. With LOCATION, a table is known anew each time, and its rows stay.
CREATE TABLE IF NOT EXISTS orders (id INT, item STRING, price DOUBLE, ordered_at TIMESTAMP)
  USING json
  OPTIONS ('maxFilesPerTrigger' = '10')
  LOCATION '/tmp/spark-events-sql/orders'
  -- As Flink's WATERMARK FOR ordered_at AS ordered_at - INTERVAL '1' MINUTE.
  TBLPROPERTIES ('watermark.column' = 'ordered_at', 'watermark.delay' = '1 minute');

CREATE TABLE IF NOT EXISTS expensive_orders (
  id INT, item STRING, price DOUBLE,
  __create_timestamp TIMESTAMP, __query_name STRING, __query_description STRING,
  __query_id STRING, __query_version INT, __query_create_timestamp TIMESTAMP
) USING parquet LOCATION '/tmp/spark-events-sql/expensive_orders';

CREATE TABLE IF NOT EXISTS revenue (
  minute TIMESTAMP, orders BIGINT, revenue DOUBLE,
  __create_timestamp TIMESTAMP, __query_name STRING, __query_description STRING,
  __query_id STRING, __query_version INT, __query_create_timestamp TIMESTAMP
) USING parquet LOCATION '/tmp/spark-events-sql/revenue';
