"""The load tester: scripted users, an oracle, percentiles, thresholds, a report.

`command` runs it; `scenario` and `steps` are the format; `oracle` says what was wrong.
It sees raw frames: the client that mends faults is not in between.
"""
