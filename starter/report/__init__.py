"""The HTML report of a run: one page that needs no network and no server, made
to be shown to others.
"""
