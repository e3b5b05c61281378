"""An authenticated proxy to the HTTP and WebSocket ports of jobs.

Each endpoint has a host name of its own, `<slug>.<CONSOLE_APPS_DOMAIN>`, never the console's: browsers keep
pages of different hosts apart, and cookies ignore ports.  `app` is the ASGI application; `visits` decides who
may pass, `http` and `websocket` carry the bytes, `headers` says which of them cross the line.
`terminals` is the way from the console's own pages to the shells that `jobs.access.terminal_gateway` keeps.
"""
