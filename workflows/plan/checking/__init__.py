"""Everything that must hold of a plan before anything is spent."""
