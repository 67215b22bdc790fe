"""Bytes in and out: the native WebSocket transport and plain HTTP."""
