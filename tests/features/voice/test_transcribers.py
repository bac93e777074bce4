"""What is heard, and what the person is told when nothing can be."""

import sys
from pathlib import Path

import pytest

from features.contracts.errors import UserMustAct
from features.processes import ProcessPolicyOptions, ProcessRunner, ProcessSpawnPolicy, SecretRedactor
from features.voice import CommandOptions, CommandTranscriber, ServiceOptions, ServiceTranscriber
from tests.servers.transcription import serve_transcription


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "voice.ogg"
    path.write_bytes(b"OggS recording")
    return path


async def test_a_service_hears(recording: Path) -> None:
    """The whole file, with its name, the model and the key."""
    async with serve_transcription() as server:
        server.text = " buy milk\n"
        heard = ServiceTranscriber(ServiceOptions(model="whisper-1", api_key=server.api_key, base_url=server.url + "/"))
        assert await heard.transcribe(recording, workspace=recording.parent, owner=True) == "buy milk"
        assert server.recordings == [("whisper-1", "voice.ogg", b"OggS recording")]


@pytest.mark.parametrize(
    ("key", "raw", "words"),
    [
        ("wrong", None, "refused the recording (401: Incorrect API key"),
        ("", (500, b"oops"), "refused the recording (500)"),
        ("", (200, b"not json"), "no transcript"),
        ("", (200, b'{"words": []}'), "no transcript"),
    ],
)
async def test_a_service_that_does_not_hear_says_why(recording: Path, key: str, raw: tuple[int, bytes] | None, words: str) -> None:
    """Without the key."""
    async with serve_transcription() as server:
        server.raw = raw
        options = ServiceOptions(model="whisper-1", api_key=key or server.api_key, base_url=server.url)
        with pytest.raises(UserMustAct) as raised:
            await ServiceTranscriber(options).transcribe(recording, workspace=recording.parent, owner=True)

    assert words in str(raised.value)
    assert server.api_key not in f"{raised.value} {options!r}"


async def test_a_service_that_is_away_says_so(recording: Path) -> None:
    """The recording stays."""
    options = ServiceOptions(model="whisper-1", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(UserMustAct, match="cannot be reached"):
        await ServiceTranscriber(options).transcribe(recording, workspace=recording.parent, owner=True)


def transcriber(*command: str) -> CommandTranscriber:
    redactor = SecretRedactor()
    return CommandTranscriber(
        CommandOptions(command=command),
        ProcessRunner(ProcessSpawnPolicy(ProcessPolicyOptions(), redactor=redactor, environ={"PATH": "/usr/bin:/bin"}), redactor),
    )


async def test_a_command_hears(recording: Path) -> None:
    """In the workspace; the file comes last, or where it is asked for."""
    script = "import os, sys; print(os.getcwd(), *sys.argv[1:])"
    at_the_end = await transcriber(sys.executable, "-c", script, "--fast").transcribe(recording, workspace=recording.parent, owner=True)
    in_between = await transcriber(sys.executable, "-c", script, "{file}", "-q").transcribe(
        recording, workspace=recording.parent, owner=True
    )

    assert at_the_end == f"{recording.parent} --fast {recording}"
    assert in_between == f"{recording.parent} {recording} -q"


async def test_a_command_that_fails_says_why(recording: Path) -> None:
    """With the end of what it wrote."""
    with pytest.raises(UserMustAct, match="status 3: no such codec"):
        await transcriber(sys.executable, "-c", "import sys; print('no such codec'); sys.exit(3)").transcribe(
            recording, workspace=recording.parent, owner=True
        )
    with pytest.raises(UserMustAct, match="cannot be started"):
        await transcriber("/no/such/program").transcribe(recording, workspace=recording.parent, owner=True)


async def test_a_flood_of_words_is_cut(recording: Path) -> None:
    """Memory is bounded, and the command still ends."""
    flood = await transcriber(sys.executable, "-c", "print('x' * 3_000_000)").transcribe(recording, workspace=recording.parent, owner=True)

    assert len(flood) == 100_000
