"""Programs before they run: the check of a script, and the types of what it may call."""
