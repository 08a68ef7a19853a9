"""What each kind of catalog does for a transaction: tables of files, of Hive, of JDBC, and native ones."""
