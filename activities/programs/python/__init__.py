"""What Python has and Monty lacks, in what Monty has."""
