"""Finding skills and templates in the two folders of a place or of the host."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from features.skills.folder_walk import Entry, Folder, LinkFound, TooMuch, open_folder
from features.skills.ignored import Ignored
from features.skills.records import Origin, Problem, Skill, Template
from features.skills.skill_file import Broken, read_skill, read_template

__all__ = ["Discovery", "Found"]

_SKILL_FILE = "SKILL.md"
_LONGEST_FILE = 256 * 1024
_DEEPEST = 6
_MOST_SKILLS = 200
_MOST_FILES = 500
_LARGEST_FOLDER = 20 * 1024 * 1024
_REMEMBERED = 1000

T = TypeVar("T", Skill, Template)
_Item = tuple[Skill | Template, tuple[str, ...]]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of their paths, of those with one name the first alone."""

    skills: tuple[Skill, ...] = ()
    templates: tuple[Template, ...] = ()
    problems: tuple[Problem, ...] = ()


class Discovery:
    """Remembers what it has read, so that what did not change is only looked at. Blocks; for one thread at a time."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], _Item | str] = OrderedDict()

    def look(self, folder: Path, *, origin: Origin) -> Found:
        """All below ``folder/skills`` and in ``folder/prompts``."""
        search = _Search(self._known, origin)
        search.run(folder)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return Found(
            skills=search.distinct(search.skills),
            templates=search.distinct(search.templates),
            problems=tuple(search.problems),
        )

    def look_at(self, skills: Sequence[Path], templates: Sequence[Path]) -> Found:
        """What stands in these folders and files, which are code of this host's own and are followed wherever they lead."""
        search = _Search(self._known, "host")
        for path in skills:
            search.run_skills(path)
        for path in templates:
            search.run_templates(path)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return Found(
            skills=search.distinct(search.skills),
            templates=search.distinct(search.templates),
            problems=tuple(search.problems),
        )


class _Search:
    """One look. A place's own folder can be filled by its agent, so no link in it is followed and what it holds is digested."""

    def __init__(self, known: OrderedDict[tuple[object, ...], _Item | str], origin: Origin) -> None:
        self.skills: list[tuple[str, Skill]] = []
        self.templates: list[tuple[str, Template]] = []
        self.problems: list[Problem] = []
        self._known = known
        self._origin: Origin = origin
        self._follow = origin == "host"
        self._seen: set[tuple[int, int]] = set()

    def run(self, root: Path) -> None:
        for name in ("skills", "prompts"):
            try:
                with open_folder(root / name, follow=self._follow) as folder:
                    if folder is None:
                        continue
                    if name == "skills":
                        self._search_skills(folder, name, Ignored(), depth=0)
                    else:
                        self._search_templates(folder, name)
            except LinkFound:
                self._problem(name, "it is a link, and links are not followed here; put the files themselves there")
            except (OSError, TooMuch) as error:
                self._problem(name, _why(error))

    def run_skills(self, path: Path) -> None:
        """A folder of skills, a skill's own folder, or a file that is one."""
        single = path.name if path.suffix == ".md" and path.name != _SKILL_FILE else None
        self._run_one(path.parent if path.suffix == ".md" else path, str(path), single, templates=False)

    def run_templates(self, path: Path) -> None:
        """A folder of templates, or a file that is one."""
        self._run_one(path.parent if path.suffix == ".md" else path, str(path), path.name if path.suffix == ".md" else None, templates=True)

    def _run_one(self, root: Path, shown: str, single: str | None, *, templates: bool) -> None:
        try:
            with open_folder(root, follow=True) as folder:
                if folder is None:
                    self._problem(shown, "it is not there")
                elif templates:
                    self._search_templates(folder, shown, only=single)
                elif single is not None:
                    entry = next((entry for entry in folder.entries() if entry.name == single), None)
                    self._take_single(folder, shown, entry) if entry is not None else self._problem(shown, "it is not there")
                else:
                    own = any(entry.name == _SKILL_FILE for entry in folder.entries())
                    self._search_skills(folder, shown, Ignored(), depth=1 if own else 0)
        except (OSError, TooMuch, LinkFound) as error:
            self._problem(
                shown, _why(error) if isinstance(error, OSError | TooMuch) else f"{error} is a link, and links are not followed here"
            )

    def distinct(self, found: list[tuple[str, T]]) -> tuple[T, ...]:
        """The first of each name, and a word about the others."""
        first: dict[str, tuple[str, T]] = {}
        for path, item in found:
            if item.name in first:
                self._problem(path, f'name "{item.name}" collision: {first[item.name][0]} has it already')
            else:
                first[item.name] = (path, item)
        return tuple(item for _, item in first.values())

    def _search_skills(self, folder: Folder, path: str, ignored: Ignored, *, depth: int) -> None:
        entries = folder.entries()
        own = next((entry for entry in entries if entry.name == _SKILL_FILE and not entry.is_folder), None)
        if own is not None and depth:
            self._take_skill(folder, path, own)
            return
        ignored = ignored.within(folder, path, entries)
        for entry in entries:
            below = f"{path}/{entry.name}"
            if entry.name.startswith(".") or entry.name == "node_modules" or ignored.leaves_out(below, is_folder=entry.is_folder):
                continue
            if entry.is_link:
                self._problem(below, "it is a link, and links are not followed here; put the files themselves there")
            elif entry.is_folder and depth < _DEEPEST and entry.identity not in self._seen:
                self._seen.add(entry.identity)
                try:
                    with folder.inner(entry.name) as inner:
                        self._search_skills(inner, below, ignored, depth=depth + 1)
                except (OSError, TooMuch) as error:
                    self._problem(below, _why(error))
            elif entry.is_file and not depth and entry.name.endswith(".md"):
                self._take_single(folder, below, entry)

    def _take_skill(self, folder: Folder, path: str, own: Entry) -> None:
        """A folder with a SKILL.md; in a place, all that is in it belongs to what people consent to."""
        file = f"{path}/{_SKILL_FILE}"
        try:
            content = tuple(_content(folder, "", [0])) if self._origin == "place" else ((_SKILL_FILE, own),)
        except LinkFound as link:
            self._problem(file, f"{link} in it is a link, and links are not followed here")
            return

        def read() -> _Item:
            digest, text = _digest(folder, content) if self._origin == "place" else ("", folder.read(_SKILL_FILE, limit=_LONGEST_FILE + 1))
            skill, problems = read_skill(_decoded(text), folder.path / _SKILL_FILE, folder.path.name, origin=self._origin)
            return msgspec.structs.replace(skill, digest=digest, files=tuple(name for name, _ in content)), tuple(problems)

        self._take(file, ("skill", str(folder.path), tuple((name, entry.signature) for name, entry in content)), read)

    def _take_single(self, folder: Folder, path: str, entry: Entry) -> None:
        """A skill that is one file in the folder of all of them."""

        def read() -> _Item:
            data = folder.read(entry.name, limit=_LONGEST_FILE + 1)
            skill, problems = read_skill(_decoded(data), folder.path / entry.name, Path(entry.name).stem, origin=self._origin)
            return msgspec.structs.replace(skill, digest=self._digest_of(data), files=(entry.name,)), tuple(problems)

        self._take(path, ("single", str(folder.path / entry.name), entry.signature), read)

    def _search_templates(self, folder: Folder, path: str, *, only: str | None = None) -> None:
        for entry in folder.entries():
            if only not in (None, entry.name) or entry.name.startswith(".") or not entry.name.endswith(".md") or entry.is_folder:
                continue
            below = f"{path}/{entry.name}"
            if entry.is_link:
                self._problem(below, "it is a link, and links are not followed here; put the file itself there")
                continue

            def read(entry: Entry = entry) -> _Item:
                data = folder.read(entry.name, limit=_LONGEST_FILE + 1)
                template = read_template(_decoded(data), folder.path / entry.name, origin=self._origin)
                return msgspec.structs.replace(template, digest=self._digest_of(data)), ()

            self._take(below, ("template", str(folder.path / entry.name), entry.signature), read)

    def _take(self, path: str, key: tuple[object, ...], read: Callable[[], _Item]) -> None:
        """Read something, unless it is known as it stands; what is wrong with it hurts nothing else."""
        known = self._known.get(key)
        if known is None:
            try:
                known = read()
            except Broken as error:
                known = str(error)
            except OSError as error:
                self._problem(path, _why(error))
                return
            self._known[key] = known
        self._known.move_to_end(key)
        if isinstance(known, str):
            self._problem(path, known)
            return
        item, problems = known
        self.problems += [Problem(path=path, text=text, origin=self._origin, fatal=False) for text in problems]
        if isinstance(item, Template):
            self.templates.append((path, item))
        elif len(self.skills) < _MOST_SKILLS:
            self.skills.append((path, item))
        else:
            self._problem(path, f"there are more than {_MOST_SKILLS} skills; this one is left out")

    def _digest_of(self, data: bytes) -> str:
        return hashlib.sha256(data).hexdigest() if self._origin == "place" else ""

    def _problem(self, path: str, text: str) -> None:
        self.problems.append(Problem(path=path, text=text, origin=self._origin, fatal=True))


