"""Evaluations: cases with what is expected of their answers, each answered by a
durable run, and the figures.
"""
