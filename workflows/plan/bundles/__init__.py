"""A program with the modules that it imports and the programs that it runs, put
together to one script.
"""
