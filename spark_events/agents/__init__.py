"""Read-only tools for agents, over the Model Context Protocol: report, failures, why, lineage."""
