"""Attaches to a running application: finds what to attach to, and takes what it reports of its own."""
