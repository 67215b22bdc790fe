"""wsserver: streams model answers over WebSockets that resume, stop and call tools."""

__version__ = "0.1.0"
