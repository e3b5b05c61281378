"""Sessions beside a replica: shells, commands and its folders."""
