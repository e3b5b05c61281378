"""The ways into running jobs that need a program there: SSH and terminals.  One process of its own.

`house` knows who is inside and asks again and again whether they still may; `ssh` is the SSH gateway, and
`terminals` are shells that outlive a browser's connection; `folders` is the file browser's.  Whatever is run
goes through the backends' `exec`.  What this process has started ends with it; jobs do not notice.
"""
