"""Reads event logs, or stored events and spans, and makes explanations of what they say."""
