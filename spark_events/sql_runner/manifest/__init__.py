"""Manifests: YAML files, each of which describes one streaming query."""
