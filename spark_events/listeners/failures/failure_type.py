"""The built-in failure enricher: did the user or the system cause the failure?"""

from __future__ import annotations

import re
from collections.abc import Mapping

from spark_events.api import Failure, FailureContext, FailureEnricher
from spark_events.listeners.failures.python_crash import ended_without_a_word
from spark_events.listeners.failures.python_errors import innermost_error

# Failures that a machine, a network or a cluster causes, whoever wrote the job.
_SYSTEM_TYPES = (
    "OutOfMemoryError",
    "StackOverflowError",
    "FetchFailedException",
    "MetadataFetchFailedException",
    "IOException",
    "SocketException",
    "ConnectException",
    "UnknownHostException",
    "TimeoutException",
    "RpcException",
    "NoClassDefFoundError",
    "BlockMissingException",
    "MemoryError",
    "ConnectionError",
    "ConnectionAbortedError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "BrokenPipeError",
    "TimeoutError",
    "gaierror",
    # Of clients in Python: http.client, urllib, requests, urllib3, httpx, aiohttp and botocore.
    "RemoteDisconnected",
    "IncompleteRead",
    "ConnectTimeout",
    "ReadTimeout",
    "ConnectError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "MaxRetryError",
    "NewConnectionError",
    "NameResolutionError",
    "ClientConnectorError",
    "ClientConnectorDNSError",
    "ServerDisconnectedError",
    "ServerTimeoutError",
    "ConnectionTimeoutError",
    "EndpointConnectionError",
    "ConnectionClosedError",
)
_SYSTEM_TEXTS = (
    "ExecutorLostFailure",
    "No space left on device",
    "Connection refused",
    "Executor heartbeat timed out",
    "the driver's Python ended without a word",
)
# In Python's messages, by Linux's numbers: EIO, ENOMEM, ENFILE, EMFILE, ENOSPC, EROFS, EPIPE, ENETDOWN to
# ENOBUFS, ETIMEDOUT to EHOSTUNREACH, ESTALE and EDQUOT; those below 0 are of names that have no address.
_SYSTEM_ERRNO = re.compile(
    r"(?:<urlopen error )?\[Errno (?:-\d+|5|12|23|24|28|30|32|10[0-5]|11[0-3]|116|122)\]"
    r"|<urlopen error timed out>"
)
# Where it is known how it ended, and not by a signal, code in it called System.exit.
_JVM_IS_GONE = re.compile(r"the driver's JVM is gone(?!, ended from within| \(exit code \d+\))")
# What raise_error throws before Spark 4: in code that Spark has made of the query.
_RAISED_BY_QUERY = re.compile(
    r"java\.lang\.RuntimeException: [^\t]{0,10000}\n"
    r"\tat org\.apache\.spark\.sql\.catalyst\.expressions\.GeneratedClass\$"
)
# Classes of SQLSTATE: connection, resources, operator intervention, system error.
_SYSTEM_STATES = ("08", "53", "57", "58")
# Cardinality, data, constraint, external routine, syntax or access rule, raised by the query itself.
_USER_STATES = ("21", "22", "23", "38", "39", "42", "P0")
# The query is not, or no longer, the one that has written its checkpoint.
_OTHER_QUERY = (
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE",
    "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
    "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED",
    "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
    "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
    "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
    "STREAM_STREAM_JOIN_INCOMPATIBLE_STATE_STORE_CONFIGS",
    # Where Spark has no class of its own for it, of several versions.
    "sources in the checkpoint offsets and now there are",
    "Provided schema doesn't match to the schema for existing state",
)
_USER_TYPES = (
    "ArithmeticException",
    "NumberFormatException",
    "ArrayIndexOutOfBoundsException",
    "NullPointerException",
    "AnalysisException",
    "ParseException",
    # A path that the program has given is not what it takes it for.
    "ParentNotDirectoryException",
    "PathIsNotDirectoryException",
    "FileAlreadyExistsException",
)
# Spark files them under internal errors; but the program was changed and its checkpoint was not.
_USER_CLASSES = (
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
)
# Spark 3.5 has an SQLSTATE for these, of the classes above, and does not print it.
_USER_CLASSES_WITHOUT_STATE = (
    "CANNOT_DECODE_URL",
    "CANNOT_PARSE_DECIMAL",
    "CANNOT_PARSE_JSON_FIELD",
    "CANNOT_PARSE_TIMESTAMP",
    "CAST_INVALID_INPUT",
    "CONVERSION_INVALID_INPUT",
    "DUPLICATED_MAP_KEY",
    "DUPLICATE_KEY",
    "FAILED_EXECUTE_UDF",
    "FAILED_FUNCTION_CALL",
    "FAILED_PARSE_STRUCT_TYPE",
    "INVALID_BITMAP_POSITION",
    "INVALID_FRACTION_OF_SECOND",
    "INVALID_INDEX_OF_ZERO",
    "INVALID_JSON_ROOT_FIELD",
    "INVALID_JSON_SCHEMA_MAP_TYPE",
    "INVALID_PARAMETER_VALUE",
    "MALFORMED_RECORD_IN_PARSING",
    "MERGE_CARDINALITY_VIOLATION",
    "NULL_MAP_KEY",
    "SCALAR_SUBQUERY_TOO_MANY_ROWS",
)

# What Spark says of files that are not what they are read as, below FAILED_READ_FILE.
_BROKEN_DATA = re.compile(
    r"is not a Parquet file|corrupted file: |Malformed ORC file|\[MALFORMED_|: Duplicate map key "
    r"|Parquet column cannot be converted in file "
    r"|FAILED_READ_FILE\.(?:CANNOT_READ_FILE_FOOTER|PARQUET_)"
)


class FailureTypeEnricher(FailureEnricher):
    """Labels a failure ``type`` = USER, SYSTEM or UNKNOWN."""

    def process_failure(self, failure: Failure, context: FailureContext) -> Mapping[str, str | None]:
        """Return the label ``type``."""
        return {"type": _type(failure)}


def _type(failure: Failure) -> str:
    name = (failure.exception_type or "").rsplit(".", 1)[-1]
    state = (failure.sql_state or "")[:2]
    text = failure.stacktrace or failure.message
    # Before the rest: the state store may say of it that it could not load its state (58030).
    if any(part in text for part in _OTHER_QUERY):
        return "USER"
    if failure.exit_signal == "SIGINT":  # somebody's Ctrl-C: neither the code nor the machine is to blame
        return "UNKNOWN"
    if ended_without_a_word(failure) or failure.exit_signal:
        return "SYSTEM"
    if name in _SYSTEM_TYPES or state in _SYSTEM_STATES or any(part in text for part in _SYSTEM_TEXTS):
        return "SYSTEM"
    if _SYSTEM_ERRNO.match(failure.message) or _JVM_IS_GONE.search(text):
        return "SYSTEM"
    error_class = (failure.error_class or "").partition(".")[0]
    if error_class in _USER_CLASSES or (not state and error_class in _USER_CLASSES_WITHOUT_STATE):
        return "USER"
    is_of_user = name.removeprefix("Spark") in _USER_TYPES or state in _USER_STATES
    if is_of_user or _RAISED_BY_QUERY.search(text) or _BROKEN_DATA.search(text):
        return "USER"
    # Python code in a Spark job is the user's own; but it may only pass on what Java has thrown.
    raised = innermost_error(text)
    return "USER" if raised and raised.passed_on is None else "UNKNOWN"
