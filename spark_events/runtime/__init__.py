"""Loads reporters from configuration and hands each what it asked for, on a thread of its own."""
