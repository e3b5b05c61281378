"""The documentation as the console shows it: its pages, and the reference, which is made from the code."""
