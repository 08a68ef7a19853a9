"""Emits OpenLineage run events of jobs and their lineage."""
