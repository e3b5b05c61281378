"""The far side of the file browser: what lies in a job's folders, listed, read, packed and changed.

Run as the job's user, in the job's own view while it lives.  Whoever asks names a root and the names on the
way below it, never a path: the way is gone from folder to folder by descriptors, through no link and no `..`,
so that nothing that the job does meanwhile leads out.  What is no ordinary file is never opened.

The standard library alone, all of it loaded beforehand, as in `jobs.backends.sftp`.
"""
