"""What a server says of itself: log lines, and metrics for Prometheus.

Other rooms know nothing of it: they log through structlog, and what they count they
tell the `Protocol` that stands with them.
"""
