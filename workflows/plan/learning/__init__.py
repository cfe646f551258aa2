"""What earlier runs teach: their calls in order, which outputs were used,
and the patterns in that.
"""
