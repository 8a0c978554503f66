"""What is made of results: run-time distributions."""
