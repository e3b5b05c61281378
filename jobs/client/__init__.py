"""`job-console run` and its kin: the console from a terminal, over its own API.

Nothing here needs a database, settings or Django, but for its sentences; what goes over the wire is HTTP.
"""
