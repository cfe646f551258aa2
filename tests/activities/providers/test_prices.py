"""The prices that quotes are made with."""

import pytest

from sennit.activities.providers.prices import DEFAULTS, price_list, price_of
from sennit.activities.providers.settings import ModelSettings

USUAL = f"openai:{DEFAULTS['openai']}"


@pytest.mark.parametrize(
    ("env", "worker", "critic"),
    [
        ({}, (0, 0), (0, 0)),
        ({"SENNIT_MODEL": "openai", "OPENAI_API_KEY": "k"}, price_of(USUAL), price_of(USUAL)),
        ({"SENNIT_MODEL_CRITIC": "openai:gpt-5,offline"}, (0, 0), price_of("openai:gpt-5")),
        ({"SENNIT_MODEL": "openai", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, None, None),
    ],
)
def test_each_role_has_the_price_of_its_first_model_where_one_is_known(
    env: dict[str, str], worker: tuple[int, int] | None, critic: tuple[int, int] | None
) -> None:
    prices = price_list(ModelSettings.read(env))
    assert (prices.get("worker"), prices.get("critic")) == (worker, critic)
    assert prices["openai:gpt-5"] == price_of("openai:gpt-5")
