"""Which data feeds which, out of the file logs of job status listeners."""
