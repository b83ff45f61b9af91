"""Running the processes of a stack."""
