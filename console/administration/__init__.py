"""Pages of the admin that are about the whole console: the dashboard, the quota tree, incidents."""
