"""Jobs' folders as the web server shows them; the process `shells` goes there (`jobs.access.shells.folders`)."""
