import socket
from ipaddress import ip_address

import pytest

from sennit.activities.http import addresses
from sennit.activities.http.addresses import admit, is_blocked
from sennit.activities.toolbox.errors import AddressRefused, FetchFailed


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Answers of the resolver by name; `asked` of it is kept under the empty name."""
    known: dict[str, list[str]] = {"": []}

    async def resolve(host: str, port: int) -> list[str]:
        known[""].append(host)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known[host]

    monkeypatch.setattr(addresses, "resolve", resolve)
    monkeypatch.delenv("SENNIT_HTTP_ALLOW", raising=False)
    return known


BLOCKED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9",
    "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:10.0.0.1", "fe80::1",
    "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "100::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1",
    "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "64:ff9b:1::808:808",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1", "2001:0:7f00:1::", "2001:0:808:808::f5ff:fffe",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "fe80::5efe:8.8.8.8", "2001:10::1", "2001:20::1",
]  # fmt: skip


def test_no_address_that_is_not_public_is_let_through() -> None:
    assert [address for address in BLOCKED if not is_blocked(ip_address(address))] == []


PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1",
    "192.0.1.1", "192.167.1.1", "198.17.1.1", "198.20.0.1", "223.255.255.255", "168.63.129.17",
    "2606:4700:4700::1111", "2a00:1450::1", "64:ff9b::8.8.8.8", "2606:4700::5efe:8.8.8.8",
]  # fmt: skip


def test_public_addresses_are_let_through() -> None:
    assert [address for address in PUBLIC if is_blocked(ip_address(address))] == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/a?b=c#d", "example.com"),
        ("HTTP://EXAMPLE.com:80/", "example.com"),
        ("http://exa_mple.com:8080/", "exa_mple.com"),
        ("https://b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example", "xn--bcher-kva.example"),
        ("https://4.example.com:8443", "4.example.com"),
        ("https://1and1.com:443", "1and1.com"),
    ],
)
async def test_a_public_host_is_admitted_with_its_addresses(url: str, host: str, names: dict[str, list[str]]) -> None:
    names[host] = ["93.184.216.34", "2606:4700::1"]
    admitted = await admit(url)
    assert (admitted.host, admitted.addresses) == (host, ("93.184.216.34", "2606:4700::1"))
    assert "#" not in str(admitted.url)
    assert names[""] == [host]


async def test_a_literal_public_address_is_admitted_without_resolver(names: dict[str, list[str]]) -> None:
    assert (await admit("http://8.8.8.8/")).addresses == ("8.8.8.8",)
    assert (await admit("http://[2606:4700::1]:8080/")).addresses == ("2606:4700::1",)
    assert names[""] == []


async def test_one_private_address_among_public_ones_is_enough_to_refuse(names: dict[str, list[str]]) -> None:
    names["mixed.example"] = ["93.184.216.34", "10.0.0.1"]
    with pytest.raises(AddressRefused, match=r"mixed\.example is not a public address"):
        await admit("http://mixed.example/")


@pytest.mark.parametrize("authority", ["user@", "user:password@", "@"])
async def test_a_url_with_credentials_is_refused(authority: str, names: dict[str, list[str]]) -> None:
    names["public.example"] = ["93.184.216.34"]
    with pytest.raises(AddressRefused, match="carries a user name or password"):
        await admit(f"http://{authority}public.example/")


async def test_a_refusal_does_not_tell_private_addresses(names: dict[str, list[str]]) -> None:
    names["intranet.example"] = ["10.11.12.13"]
    with pytest.raises(AddressRefused) as caught:
        await admit("http://intranet.example/")
    assert "10.11.12.13" not in str(caught.value)


async def test_a_name_that_changes_its_answer_is_asked_once(
    names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])

    async def rebinding(host: str, port: int) -> list[str]:
        return next(answers)

    monkeypatch.setattr(addresses, "resolve", rebinding)
    assert (await admit("http://rebind.example/")).addresses == ("93.184.216.34",)
    assert next(answers) == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("code", "retryable"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)], ids=["unknown", "later"]
)
async def test_a_name_without_address_is_a_failure(code: int, retryable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise socket.gaierror(code, "no such name")

    monkeypatch.setattr(addresses, "resolve", resolve)
    with pytest.raises(FetchFailed, match=r"nowhere\.example cannot be resolved") as caught:
        await admit("http://nowhere.example/")
    assert caught.value.retryable is retryable


@pytest.mark.parametrize("port", [1, 22, 25, 81, 3306, 6379, 9200, 65535])
async def test_ports_of_other_services_are_refused(port: int, names: dict[str, list[str]]) -> None:
    with pytest.raises(AddressRefused, match=f"port {port} is refused"):
        await admit(f"http://example.com:{port}/")


@pytest.mark.parametrize(
    ("allowed", "url", "admitted"),
    [
        ("10.0.0.5", "http://10.0.0.5:9000/", True),
        ("10.0.0.5:9000", "http://10.0.0.5:9000/", True),
        ("10.0.0.5:9000", "http://10.0.0.5:9001/", False),
        ("10.0.0.5:9000", "http://10.0.0.6:9000/", False),
        ("wiki.corp", "https://WIKI.corp/", True),
        (" x.corp , wiki.corp:443 ", "https://wiki.corp/", True),
        ("wiki.corp", "https://evil.wiki.corp/", False),
        ("wiki.corp", "https://wiki.corp.evil.example/", False),
        ("[::1]:8080", "http://[::1]:8080/", True),
        ("::1", "http://[::1]:8081/", True),
        ("", "http://10.0.0.5/", False),
        ("169.254.169.254", "http://169.254.169.254/", False),
        ("169.254.170.23", "http://169.254.170.23/", False),
        ("192.0.0.192", "http://192.0.0.192/", False),
        ("169.254.42.42", "http://169.254.42.42/", False),
        ("[fd00:ec2::23]", "http://[fd00:ec2::23]/", False),
        ("[fd20:ce::254]", "http://[fd20:ce::254]/", False),
        ("meta.corp", "http://meta.corp/", False),
        ("six.corp", "http://six.corp/", False),
    ],
)
async def test_an_operator_can_allow_private_hosts_but_no_metadata_service(
    allowed: str, url: str, admitted: bool, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names |= {"wiki.corp": ["10.0.0.8"], "evil.wiki.corp": ["10.0.0.9"], "wiki.corp.evil.example": ["10.0.0.9"]}
    names |= {"meta.corp": ["169.254.169.254"], "six.corp": ["::ffff:169.254.169.254"]}
    monkeypatch.setenv("SENNIT_HTTP_ALLOW", allowed)
    if admitted:
        assert (await admit(url)).addresses
    else:
        with pytest.raises(AddressRefused):
            await admit(url)


async def test_the_systems_resolver_knows_the_loopback() -> None:
    assert {"127.0.0.1", "::1"} & set(await addresses.resolve("localhost", 80))
