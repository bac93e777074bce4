"""Codes: limited, expiring, locked after wrong tries, typed by owners alone."""

import re

import pytest

from bot.access import Access
from bot.config.chat_sections import AccessSection
from features.contracts.chat import Address
from features.contracts.errors import UserMustAct
from features.contracts.testing import FakeClock
from tests.bot.access.conftest import GROUP, OWNER, STRANGER, Gates, says, says_in_group
from tests.bot.memory_database import MemoryDatabase

HOME = Address("telegram", "66")


async def code_for(access: Access, person: str = STRANGER, text: str = "hello") -> str | None:
    reply = (await access.judge(says(text, by=person))).reply
    found = re.search(r"`(?:/pair|pumice pair approve) (\w+)`", reply or "")
    return found[1] if found else None


async def new_code(access: Access, person: str = STRANGER) -> str:
    code = await code_for(access, person)
    assert code is not None
    return code


async def test_a_stranger_gets_one_code_and_one_command(gates: Gates) -> None:
    """Several codes and several ways are a maze."""
    access = await gates.open()
    first = await access.judge(says())

    assert re.fullmatch(r"I do not know you yet\. .*\n\n`/pair [A-HJKMNP-Z2-9]{8}`", str(first.reply), re.DOTALL)
    assert "Eve (`telegram:66`)" in str(first.tell_owners)
    assert (await access.judge(says())).reply is None


async def test_an_owner_s_word_admits_at_once_and_for_good(gates: Gates) -> None:
    """However the code is typed."""
    access = await gates.open()
    code = await new_code(access)
    said = await access.approve(f" {code[:4].lower()}-{code[4:]} ", OWNER)

    assert said == "Eve (`telegram:66`) may talk to me now."
    for gate in (access, await gates.open()):
        verdict = await gate.judge(says())
        assert (verdict.admitted, verdict.owner) == (True, False)
        assert gate.admits(STRANGER, HOME, False)
        assert gate.attempts() == []


async def test_a_code_is_good_once_and_for_an_hour(gates: Gates, clock: FakeClock) -> None:
    """A code that lies about in a chat must not open the door for ever."""
    access = await gates.open()
    code = await new_code(access)
    await access.approve(code, OWNER)
    with pytest.raises(UserMustAct, match="unknown or has expired"):
        await access.approve(code, OWNER)

    late = await new_code(access, "telegram:67")
    await clock.advance(3600)
    with pytest.raises(UserMustAct, match="unknown or has expired"):
        await access.approve(late, OWNER)
    assert await code_for(access, "telegram:67"), "and then a new one is to be had"


async def test_a_code_survives_a_restart_but_its_text_is_not_stored(gates: Gates, database: MemoryDatabase) -> None:
    """A copy of the database must not admit anybody."""
    access = await gates.open()
    code = await new_code(access)
    rows = await database.read(lambda transaction: transaction.fetch_all("SELECT * FROM access_codes"))
    assert code not in str(rows)

    restarted = await gates.open()
    assert [pending.person for pending in restarted.pending()] == [STRANGER]
    await restarted.approve(code, OWNER)
    assert (await restarted.judge(says())).admitted


async def test_a_lost_code_can_be_asked_for_again_within_limits(gates: Gates, clock: FakeClock) -> None:
    """The reply may not have arrived; three at most, a minute apart."""
    access = await gates.open()
    codes = [await new_code(access)]
    assert await code_for(access, text="/start") is None
    for _ in range(2):
        await clock.advance(60)
        assert await code_for(access, text="hello?") is None
        codes.append(str(await code_for(access, text="/start@pumice_bot")))
    await clock.advance(60)
    assert await code_for(access, text="/start") is None

    await access.approve(codes[0], OWNER)
    with pytest.raises(UserMustAct):
        await access.approve(codes[1], OWNER)


async def test_there_are_fifty_codes_at_most(gates: Gates, clock: FakeClock) -> None:
    """A crowd must not grow the list without end; it clears within the hour."""
    access = await gates.open()
    given = [await code_for(access, f"telegram:{number}") for number in range(100, 170)]
    assert sum(code is not None for code in given) == 50
    assert len(access.pending()) == 50

    await clock.advance(3600)
    assert await code_for(access, "telegram:200")


