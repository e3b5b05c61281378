"""What a job file asks to be brought, as plans for the node."""
