"""Files that people send for their jobs: kept once by content, and each person's own.

What lies in the storage is shared: content that two people send lies there once.  What somebody may name is
not: content is there for a person who sent it, and a tree for a person who sent all of it, or who may read a
job that has it.  To everybody else it is as if there were none: nobody learns by asking what others have.
"""
