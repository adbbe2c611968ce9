"""The certificates that connections of this program trust, and the variables that name them."""

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from massgen_mcp.errors import BadVariable

if TYPE_CHECKING:
    import ssl

FILE_VARIABLE = "SSL_CERT_FILE"
DIRECTORY_VARIABLE = "SSL_CERT_DIR"
FURTHER_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Other programs' names for such a file: its certificates are trusted besides those of the system."""
_HASHED = re.compile(r"[0-9a-f]{8}\.\d+")


@cache
def trusted() -> "ssl.SSLContext":
    """Return the settings for encrypted connections, one object for the process: loading the system's certificates
    takes 20 ms of CPU and 0.8 MiB. Raises `BadVariable`.
    """
    import ssl  # here: a process that asks no server starts without it

    import httpx2

    named = find_named()
    if named in (FILE_VARIABLE, DIRECTORY_VARIABLE):
        _require_place(named)
    try:
        context = httpx2.create_ssl_context()
        if named in FURTHER_VARIABLES:
            place = _require_place(named)
            if place.is_dir():
                context.load_verify_locations(capath=place)
            else:
                context.load_verify_locations(place)
    except (OSError, ssl.SSLError) as error:
        if named is None:
            raise
        raise _bad(named, _describe(error)) from None
    return context


@cache
def untrusting() -> "ssl.SSLContext":
    """Return settings that trust no certificate, for connections that are not encrypted: loading none takes no time."""
    import ssl  # see `trusted`

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def find_named() -> str | None:
    """Return the variable whose certificates are trusted; None: those of the system alone."""
    names = (FILE_VARIABLE, DIRECTORY_VARIABLE, *FURTHER_VARIABLES)
    return next((name for name in names if os.environ.get(name)), None)


def _require_place(variable: str) -> Path:
    """Return what the variable names. Raises `BadVariable` for what is not there, or has no certificates."""
    value = os.environ[variable]
    if variable == DIRECTORY_VARIABLE:
        directories = [Path(part) for part in value.split(os.pathsep) if part]
        if not any(part.is_dir() for part in directories):
            raise _bad(variable, "no such directory")
        files = [file for part in directories if part.is_dir() for file in part.iterdir()]
        if not any(_HASHED.fullmatch(file.name) for file in files):
            raise _bad(variable, "contains no certificate that OpenSSL can find (`openssl rehash` may fix this)")
        return directories[0]
    place = Path(value)
    if not place.exists():
        raise _bad(variable, "no such file")
    if variable == FILE_VARIABLE and not place.is_file():
        raise _bad(variable, "not a file")
    return place


def _bad(variable: str, what: str) -> BadVariable:
    remedy = "set it to a PEM file of certificates, or unset it"
    if variable == DIRECTORY_VARIABLE:
        remedy = "set it to a directory of certificates, or unset it"
    return BadVariable(variable, os.environ[variable], what, remedy)


def _describe(error: OSError) -> str:
    import ssl  # see `trusted`

    if isinstance(error, ssl.SSLError):
        return "contains no certificate"
    return error.strerror or str(error)
