"""The rules about what is written: small files, rows that are copied, compression that takes long."""
