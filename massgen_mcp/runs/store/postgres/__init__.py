"""Runs of several machines: rows, events and the queue in PostgreSQL, files in a directory that all of them share.

Imported only where `MASSGEN_MCP_STORE` names such a store; psycopg comes with the extra `cluster`.
"""
