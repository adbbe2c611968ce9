"""What the tests of the Python API share."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api import double
from tests.api.blocks import Place, restored_environment
from tests.wire_double import Aimock

NO_SUCH_PLACE = "no-such-config-home"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty working directory and an environment without anybody's keys and configs."""
    with restored_environment():
        import os

        for name in [name for name in os.environ if name.startswith("MASSGEN_") or name.endswith(("_API_KEY", "_URL"))]:
            del os.environ[name]
        os.environ["MASSGEN_CONFIG_HOME"] = str(tmp_path / NO_SUCH_PLACE)
        os.environ["MASSGEN_MCP_HOME"] = str(tmp_path / "home")
        work = tmp_path / "work"
        work.mkdir()
        monkeypatch.chdir(work)
        yield Place(work)


@pytest.fixture
def models(place: Place, aimock: Aimock) -> Aimock:
    """Every provider's models, played by the double; their keys and addresses are in the environment."""
    import os

    del place
    double.load(aimock)
    os.environ.update(double.environment(aimock.url))
    return aimock


@pytest.fixture(scope="session")
def litellm() -> Any:
    """LiteLLM, imported once: it takes seconds, warns about itself, and would fetch prices from the network."""
    import os

    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    litellm.suppress_debug_info = True
    return litellm
