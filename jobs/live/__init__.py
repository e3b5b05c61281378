"""What moves: changes of state and log lines, on their way to whoever looks.

`changes` hears the workspaces' streams of names, `tail` and `following` read logs as they grow, each of
them once a process however many people watch; a `connection` is one person's stream of events.
"""
