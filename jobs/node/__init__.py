"""What runs beside a replica, with nothing but Python's standard library."""
