"""The data mover: fetches and stores data as a job's user, in a job's isolation.

The files in this folder are laid into jobs as they are: they import each other, the standard library, and
fsspec, and nothing else of the console.
"""
