"""The server's side of SFTP version 3 (draft-ietf-secsh-filexfer-02), twice.

`server`, with OpenSSH's extensions, knows no users and checks no paths: it is run as the person's own process
inside a job, and what that process may see and do is the kernel's to say.  `folder_server` keeps to a job's
folders, for the file pages.  The standard library alone, all of it loaded beforehand.
"""
