"""What programs can cost."""
