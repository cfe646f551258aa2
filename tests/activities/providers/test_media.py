"""Images, PDFs and recordings as both wire formats send them, and what becomes of a model that takes none."""

import base64

import pytest
from doubles.model_bench import Bench
from doubles.pictures import MP3, PDF, PNG, WAV

from sennit.activities.providers.errors import CallRefused, MediaRefused
from sennit.activities.providers.media import lacks, part_of, refused_media
from sennit.activities.providers.model import MediaPart, ModelRequest
from sennit.activities.toolbox.media import type_of
from sennit.testing.model_rules import Reply
from sennit.workflows.plan.language.media import Media


def part(body: bytes, name: str = "") -> MediaPart:
    """Return media as a request has it."""
    content_type = type_of(body)
    assert content_type is not None
    about = Media(media=content_type, artifact="a" * 40, bytes=len(body), name=name)
    return part_of(about, base64.b64encode(body).decode())


@pytest.mark.parametrize("bench", ["openai"], indirect=True)
async def test_chat_completions_have_parts(bench: Bench) -> None:
    bench.server.on("Look", "I see.")
    reply = await bench.ask("Look", media=(part(PNG), part(PDF, "bill.pdf"), part(WAV), part(MP3)))
    assert reply.output == "I see."
    text, image, pdf, wav, mp3 = bench.sent["messages"][-1]["content"]
    assert text == {"type": "text", "text": "Look"}
    assert image["type"] == "image_url"
    kind, data = image["image_url"]["url"].split(";base64,")
    assert kind == "data:image/png"
    assert base64.b64decode(data) == PNG
    assert pdf["type"] == "file"
    assert pdf["file"]["filename"] == "bill.pdf"
    assert pdf["file"]["file_data"].startswith("data:application/pdf;base64,")
    assert [each["type"] for each in (wav, mp3)] == ["input_audio"] * 2
    assert [each["input_audio"]["format"] for each in (wav, mp3)] == ["wav", "mp3"]
    assert base64.b64decode(wav["input_audio"]["data"]) == WAV


@pytest.mark.parametrize("bench", ["anthropic"], indirect=True)
async def test_messages_have_blocks_before_the_prompt(bench: Bench) -> None:
    bench.server.on("Look", "I see.")
    await bench.ask("Look", media=(part(PNG), part(PDF, "bill.pdf")))
    image, document, text = bench.sent["messages"][-1]["content"]
    assert image == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()},
    }
    assert document["type"] == "document"
    assert document["title"] == "bill.pdf"
    assert document["source"]["media_type"] == "application/pdf"
    assert text["text"] == "Look"


@pytest.mark.parametrize(
    ("said", "is_of_media"),
    [
        ("This model does not support image input", True),
        ("Invalid content type. image_url is only supported by certain models.", True),
        ("Failed to deserialize: messages[0]: unknown variant `image_url`, expected `text`", True),
        ("At most 0 image(s) may be provided in one prompt.", True),
        ("image input is not supported - hint: you may need to provide the mmproj", True),
        ("test-model is not a multimodal model", True),
        ("Could not process image", False),
        ("messages.0.content.0.image.source.base64: image exceeds 5 MB maximum", False),
    ],
)
async def test_what_servers_say_of_media(bench: Bench, said: str, *, is_of_media: bool) -> None:
    bench.server.on("Look", Reply(status=400, text=said))
    with pytest.raises(MediaRefused if is_of_media else CallRefused, match=r"refuses|takes no image") as caught:
        await bench.ask("Look", media=(part(PNG),))
    assert not caught.value.retryable
    if is_of_media:
        assert f"{bench.format}:test-model takes no image: " in str(caught.value)


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ("this model does not support image input", ("image",)),
        ("audio input modality is not enabled, unsupported for this model", ("audio",)),
        ("test-model is not a multimodal model", ("image", "audio")),
        ("failed to deserialize: messages[0]: unknown variant `image_url`, expected `text`", ("image",)),
        ("at most 0 image(s) may be provided in one prompt.", ("image",)),
        ("you uploaded an unsupported image. please make sure that it is valid", ()),
        ("the model takes a png: use one of the supported image formats", ()),
        ("the media type image/tiff is not supported by this model", ()),
    ],
)
def test_only_the_kinds_that_a_server_names_of_its_model_are_remembered(said: str, kinds: tuple[str, ...]) -> None:
    request = ModelRequest(
        role="worker", model="openai:x", goal="g", prompt="p", template="p", media=(part(PNG), part(MP3))
    )
    refused = refused_media(request, said, said)
    assert refused is not None
    assert refused.kinds == kinds


async def test_a_call_without_media_is_refused_as_before(bench: Bench) -> None:
    bench.server.on("Look", Reply(status=400, text="This model does not support image input"))
    with pytest.raises(CallRefused):
        await bench.ask("Look")


async def test_an_image_is_not_counted_as_its_base64(bench: Bench) -> None:
    class Booked:
        sent = 0

        async def begin(self, sent, most):  # type: ignore[no-untyped-def]
            self.sent = sent.input_tokens

        def room(self, sent, wanted):  # type: ignore[no-untyped-def]
            return None

        def end(self, used):  # type: ignore[no-untyped-def]
            pass

    bench.server.on("Look", "I see.")
    account = Booked()
    await bench.ask("Look", media=(part(PNG + bytes(3_000_000)),), account=account)
    assert 1_600 < account.sent < 2_000, "its base64 would have a million"


def test_models_that_read_text_alone() -> None:
    assert lacks("offline", "image")
    assert lacks("openai:gpt-3.5-turbo", "image")
    assert lacks("openai:deepseek-chat", "PDF")
    assert lacks("openai:deepseek-reasoner", "image")
    assert not lacks("openai:deepseek-v4-flash", "image"), "some of the newer ones read images"
    assert lacks("anthropic:claude-sonnet-4-5", "audio")
    assert not lacks("anthropic:claude-sonnet-4-5", "PDF")
    assert not lacks("openai:gpt-4o", "image")
    assert not lacks("openai:gpt-4-turbo", "image")
