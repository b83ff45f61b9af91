from support.database.postgres import empty_database, postgres

__all__ = ["empty_database", "postgres"]
