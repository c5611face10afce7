"""SQLite, through the standard library's driver: the embedded default."""
