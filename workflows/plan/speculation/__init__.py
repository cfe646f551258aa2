"""Which calls a run makes early, and when what they gave may be used. It only reads
the scheduler's state.
"""
