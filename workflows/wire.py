"""How every process of Weft reaches Temporal and writes payloads. Never used by workflow code."""

from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig


class _LeanPayloads(PydanticPayloadConverter):
    """Leaves out fields nobody set: history is paid for by the byte."""

    def __init__(self) -> None:
        super().__init__(ToJsonOptions(exclude_unset=True))


DATA_CONVERTER = DataConverter(payload_converter_class=_LeanPayloads)


async def connect(address: str | None = None, *, identity: str | None = None) -> Client:
    """Connect as the `temporal` command would: flag, TEMPORAL_* variables, profile file, then localhost:7233.

    Raises RuntimeError when the server cannot be reached.
    """
    config = ClientConfig.load_client_connect_config()
    if address:
        config["target_host"] = address
    config.setdefault("target_host", "localhost:7233")
    return await Client.connect(**config, data_converter=DATA_CONVERTER, identity=identity)
