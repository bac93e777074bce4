"""The examples for authors, as their users have them."""
