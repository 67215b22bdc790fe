"""Looks at what connections carry: records it, shows it, and spoils it on request.

Where nobody inspects nothing of this is loaded, and no frame passes through it.
"""