async def test_only_owners_and_the_operator_can_use_a_code(gates: Gates) -> None:
    """Otherwise strangers would admit each other, or themselves."""
    access = await gates.open(AccessSection(owners=(OWNER,), allow=("telegram:2",)))
    code = await new_code(access)
    for nobody in (STRANGER, "telegram:2", "", "cli2", "web:guest"):
        with pytest.raises(UserMustAct, match="Only owners"):
            await access.approve(code, nobody)
        with pytest.raises(UserMustAct, match="Only owners"):
            await access.admit_group(GROUP, nobody)

    assert not (await access.judge(says())).admitted


async def test_five_wrong_codes_lock_the_door_for_an_hour(gates: Gates, clock: FakeClock) -> None:
    """Also over a restart, and for a right code too; other owners may go on."""
    access = await gates.open(AccessSection(owners=(OWNER, "telegram:3")))
    code = await new_code(access)
    for _ in range(5):
        await clock.advance(60)
        with pytest.raises(UserMustAct, match="unknown"):
            await access.approve("WRONGONE", OWNER)

    for gate in (access, await gates.open(AccessSection(owners=(OWNER, "telegram:3")))):
        with pytest.raises(UserMustAct, match=r"Too many wrong codes\. Try again in 56 min"):
            await gate.approve(code, OWNER)
    assert "may talk" in await access.approve(code, "telegram:3")

    other = await new_code(access, "telegram:67")
    await clock.advance(56 * 60 + 1)
    with pytest.raises(UserMustAct, match="unknown"):
        await access.approve(other + "X", OWNER)


async def test_the_first_one_that_the_operator_admits_is_the_owner(gates: Gates) -> None:
    """A fresh host has nobody who could type in a chat; the command to run is told."""
    access = await gates.open(AccessSection())
    verdict = await access.judge(says())
    assert "run this on the machine" in str(verdict.reply)
    assert "`pumice pair approve " in str(verdict.reply)

    code = str(verdict.reply).rstrip("`").rpartition(" ")[2]
    assert await access.approve(code, "cli") == "Eve (`telegram:66`) may talk to me now and is an owner."
    assert access.is_owner(STRANGER)

    second = await new_code(access, "telegram:67")
    assert await access.approve(second, STRANGER) == "Eve (`telegram:67`) may talk to me now."
    third = await new_code(access, "telegram:68")
    assert not (await access.approve(third, "cli")).endswith("owner.")
    assert [member.owner for member in await access.members()] == [True, False, False]


async def test_the_operator_can_make_further_owners(gates: Gates) -> None:
    """``--owner`` on the command line."""
    access = await gates.open()
    await access.approve(await new_code(access), "cli", owner=True)

    assert access.is_owner(STRANGER)
    assert (await gates.open()).is_owner(STRANGER)


async def test_an_owner_admits_a_group_from_within(gates: Gates) -> None:
    """The one command that is heard there before."""
    access = await gates.open()
    assert not (await access.judge(says_in_group("/pair"))).admitted, "a stranger's"
    verdict = await access.judge(says_in_group("/pair@pumice_bot", by=OWNER))
    assert (verdict.admitted, verdict.owner) == (True, True)
    assert not (await access.judge(says_in_group("/pairs", by=OWNER))).admitted

    assert "everybody in this group may talk" in await access.admit_group(Address("telegram", "-100", "7"), OWNER)
    assert "already" in await access.admit_group(GROUP, OWNER)
    for gate in (access, await gates.open()):
        assert (await gate.judge(says_in_group())).admitted
        assert not (await gate.judge(says(by="telegram:77"))).admitted, "its members are strangers elsewhere"


async def test_a_revocation_holds_from_the_next_message_on(gates: Gates) -> None:
    """And after a restart; codes that are pending go with it."""
    access = await gates.open()
    await access.approve(await new_code(access), OWNER)
    await access.admit_group(GROUP, OWNER)

    assert await access.revoke(STRANGER, OWNER)
    assert await access.revoke(str(GROUP), OWNER)
    assert not await access.revoke(STRANGER, OWNER)
    for gate in (access, await gates.open()):
        assert not gate.admits(STRANGER, HOME, False)
        assert not (await gate.judge(says_in_group())).admitted
        assert await gate.members() == [member for member in await gate.members() if member.source == "configuration"]


