"""Schemas, types and tables that are made from the Structs and the catalogue.

Nothing here is needed to speak the protocol. The results are committed, so
that other languages and the server can use them as they are; after a change of
the Structs run `python -m protocol.generate --write`.
"""