def _content(folder: Folder, path: str, count: list[int]) -> Iterator[tuple[str, Entry]]:
    """Every file of a skill, with its path in the skill's folder."""
    for entry in folder.entries():
        below = f"{path}{entry.name}"
        if entry.is_link:
            raise LinkFound(below)
        if entry.is_folder:
            if below.count("/") >= _DEEPEST:
                raise TooMuch(f"{below} is too deep inside; a skill has at most {_DEEPEST} levels")
            with folder.inner(entry.name) as inner:
                yield from _content(inner, f"{below}/", count)
        elif entry.is_file:
            count[0] += 1
            if count[0] > _MOST_FILES:
                raise TooMuch(f"it has more than {_MOST_FILES} files")
            yield below, entry


def _digest(folder: Folder, content: tuple[tuple[str, Entry], ...]) -> tuple[str, bytes]:
    """A digest of paths and contents, and the SKILL.md that went into it: what is shown and what is consented to are the same bytes."""
    if sum(entry.size for _, entry in content) > _LARGEST_FOLDER:
        raise Broken(f"it is larger than {_LARGEST_FOLDER // (1024 * 1024)} MB")
    digest, skill = hashlib.sha256(), b""
    for path, entry in content:
        data = _read_below(folder, path, entry.size + 1)
        digest.update(f"{len(path.encode('utf-8', 'surrogateescape'))} {len(data)}\n".encode())
        digest.update(path.encode("utf-8", "surrogateescape"))
        digest.update(data)
        if path == _SKILL_FILE:
            skill = data
    return digest.hexdigest(), skill


def _read_below(folder: Folder, path: str, limit: int) -> bytes:
    first, slash, rest = path.partition("/")
    if not slash:
        return folder.read(first, limit=limit)
    with folder.inner(first) as inner:
        return _read_below(inner, rest, limit)


def _decoded(data: bytes) -> str:
    if len(data) > _LONGEST_FILE:
        raise Broken(f"it is larger than {_LONGEST_FILE // 1024} KB; move details into files beside it")
    return data.decode("utf-8", "replace").replace("\0", "")


def _why(error: OSError | TooMuch) -> str:
    return f"it cannot be read: {error.strerror or error}" if isinstance(error, OSError) else str(error)
