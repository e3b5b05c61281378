"""Pages of the admin that are about the whole house: the day, the quota tree, incidents."""
