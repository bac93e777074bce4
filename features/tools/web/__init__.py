"""Reading pages of the public web, and of nothing else that this machine can reach."""
