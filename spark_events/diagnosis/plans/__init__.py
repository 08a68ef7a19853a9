"""What the plans of SQL executions, with what their nodes measured, say about why they are slow."""
