"""The client's half of the protocol without I/O: `machine`, and the parts of it.

What it tells the application is in `events`.
"""
