"""The prompts of each role, with fences around text that nobody vouches for."""
