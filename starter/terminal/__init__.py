"""What a person sees in a terminal: progress, pictures, questions, the answer."""
