"""The terminal and SSH gateway, a process of its own.

`open_sessions` checks again and again whether their people still may stay; `ssh` is the SSH gateway,
`terminals` are shells that outlive a browser's connection, and `folder_server` serves the file browser.
Everything is run by the backends' `exec`.  The sessions end with this process; jobs go on.
"""
