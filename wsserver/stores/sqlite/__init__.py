"""The store in one SQLite file: rows there, and text in files beside it first."""
