"""Recordings: printed as lanes, and played to a server to compare what comes out."""
