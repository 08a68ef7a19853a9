"""What an application works on: SQL executions, jobs and stages."""
