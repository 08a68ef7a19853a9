"""Streaming SQL queries from YAML manifests: the Spark counterpart of flink-sql-runner.

A team keeps a folder of manifests, one a query. ``spark-events sql deploy`` keeps the queries that run equal
to the folder, with their state: in one long-lived application, or in one application a query.
"""
