"""The local properties by which Spark tells what a job and its tasks work for."""

from __future__ import annotations

JOB_GROUP = "spark.jobGroup.id"
"""The job group; of a streaming query's job, the id of the query's run."""
BATCH_ID = "streaming.sql.batchId"
"""The number of the micro-batch."""
JOB_DESCRIPTION = "spark.job.description"
JOB_TAGS = "spark.job.tags"
"""What the user, or Spark for a micro-batch, says of the job."""
EXECUTION = "spark.sql.execution.id"
"""The number of the SQL execution."""
ROOT_EXECUTION = "spark.sql.execution.root.id"
"""The number of the outermost SQL execution."""
QUERY_ID = "sql.streaming.queryId"
"""The id of the streaming query, which is the same in all its runs."""
