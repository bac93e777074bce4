"""The entry type of the slice."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from features.contracts.chat import Address, ChatCommand
from features.contracts.clock import Clock
from features.contracts.database import Database
from features.contracts.errors import UserMustAct
from features.contracts.sessions import TransactionWork
from features.skills.consents import Consents, Decision
from features.skills.discovery import Discovery, Found
from features.skills.records import Kind, Problem, Skill, Template
from features.skills.skill_shelf import Item, SkillShelf

__all__ = ["PlaceSkills", "SkillCatalog"]

T = TypeVar("T", bound=Skill | Template)
_MOST_IN_MENU = 40


class SkillCatalog:
    """Serves every place of a host. What stands in the host's folder may be used everywhere; what stands in a place's folder, where its
    agent can write, may be used there alone and after somebody's consent to that very content.

    Args:
        host_folder: holds ``skills/`` and ``prompts/`` of the whole host.
        folder: the workspace of a place, made if need be; it may hold folders of these names too.
        taken: names of commands, which no template and no skill can have.
    """

    def __init__(
        self, database: Database, clock: Clock, *, host_folder: Path, folder: Callable[[Address], Path], taken: Collection[str] = ()
    ) -> None:
        self._consents = Consents(database, clock)
        self._host_folder = host_folder
        self._folder = folder
        self._taken = frozenset(taken)
        self._discovery = Discovery()
        self._brought: dict[str, tuple[tuple[Path, ...], tuple[Path, ...]]] = {}
        self._looking = asyncio.Lock()

    async def readable(self) -> tuple[Path, ...]:
        """What every place's tools have to reach, to read: the host's skills, and where links in their folder lead."""
        skills = self._host_folder / "skills"
        found = await self._found(self._host_folder, "host")
        linked = {skill.file.resolve().parent for skill in found.skills}
        return (skills, *sorted(folder for folder in linked if not folder.is_relative_to(skills.resolve())))

    def place(self, place: Address) -> "PlaceSkills":
        """The view of one place."""
        return PlaceSkills(self, place)

    def bring(self, place: Address, skills: Sequence[Path], templates: Sequence[Path]) -> None:
        """Look in these folders and files too, after the place's own and the host's; they stand for those that were brought before."""
        self._brought[str(place.place)] = tuple(skills), tuple(templates)

    async def menu(self) -> list[ChatCommand]:
        """The host's templates and skills, as far as a platform's menu can show them."""
        found = await self._found(self._host_folder, "host")
        commands: dict[str, ChatCommand] = {}
        items: list[Item] = [*found.templates, *found.skills]
        for item in items:
            name = item.name.lower().replace("-", "_")
            if name.isascii() and name.isidentifier() and name[0] != "_" and len(name) <= 32 and name not in self._taken:
                commands.setdefault(name, ChatCommand(name=name, description=" ".join(item.description.split())[:256]))
        return list(commands.values())[:_MOST_IN_MENU]

    async def look(self, place: Address) -> SkillShelf:
        """What the place can use now."""
        host, own = await self._hosts(place), await self._own(place)
        decisions = await self._consents.of(str(place)) if own.skills or own.templates else {}
        problems = [*own.problems, *host.problems, *self._taken_names((*own.templates, *host.templates))]
        skills, waiting_skills, refused_skills = _shelved(own.skills, host.skills, decisions, problems)
        templates, waiting_templates, refused_templates = _shelved(own.templates, host.templates, decisions, problems)
        return SkillShelf(
            skills=tuple(skills),
            templates=tuple(item for item in templates if item.name not in self._taken),
            waiting=(*waiting_skills, *waiting_templates),
            refused=(*refused_skills, *refused_templates),
            problems=tuple(problems),
        )

    async def decide(self, place: Address, kind: Kind, name: str, key: str, *, allow: bool, by: str) -> Item:
        """Consent to something in the place's folder, or not; it holds until its content changes.

        Args:
            key: the beginning of the digest of what the person was shown.

        Raises:
            UserMustAct: it is not there, or has changed since.
        """
        own = await self._own(place)
        items: Sequence[Item] = own.skills if kind == "skill" else own.templates
        item = next((item for item in items if item.name == name), None)
        if item is None:
            raise UserMustAct(f"There is no {kind} {name[:80]!r} in this chat's folder. `/skills` lists what there is.")
        if not key or not item.digest.startswith(key):
            raise UserMustAct(f"The {kind} {name[:80]!r} has changed since you were asked. Look at it again with `/skills`.")
        await self._consents.decide(str(place), kind, name, item.digest, "allowed" if allow else "refused", by=by)
        return item

    async def questions(self, place: Address) -> list[Item]:
        """What waits for a word and was not asked about yet; from now on it counts as asked about."""
        shelf = await self.look(place)
        return [item for item in shelf.waiting if await self._consents.claim_question(str(place), item.kind, item.name, item.digest)]

    def move_place(self, old: Address, new: Address) -> TransactionWork:
        return self._consents.move(str(old.place), str(new.place))

    def place_moved(self, old: Address, new: Address) -> None:
        if (brought := self._brought.pop(str(old.place), None)) is not None:
            self._brought[str(new.place)] = brought

    async def _hosts(self, place: Address) -> Found:
        """The host's, and behind them what extensions bring."""
        host = await self._found(self._host_folder, "host")
        skills, templates = self._brought.get(str(place.place), ((), ()))
        if not skills and not templates:
            return host
        async with self._looking:
            brought = await asyncio.to_thread(self._discovery.look_at, skills, templates)
        known_skills, known_templates = {skill.name for skill in host.skills}, {template.name for template in host.templates}
        return Found(
            skills=(*host.skills, *(skill for skill in brought.skills if skill.name not in known_skills)),
            templates=(*host.templates, *(template for template in brought.templates if template.name not in known_templates)),
            problems=(*host.problems, *brought.problems),
        )

    async def _own(self, place: Address) -> Found:
        return await self._found(await asyncio.to_thread(self._folder, place.place), "place")

    async def _found(self, folder: Path, origin: Literal["host", "place"]) -> Found:
        if not (folder / "skills").exists() and not (folder / "prompts").exists():
            return Found()
        async with self._looking:
            return await asyncio.to_thread(self._discovery.look, folder, origin=origin)

    def _taken_names(self, templates: Sequence[Template]) -> list[Problem]:
        return [
            Problem(
                path=f"prompts/{template.file.name}",
                text=f"/{template.name} is a command of the host; rename the file",
                origin=template.origin,
                fatal=True,
            )
            for template in templates
            if template.name in self._taken
        ]


