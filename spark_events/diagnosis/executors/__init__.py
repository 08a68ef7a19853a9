"""The rules about executors and their hosts: slow, lost, or given memory that they do not use."""
