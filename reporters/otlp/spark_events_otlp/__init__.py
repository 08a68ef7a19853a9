"""Sends events and spans over OTLP, by gRPC or HTTP."""
