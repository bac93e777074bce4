"""Voice messages as text, by an OpenAI-compatible service or by a command of the operator's."""

from features.voice.command import CommandOptions, CommandTranscriber
from features.voice.service import ServiceOptions, ServiceTranscriber

__all__ = ["CommandOptions", "CommandTranscriber", "ServiceOptions", "ServiceTranscriber"]
