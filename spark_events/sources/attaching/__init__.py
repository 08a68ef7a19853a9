"""Attaches to a running application: finds what to attach to, and takes what its program reports of its own."""
