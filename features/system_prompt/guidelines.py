"""The rules of conduct that go with a set of tools."""

from collections.abc import Sequence

from features.contracts.tools import Tool

__all__ = ["guidelines"]

_SEARCH_TOOLS = frozenset({"grep", "find", "ls"})


def guidelines(tools: Sequence[Tool]) -> list[str]:
    """Rules for these tools, each once, the tools' own after the general ones."""
    names = {tool.spec.name for tool in tools}
    rules = [*_about_files(names)]
    for tool in tools:
        rules.extend(" ".join(rule.split()) for rule in tool.prompt_guidelines)
    rules.append("Say plainly when something failed or you are not sure; never claim work that you did not do.")
    if names:
        rules.append("Name files by their paths when you talk about them.")
    return list(dict.fromkeys(rule for rule in rules if rule))


def _about_files(names: set[str]) -> list[str]:
    rules = []
    if "bash" in names:
        if searching := sorted(names & _SEARCH_TOOLS):
            rules.append(f"Look around with {', '.join(searching)} before you reach for bash; they are faster and skip ignored files.")
        else:
            rules.append("Use bash for looking around, with commands such as ls, find and rg.")
    if {"read", "edit"} <= names:
        rules.append("Read a file with read before you edit it, not with cat or sed.")
    if "edit" in names:
        rules.append("Change files with edit; the old text must match exactly.")
    if "write" in names:
        rules.append("Use write for new files and complete rewrites only.")
    if names & {"edit", "write"}:
        rules.append("Tell in your answer what you changed; do not print files to show it.")
    return rules
