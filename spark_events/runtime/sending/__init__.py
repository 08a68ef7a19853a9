"""Sends records to another process until they are acknowledged: kept in memory or a journal, with retries."""
