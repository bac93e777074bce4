"""Models and the services that run them.

Owns providers, the catalogue (windows, prices, abilities), keys and making a transcript legal before it is sent.
A provider never raises: what fails is the last event of its stream, with who is at fault.
SDKs and the price list are imported when they are first needed; nothing is fetched but answers.
"""

from features.models.config import ModelOverride, ProviderConfig
from features.models.registry import ModelRegistry

__all__ = ["ModelOverride", "ModelRegistry", "ProviderConfig"]
