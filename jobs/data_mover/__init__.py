"""What runs as a job's user, in a job's confinement, to bring data there and back.

The files in this folder are laid into jobs as they are: they import each other, the standard library, and
fsspec, and nothing else of the console.
"""
