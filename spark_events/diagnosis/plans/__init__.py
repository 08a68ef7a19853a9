"""The plans of SQL executions with what their nodes measured, as the rules about them see them."""
