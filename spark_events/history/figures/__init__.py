"""What facts come to: uptime, checkpoints, failures, runs and the like."""
