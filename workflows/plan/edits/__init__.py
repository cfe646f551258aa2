"""What is added to a plan while it runs: replans, tool loops."""
