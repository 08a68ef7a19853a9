"""Reports from inside the user's code: of tasks, failed ones included, of foreachBatch functions and UDFs."""
