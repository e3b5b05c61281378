"""Jobs' folders as the web server shows them; `jobs.access.shells.folders` goes there."""
