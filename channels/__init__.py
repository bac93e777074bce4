"""One package per channel: it speaks the platform and knows nothing of agents."""
