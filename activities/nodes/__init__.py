"""Running one node: binding its arguments, its handler, its attempts, its
reply, groups of nodes.
"""
