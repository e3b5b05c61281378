"""Live updates: changes of state and log lines, sent to those who watch.

`changes` reads the workspaces' streams of names, `tail` and `followed_logs` read logs as they grow, each once
a process for all viewers; a `connection` is one person's stream of events.
"""
