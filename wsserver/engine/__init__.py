"""State machines and pure rules: no I/O, no clock, no tasks, no random source.

Everything here takes time and entropy as arguments. The neighbours are
`wsserver.log` (which numbers and keeps what the engine decides) and
`wsserver.turns` (which gives the machines a clock, tasks and a provider).
"""
