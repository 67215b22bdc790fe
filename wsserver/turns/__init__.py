"""Conversations and their turns: the machines of the engine given tasks and time."""