async def test_everything_that_is_decided_or_tried_is_on_record(gates: Gates) -> None:
    """Also what was tried to guess a code; a stranger who goes on and on is one record."""
    access = await gates.open()
    code = await new_code(access)
    for _ in range(5):
        await access.judge(says())
        with pytest.raises(UserMustAct):
            await access.approve("AAAAAAAA", OWNER)
    await access.admit_group(GROUP, OWNER)
    await access.revoke(str(GROUP), OWNER)
    records = await (await gates.open()).log()

    assert [record.event for record in reversed(records)] == [
        "refused", "code", *["wrong code"] * 5, "locked out", "admitted", "revoked",
    ]  # fmt: skip
    assert {record.by for record in records} == {"", OWNER}
    assert not any(code in str(record) for record in records)


async def test_the_record_is_bounded(gates: Gates) -> None:
    """A crowd must not fill the disk."""
    access = await gates.open()
    for number in range(3):
        await access.judge(says(by=f"telegram:{100 + number}"))
    last = (await access.log(1))[0]
    await gates.database.write(lambda t: t.execute("UPDATE access_log SET position = 5006 WHERE position = 6"))
    await access.judge(says(by="telegram:999"))

    assert last in await access.log(10_000)
    assert len(await access.log(10_000)) == 3


async def test_a_revocation_holds_even_if_it_cannot_be_stored(gates: Gates, database: MemoryDatabase) -> None:
    """The operator sees the error; the door is shut meanwhile."""
    access = await gates.open()
    await access.approve(await new_code(access), OWNER)
    database.full = OSError("no space left")
    with pytest.raises(OSError, match="no space"):
        await access.revoke(STRANGER, OWNER)

    assert not access.admits(STRANGER, HOME, False)


async def test_an_admission_that_could_not_be_stored_is_none(gates: Gates, database: MemoryDatabase) -> None:
    """Otherwise it would vanish with the next restart."""
    access = await gates.open()
    code = await new_code(access)
    database.full = OSError("no space left")
    with pytest.raises(OSError, match="no space"):
        await access.approve(code, OWNER)
    assert not access.admits(STRANGER, HOME, False)

    database.full = None
    await access.approve(code, OWNER)
    assert access.admits(STRANGER, HOME, False)


async def test_the_configured_cannot_be_revoked_from_here(gates: Gates) -> None:
    """They would be back after a restart; the key is named."""
    access = await gates.open()
    with pytest.raises(UserMustAct, match=r"telegram:1 is admitted by `access.owners` in the configuration"):
        await access.revoke(OWNER, OWNER)


async def test_the_stricter_word_wins(gates: Gates) -> None:
    """Whoever switches to the allow list means the list alone; going back brings the paired back."""
    access = await gates.open()
    await access.approve(await new_code(access), OWNER)
    await access.admit_group(GROUP, OWNER)
    code = await new_code(access, "telegram:67")
    strict = await gates.open(AccessSection(mode="allowlist", owners=(OWNER,)))

    assert not (await strict.judge(says())).admitted
    assert not (await strict.judge(says_in_group("/pair", by=OWNER))).admitted
    for call in (strict.approve(code, OWNER), strict.admit_group(GROUP, OWNER)):
        with pytest.raises(UserMustAct, match="allowlist"):
            await call
    assert [member.in_force for member in await strict.members()] == [True, False, False]
    assert (await (await gates.open()).judge(says())).admitted


async def test_a_group_keeps_its_admission_under_its_new_id(gates: Gates) -> None:
    """Telegram gives an upgraded group another one."""
    access = await gates.open()
    await access.admit_group(GROUP, OWNER)
    upgraded = Address("telegram", "-1009")
    for old, new in ((GROUP, upgraded), (Address("telegram", "-5"), Address("telegram", "-6"))):
        await gates.database.write(access.move_place(old, new))
        access.place_moved(old, new)

    for gate in (access, await gates.open()):
        assert gate.admits(STRANGER, upgraded, True)
        assert not gate.admits(STRANGER, GROUP, True)
        assert not gate.admits(STRANGER, Address("telegram", "-6"), True)
