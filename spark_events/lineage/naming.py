"""Names of data by OpenLineage's naming specification: always the same name, however the data is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from urllib.parse import unquote, urlsplit

Name = tuple[str, str]
"""Namespace and name."""

_PARTITION = re.compile(r"[^/=]+=[^/]*")
_GLOB = re.compile(r"[*?\[\]{}]")
_DATA_FILE = re.compile(
    r".+\.(?:csv|tsv|txt|jsonl?|ndjson|xml|parquet|orc|avro|log)(?:\.[a-z]\w*)?", re.IGNORECASE
)
_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs", "gcs": "gs"}
_ON_LOCAL_DISK = ("", "file")
_JDBC = re.compile(r"jdbc:(?P<scheme>[a-z0-9]+):(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
# What comes before the last @ is a user and a password, which may itself have any of these characters.
_HOST = re.compile(r"//(?:[^;?]*@)?(?P<hosts>[^/;?]*)(?:/(?P<database>[^;?]*))?")
_HOST_AS_PAIR = re.compile(r"\bhost=([^,()]+)", re.IGNORECASE)
_OPTIONS = re.compile(r"[:,&]")
"""What options begin with behind the database, in URLs of DB2 and Teradata."""
_PORTS = {"postgres": 5432, "mysql": 3306, "sqlserver": 1433, "oracle": 1521, "redshift": 5439, "db2": 50000}
_NAMED_OTHERWISE = {"postgresql": "postgres", "sqlserver": "mssql", "mariadb": "mysql"}
_MOST_PATHS = 10
# What a task of Spark, PyArrow or Dask has written, or whoever names files by UUIDs; tables may have folders
# that are UUIDs.
_NEW_EACH_TIME = re.compile(
    r"part-(?:[mr]-)?\d{5}.*|part[-.]\d+\.[a-z]\w*"
    r"|(?:.*[^0-9a-f])?[0-9a-f]{8}(?P<dash>-?)(?:[0-9a-f]{4}(?P=dash)){3}[0-9a-f]{12}(?:[^0-9a-f].*)?\.[a-z]\w*",
    re.IGNORECASE,
)
_IDENTIFIER = r'(?:"[^"]{1,200}"|`[^`]{1,200}`|\[[^\]]{1,200}\]|[^\s."`\[\]]{1,200})'
_WITH_ALIAS = re.compile(
    rf"(?!(?:ONLY|LATERAL|TABLE)\s)({_IDENTIFIER}(?:\.{_IDENTIFIER}){{0,3}})\s+(?:AS\s+)?{_IDENTIFIER}",
    re.IGNORECASE,
)
"""A table as databases take it in the place of a query, such as ``orders AS o``."""


def of_path(uri: str) -> Name:
    """Return the name of files.

    Args:
        uri: of a folder or a file, such as ``s3a://bucket/table/day=2026-01-01``. Partition folders and
            globs are not part of the name, wherever they are, nor is a file whose name nobody has chosen.
    """
    is_uri = "://" in uri or uri.startswith("file:")
    parts = urlsplit(uri if is_uri else "file:/")
    scheme = _SAME_SCHEME.get(parts.scheme.lower(), parts.scheme.lower())
    path = _root(unquote(parts.path) if is_uri else uri)
    if scheme in _ON_LOCAL_DISK:
        return (f"file://{parts.netloc}" if parts.netloc else "file"), path or "/"
    name = path.strip("/")
    if scheme in ("hdfs", "viewfs", "abfss", "wasbs"):
        name = path or "/"
    user, _, host = parts.netloc.rpartition("@")
    # A bucket's container may stand there; but with a colon, it is a user and a password.
    return f"{scheme}://{host if ':' in user else parts.netloc}", name or "/"


def of_paths(uris: Iterable[str]) -> list[Name]:
    """Return the names of several paths; if there are many, only that of their common folder."""
    names = list(dict.fromkeys(of_path(uri) for uri in uris))
    if len(names) <= _MOST_PATHS:
        return names
    return [(namespace, _common(names, namespace)) for namespace in dict.fromkeys(name[0] for name in names)]


def of_topics(servers: str, topics: Iterable[str]) -> list[Name]:
    """Return the names of Kafka's topics.

    Args:
        servers: ``kafka.bootstrap.servers``; the first names the cluster, as the specification has it.
        topics: topics, or the pattern of the subscribed ones.
    """
    first = servers.split(",")[0].strip().split("://")[-1] or "unknown"
    return [(f"kafka://{first if ':' in first else first + ':9092'}", topic) for topic in topics]


def kafka_topics(options: Mapping[str, str]) -> list[str]:
    """Return the topics, or the pattern of topics, in the options of a reader or a writer."""
    values = {key.lower(): value for key, value in options.items()}
    if topics := values.get("subscribe") or values.get("topic"):
        return [topic.strip() for topic in topics.split(",") if topic.strip()]
    if assigned := values.get("assign"):
        return sorted(json.loads(assigned))
    pattern = values.get("subscribepattern")
    return [pattern] if pattern else []


def of_jdbc(url: str, table: str) -> Name:
    """Return the name of a table accessed through JDBC, without any secrets of the URL.

    Args:
        url: such as ``jdbc:postgresql://host:5432/database``.
        table: as it is written for the database, qualified or not; an alias is left out.
    """
    if aliased := _WITH_ALIAS.fullmatch(table.strip()):
        table = aliased[1]
    parts = _JDBC.match(url)
    if parts is None:
        return "jdbc", table
    scheme, rest = parts["scheme"].lower(), parts["rest"]
    host = _HOST.search(rest)
    if host is None:
        return _without_host(scheme, rest, table)
    shown = _NAMED_OTHERWISE.get(scheme, scheme)
    server = host["hosts"].split(",")[0]
    if "=" in host["hosts"]:  # MySQL's pairs, among which the user and the password may be
        of_host = _HOST_AS_PAIR.search(host["hosts"])
        server = of_host[1] if of_host else ""
    port = _PORTS.get(shown) or _PORTS.get(scheme)
    if port and not re.search(r":\d+$", server):
        server = f"{server}:{port}"
    named = re.search(r"(?:databaseName|database)=([^;&,]+)", rest, re.IGNORECASE)
    database = _OPTIONS.split(host["database"] or "")[0]
    if not database or "=" in database:
        database = named[1] if named else ""
    return f"{shown}://{server}", _qualified(shown, database, table)


def _without_host(scheme: str, rest: str, table: str) -> Name:
    """Return the name for a database in the process or in a file: Derby's and SQLite's."""
    database = rest.split(";")[0].split("?")[0].lstrip("/")
    if scheme == "oracle" and "@" in rest:
        server, _, service = rest.rpartition("@")[2].lstrip("/").replace("/", ":").rpartition(":")
        return f"oracle://{server}", f"{service}.{_unquoted(table)}"
    return f"{scheme}:{database}", _unquoted(table)


def _qualified(scheme: str, database: str, table: str) -> str:
    name = _unquoted(table)
    parts = [database] if database else []
    if scheme == "postgres" and "." not in name:
        parts.append("public")
    return ".".join((*parts, name)) if name.count(".") < 2 else name


def _unquoted(table: str) -> str:
    return re.sub(r'["`\[\]]', "", table).strip()


def is_query(table: str) -> bool:
    """Return whether a JDBC reader reads a query in parentheses rather than a table."""
    return table.lstrip().startswith("(")


def _root(path: str) -> str:
    parts = path.rstrip("/").split("/")
    if _NEW_EACH_TIME.fullmatch(parts[-1]):  # a CSV folder's header is read of some file
        del parts[-1]
    kept = []
    for place, part in enumerate(parts, 1):
        if part.count("{") != part.count("}") or part.count("[") != part.count("]"):
            break  # a glob that has a slash
        is_file = place == len(parts) and _DATA_FILE.fullmatch(part) is not None
        if not _GLOB.search(part) and (is_file or not _PARTITION.fullmatch(part)):
            kept.append(part)
    return "/".join(kept)


def _common(names: list[Name], namespace: str) -> str:
    paths = [name.split("/") for space, name in names if space == namespace]
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return "/".join(parts[0] for parts in shared) or "/"
