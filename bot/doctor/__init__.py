"""Looks at everything the host stands on, and says for each thing what is wrong and how to mend it.

Reads with the same validator as ``run``, changes nothing, and never shows a secret.
"""

from bot.doctor.examine import examine
from bot.doctor.finding import Finding

__all__ = ["Finding", "examine"]
