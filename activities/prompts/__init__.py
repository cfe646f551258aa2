"""What models are told: the words around a goal, a plan's problems, and the results of nodes."""
