"""`JobConsole`: an object of ours inside of other systems' job files, for what those have no words for.

It is spelled in JobSpec's own names, and corrects what the rest of the file says: what stands here
counts.  Members of maps that are null are taken away; a null in a list takes away the element in its
place.  Roles stand under the names that they have in the rest of the file.
"""
