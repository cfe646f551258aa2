"""Plan files and the catalogue that they are checked against."""
