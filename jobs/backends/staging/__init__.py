"""Plans for the code, packages and data that a job file asks for."""
