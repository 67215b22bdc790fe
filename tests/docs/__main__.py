"""Writes all pages that are made from the code: `python -m tests.docs`."""

from tests.docs import (
    cli_page,
    javascript_client_page,
    load_page,
    metrics_page,
    python_client_page,
    settings_page,
)

for made in (
    cli_page,
    javascript_client_page,
    load_page,
    metrics_page,
    python_client_page,
    settings_page,
):
    made.PAGE.write_text(made.page())
