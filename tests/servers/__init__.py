"""Loopback servers that speak the real wire protocols, strictly."""
