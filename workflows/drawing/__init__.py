"""Pictures of plans and runs as SVG: compact, without styles or scripts,
for light and dark pages.
"""
