"""Job status listeners (FLIP-314): events of applications, queries and statements, with their lineage."""
