"""What strangers and owners are told."""

import re

from features.contracts.chat import InboundMessage, Person

__all__ = [
    "ADMINS_STAY_ANONYMOUS",
    "asks_to_pair",
    "called",
    "group_wrote",
    "here_by_pairing",
    "not_admitted",
    "pairing_reply",
    "plain_name",
    "stranger_wrote",
]

_LONGEST_NAME = 40
_PAIR = re.compile(r"\s*[/!](pair|start)(@\w+)?(\s.*)?", re.IGNORECASE | re.DOTALL)

ADMINS_STAY_ANONYMOUS = (
    "I cannot answer anonymous admins or channels. Write as yourself: switch off *Remain anonymous* in the group's admin rights."
)


def asks_to_pair(message: InboundMessage, *names: str) -> bool:
    """Whether a message is one of these commands: ``pair``, ``start``."""
    found = _PAIR.fullmatch(message.text)
    return message.kind == "message" and found is not None and found[1].lower() in names


def plain_name(person: Person) -> str:
    """The name without anything that could act as markup, as a mention or as a link: it is the stranger's own choice."""
    kept = "".join(letter if letter.isalnum() or letter in " -" else " " for letter in person.name)
    return " ".join(kept.split())[:_LONGEST_NAME].strip()


def called(person: Person) -> str:
    """A person for people."""
    name = plain_name(person)
    return f"{name} (`{person.id}`)" if name else f"`{person.id}`"


def pairing_reply(code: str, *, owner_known: bool) -> str:
    """One code and the one command to type."""
    if owner_known:
        return f"I do not know you yet. Ask my owner to send me this; it is good for an hour:\n\n`/pair {code}`"
    return f"I do not know you yet. To let you in, run this on the machine that I run on, within an hour:\n\n`pumice pair approve {code}`"


def not_admitted(person: Person) -> str:
    return f"This is a private bot and you are not on its list. Its owner can add you; your id is `{person.id}`."


def stranger_wrote(person: Person, *, pairing: bool) -> str:
    """To owners, once for each stranger."""
    what = "They hold a code: if you know them, ask for it and send me `/pair CODE`." if pairing else "I did not let them in."
    return f"Somebody new wrote to me: {called(person)}. {what}"


def group_wrote(person: Person, place: str) -> str:
    return f"{called(person)} spoke to me in a group that is not admitted, `{place}`. Send `/pair` there if I should answer in it."


def here_by_pairing(*, pairing: bool) -> str:
    """To an owner in a group that is not admitted."""
    if pairing:
        return "I do not answer in this group yet. Send `/pair` here and I will."
    return "I do not answer in this group: `access.mode` is `allowlist`, so it has to be added to `access.groups` in pumice.toml."
