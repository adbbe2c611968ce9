"""Variables of proxies and certificates: named with their value before a model is asked, and by the doctor."""

import re
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from massgen_mcp.config.access.connections import exempt_this_machine, find_proxy
from tests import proxies
from tests.commands import run_command
from tests.harness import COMMAND_MODULE, TempHome, expect_error, home
from tests.proxies import ANSWER, FAR, Double

__all__ = ["home"]
pytestmark = pytest.mark.long
KEY = "sk-a-key-of-this-test-alone"
PASSWORD = "S3cretW0rd-of-the-office-proxy"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
UNSET = dict.fromkeys((*PROXIES, "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), "")
PLAIN, ENCRYPTED = f"http://{FAR}/v1", f"https://{FAR}/v1"


@dataclass
class Place:
    """Servers of this machine that take part in a test."""

    model: Double
    encrypted: Double
    tunnel: Double
    tunnel_with_login: Double
    bad_gateway: Double
    login: Double
    firewall: Double
    portal: Double
    nobody: str
    files: Path

    @property
    def between(self) -> list[Double]:
        """Those that are to see no key."""
        return [self.tunnel, self.tunnel_with_login]

    def asked(self) -> int:
        return sum(double.asked for double in (self.model, self.encrypted))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    files = tmp_path_factory.mktemp("certificates")
    _, served = proxies.write_certificates(files)
    (files / "empty.pem").write_text("")
    (files / "text.pem").write_text("this is no certificate\n")
    (files / "none").mkdir()
    with ExitStack() as stack:
        encrypted = stack.enter_context(proxies.model(served))
        basic = "Basic bWU6UzNjcmV0VzByZC1vZi10aGUtb2ZmaWNlLXByb3h5"
        yield Place(
            stack.enter_context(proxies.model()),
            encrypted,
            stack.enter_context(proxies.tunnel(encrypted.port)),
            stack.enter_context(proxies.tunnel(encrypted.port, basic)),
            stack.enter_context(proxies.page(502)),
            stack.enter_context(proxies.page(407, Proxy_Authenticate='Basic realm="office"')),
            stack.enter_context(proxies.page(403)),
            stack.enter_context(proxies.page(200)),
            f"127.0.0.1:{stack.enter_context(proxies.nobody())}",
            files,
        )


class Case(NamedTuple):
    """What is set, where the model is, and what the command and the doctor say of it. `says` None: it answers; the
    doctor isn't asked where it would say the same again.
    """

    name: str
    url: str
    variables: dict[str, str]
    says: str | None
    doctor: str = ""
    before: bool = True
    """Whether the command refuses before a model is asked."""


def cases(place: Place) -> list[Case]:
    local, files, dead = f"{place.model.url}/v1", place.files, place.nobody
    trusted = {"SSL_CERT_FILE": str(files / "office.pem")}
    through = {"HTTPS_PROXY": place.tunnel.url}
    missing = r"SSL_CERT_FILE=/missing: no such file"
    socks = rf"ALL_PROXY=socks5://{dead}: a SOCKS proxy, which needs the Python package socksio"
    port = r"HTTPS_PROXY=http://proxy:port: the port isn't a number from 0 to 65535"
    with_password = {"HTTPS_PROXY": f"http://me:{PASSWORD}@proxy:port"}
    masked_dead = {"HTTPS_PROXY": f"http://me:{PASSWORD}@{dead}"}
    return [
        Case("a missing file", ENCRYPTED, {"SSL_CERT_FILE": "/missing"}, missing, missing),
        Case("a missing file, and a model of this machine", local, {"SSL_CERT_FILE": "/missing"}, None),
        Case("an empty file", ENCRYPTED, {"SSL_CERT_FILE": f"{files}/empty.pem"}, "no certificate", "empty.pem"),
        Case("a file of text", ENCRYPTED, {"SSL_CERT_FILE": f"{files}/text.pem"}, "no certificate"),
        Case("a directory as a file", ENCRYPTED, {"SSL_CERT_FILE": str(files)}, "not a file"),
        Case("a missing directory", ENCRYPTED, {"SSL_CERT_DIR": "/missing"}, "SSL_CERT_DIR=/missing: no such", "DIR="),
        Case(
            "a directory without any", ENCRYPTED, {"SSL_CERT_DIR": f"{files}/none"}, "openssl rehash", "openssl rehash"
        ),
        Case(
            "requests' bundle",
            ENCRYPTED,
            {"REQUESTS_CA_BUNDLE": "/gone"},
            "REQUESTS_CA_BUNDLE=/gone: no such",
            "=/gone",
        ),
        Case(
            "curl's bundle",
            ENCRYPTED,
            {"CURL_CA_BUNDLE": f"{files}/text.pem"},
            "CURL_CA_BUNDLE=",
            "no certificate",
        ),
        Case("socks", ENCRYPTED, {"ALL_PROXY": f"socks5://{dead}"}, socks, socks),
        Case("socks, in small letters", ENCRYPTED, {"all_proxy": f"socks5://{dead}"}, "all_proxy=socks5"),
        Case("socks, and a local model", local, {"ALL_PROXY": f"socks5://{dead}", "NO_PROXY": "127.0.0.1"}, None),
        Case("socks5h", PLAIN, {"HTTP_PROXY": f"socks5h://{dead}"}, "HTTP_PROXY=socks5h"),
        Case("a port of letters", ENCRYPTED, {"HTTPS_PROXY": "http://proxy:port"}, port, port),
        Case("a port of letters, and a local model", local, {"HTTPS_PROXY": "http://proxy:port"}, None),
        Case("a port too large", ENCRYPTED, {"HTTPS_PROXY": "proxy:99999"}, "the port isn't a number", "proxy:99999"),
        Case("another kind", ENCRYPTED, {"HTTPS_PROXY": "ftp://proxy:21"}, "massgen doesn't support ftp proxies"),
        Case("no host", ENCRYPTED, {"HTTPS_PROXY": "http://:3128"}, "not a proxy address"),
        Case("a blank in it", ENCRYPTED, {"HTTPS_PROXY": "http://my proxy:3128"}, "not a proxy address"),
        Case("a password", ENCRYPTED, with_password, r"HTTPS_PROXY=http://\*\*\*@proxy:port"),
        Case("a dead proxy, and a local model", local, {"HTTP_PROXY": f"http://{dead}"}, None),
        Case(
            "a dead proxy",
            PLAIN,
            {"HTTP_PROXY": f"http://{dead}"},
            f"the proxy set by HTTP_PROXY=http://{dead}",
            "or add",
        ),
        Case("a dead proxy with a password", ENCRYPTED, masked_dead, rf"=http://\*\*\*@{dead}", rf"\*\*\*@{dead}"),
        Case("502, and a local model", local, {"HTTP_PROXY": place.bad_gateway.url}, None),
        Case(
            "502",
            PLAIN,
            {"HTTP_PROXY": place.bad_gateway.url},
            "502 with a web page, possibly from the proxy set by HTTP_PROXY=",
            "502",
            False,
        ),
        Case("502 for a tunnel", ENCRYPTED, {"HTTPS_PROXY": place.bad_gateway.url}, "HTTPS_PROXY=.*502 Bad Gateway"),
        Case("407", PLAIN, {"HTTP_PROXY": place.login.url}, r"HTTP_PROXY=.* requires valid credentials \(407\)", "407"),
        Case(
            "407 for a tunnel",
            ENCRYPTED,
            {"HTTPS_PROXY": place.login.url},
            r"HTTPS_PROXY=.* credentials \(407\)",
            "407",
        ),
        Case("407, and a local model", local, {"HTTP_PROXY": place.login.url}, None),
        Case("407 without a proxy", f"{place.login.url}/v1", {}, "a proxy along the way requires authentication"),
        Case(
            "a firewall's page",
            PLAIN,
            {"HTTP_PROXY": place.firewall.url},
            "403 with a web page, possibly from the proxy set by",
            "403",
            False,
        ),
        Case(
            "a firewall's page without a proxy",
            f"{place.firewall.url}/v1",
            {},
            "possibly from a firewall or the network's login portal",
            "no proxy",
            False,
        ),
        Case(
            "a page in place of JSON",
            PLAIN,
            {"HTTP_PROXY": place.portal.url},
            "200 with a web page, possibly from the proxy",
            "200",
            False,
        ),
        Case("a proxy that works", PLAIN, {"HTTP_PROXY": place.model.url}, None),
        Case("without a scheme", PLAIN, {"http_proxy": f"127.0.0.1:{place.model.port}"}, None),
        Case("a tunnel, and the office's file", ENCRYPTED, {**through, **trusted}, None, "answers through the proxy"),
        Case(
            "a tunnel, and requests' bundle",
            ENCRYPTED,
            {**through, "REQUESTS_CA_BUNDLE": f"{files}/office.pem"},
            None,
            "answers",
        ),
        Case(
            "an unknown certificate",
            ENCRYPTED,
            through,
            "this machine doesn't trust.*set SSL_CERT_FILE to a PEM file",
            "this machine doesn't trust",
        ),
        Case(
            "the right login",
            ENCRYPTED,
            {"HTTPS_PROXY": f"http://me:{PASSWORD}@127.0.0.1:{place.tunnel_with_login.port}", **trusted},
            None,
            r"HTTPS_PROXY=http://\*\*\*@127",
        ),
        Case(
            "past a dead proxy",
            f"http://localhost:{place.model.port}/v1",
            {"HTTP_PROXY": f"http://{dead}", "NO_PROXY": "elsewhere.example"},
            None,
            "not used for requests to this machine",
        ),
    ]


def test_what_stands_between_us_and_a_model_is_named_before_it_is_asked_and_by_the_doctor(
    home: TempHome, place: Place
) -> None:
    wrong: list[str] = []
    for case in cases(place):
        wrong += [f"{case.name}: {fault}" for fault in faults_of(home, place, case)]
    assert not wrong, "\n".join(wrong)


def faults_of(home: TempHome, place: Place, case: Case) -> Generator[str]:
    team = home.config("team", {"id": "one", "backend": {"type": "chatcompletion", "model": "m"}})
    here = home.with_variables(**{**UNSET, **case.variables}, OPENAI_BASE_URL=case.url, OPENAI_API_KEY=KEY)
    asked = place.asked()
    ended = run_command(here, COMMAND_MODULE, "--automation", "--config", team, "Capital of France?")
    said, calls = " ".join((ended.stdout + ended.stderr).split()), place.asked() - asked
    if case.says is None:
        if ended.returncode != 0 or ANSWER not in said or not calls:
            yield f"no answer: {said[-300:]}"
    elif ended.returncode == 0 or calls or not re.search(case.says, said):
        yield f"asked {calls} times, does not say {case.says}: {said[-600:]}"
    elif case.before and (ended.returncode != 1 or "TEAM:" in said):
        yield f"a run began: {said[-300:]}"
    doctor = run_command(here, COMMAND_MODULE, "doctor").stdout if case.doctor else ""
    found = " ".join(" ".join(re.findall(r"connection: .*(?:\n {6}.*)*", doctor)).split())
    if not re.search(case.doctor, found):
        yield f"the doctor does not say {case.doctor}: {found[-600:]}"
    shown = [text for text in (PASSWORD, "Traceback", "ERROR internal") if text in said + doctor]
    if shown or KEY in str([double.requests for double in place.between]):
        yield f"shows {shown}, or the key of the model went to a tunnel"


async def test_a_client_is_told_of_a_bad_variable_before_anything_starts(home: TempHome) -> None:
    here = home.with_variables(**UNSET | {"HTTPS_PROXY": f"http://me:{PASSWORD}@proxy:port"}, OPENAI_API_KEY=KEY)
    async with here.client() as client:
        code, message = await expect_error(client, "start_run", question="hi", models=["gpt-5"])
    assert (code, here.runs) == ("config_invalid", [])
    assert "HTTPS_PROXY=http://***@proxy:port: the port isn't a number" in message


DIRECT = (
    *(
        "http://127.0.0.1:11434",
        "http://localhost:8000/v1",
        "http://[::1]:1",
        "http://127.9.9.9",
        "http://0.0.0.0:8000",
    ),
    *("https://gpu.localhost/v1", "http://[::ffff:127.0.0.1]:8000"),
)
PRIVATE = ("http://192.168.1.20:8000/v1", "http://10.0.0.5", "http://gpu:8000", "http://gpu.lan", "http://[fd00::5]:1")
EXCLUDED = {
    "example.org": "https://api.example.org",
    ".example.org": "https://api.example.org",
    "*.example.org": "https://api.example.org",
    "api.example.org:8443": "https://api.example.org:8443",
    "other, api.example.org": "https://api.example.org",
    "203.0.113.0/24": "https://203.0.113.7",
    "2001:db8::/32": "https://[2001:db8::7]",
    "https://api.example.org": "https://api.example.org",
    "*": "https://api.example.org",
}
NOT_EXCLUDED = {
    "example.org": "https://notexample.org",
    "api.example.org:8443": "https://api.example.org",
    "203.0.113.0/24": "https://203.0.114.7",
    "http://api.example.org": "https://api.example.org",
    "": "https://api.example.org",
}


def test_servers_of_this_machine_private_model_servers_and_what_no_proxy_names_are_asked_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**UNSET, "ALL_PROXY": "http://office:3128"}.items():
        monkeypatch.setenv(name, value)
    assert [url for url in DIRECT if find_proxy(url) is not None] == []
    assert [url for url in PRIVATE if find_proxy(url, own_server=True) is not None] == []
    assert [str(find_proxy(url)) for url in PRIVATE] == ["ALL_PROXY=http://office:3128"] * len(PRIVATE)
    assert find_proxy("https://models.example.org", own_server=True) is not None
    for listed, url in EXCLUDED.items():
        monkeypatch.setenv("NO_PROXY", listed)
        assert find_proxy(url) is None, listed
    for listed, url in NOT_EXCLUDED.items():
        monkeypatch.setenv("NO_PROXY", listed)
        assert find_proxy(url) is not None, listed


def test_programs_that_get_the_proxies_ask_this_machine_without_them() -> None:
    variables = exempt_this_machine({"HTTPS_PROXY": "http://office:3128", "NO_PROXY": "example.org"})
    assert variables["NO_PROXY"] == variables["no_proxy"] == "example.org,localhost,127.0.0.1,::1"
    assert exempt_this_machine({"PATH": "/bin"}) == {}
