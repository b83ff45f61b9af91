"""What two or more of Parley's services share, one room per thing."""
