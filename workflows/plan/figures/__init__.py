"""The figures of a run, from the record of its calls. `docs/figures.md` defines each; only
this code works them out.
"""
