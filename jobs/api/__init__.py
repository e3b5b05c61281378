"""The APIs: the console's own, and those that existing clients already speak."""
