"""What an operator does beside serving: look, check, repair. Only the CLI uses it."""