class PlaceSkills:
    """The catalogue as the sessions of one place see it."""

    def __init__(self, catalog: SkillCatalog, place: Address) -> None:
        self._catalog = catalog
        self._place = place.place

    async def look(self) -> SkillShelf:
        return await self._catalog.look(self._place)

    def bring(self, skills: Sequence[Path], templates: Sequence[Path]) -> None:
        """Let extensions of a session add folders and files."""
        self._catalog.bring(self._place, skills, templates)


def _shelved(
    own: Sequence[T], host: Sequence[T], decisions: Mapping[tuple[Kind, str], Decision], problems: list[Problem]
) -> tuple[list[T], list[T], list[T]]:
    """What may be used, what waits for a word, and what was refused. A place's own goes before the host's of that name."""
    allowed: list[T] = []
    waiting: list[T] = []
    refused: list[T] = []
    for item in own:
        decision = decisions.get((item.kind, item.name))
        choice = decision.choice if decision is not None and decision.digest == item.digest else "asked"
        (allowed if choice == "allowed" else refused if choice == "refused" else waiting).append(item)
    names = {item.name for item in allowed}
    for item in host:
        if item.name in names:
            text = f'name "{item.name}" collision: this chat has its own'
            problems.append(Problem(path=item.file.name, text=text, origin="host", fatal=False))
        else:
            allowed.append(item)
    return allowed, waiting, refused
