"""The names of the fields of records that several modules read or write, as Spark spells them."""

from __future__ import annotations

from typing import Final

EXECUTOR_ID: Final = "Executor ID"
JOB_ID: Final = "Job ID"
STAGE_ID: Final = "Stage ID"
STAGE_ATTEMPT_ID: Final = "Stage Attempt ID"
STAGE_INFO: Final = "Stage Info"
STAGE_INFOS: Final = "Stage Infos"
STAGE_IDS: Final = "Stage IDs"
SUBMISSION_TIME: Final = "Submission Time"
COMPLETION_TIME: Final = "Completion Time"
NUMBER_OF_TASKS: Final = "Number of Tasks"
PROPERTIES: Final = "Properties"
SPARK_PROPERTIES: Final = "Spark Properties"
RUN_ID: Final = "runId"
EXECUTION_ID: Final = "executionId"
ROOT_EXECUTION_ID: Final = "rootExecutionId"
APP_ID: Final = "App ID"
APP_NAME: Final = "App Name"
TIMESTAMP: Final = "Timestamp"
EXIT_CODE: Final = "ExitCode"
EXECUTOR_INFO: Final = "Executor Info"
RESOURCE_PROFILE_ID: Final = "Resource Profile Id"
