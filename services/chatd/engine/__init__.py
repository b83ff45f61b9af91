"""What happens over time: workers that run turns, and the live parts they produce."""
