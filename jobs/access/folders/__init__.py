"""Jobs' folders as the web server shows them; `jobs.access.terminal_gateway.folder_server` goes there."""
