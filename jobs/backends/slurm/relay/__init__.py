"""Files between nodes and the console where they share no folder."""
