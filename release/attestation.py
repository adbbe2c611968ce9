"""Statements about files, signed and verified: that they are, byte for byte, what was built.

The form is the one of a publish attestation on PyPI: an in-toto statement in a DSSE envelope. There the key belongs to
the workflow's identity for ten minutes, and its certificate is in a public log. Here it is made for one check and
forgotten, so that signing and verifying can be tried without a network.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://docs.pypi.org/attestations/publish/v1"


def attest(files: Sequence[Path], key: Ed25519PrivateKey) -> str:
    """A signed statement of the files' SHA-256 digests, as JSON."""
    subject = [{"name": file.name, "digest": {"sha256": _digest(file)}} for file in files]
    statement = {"_type": STATEMENT, "subject": subject, "predicateType": PREDICATE, "predicate": None}
    payload = json.dumps(statement).encode()
    signature = base64.b64encode(key.sign(_signed(payload))).decode()
    envelope = {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"sig": signature}],
    }
    return json.dumps(envelope, indent=2)


def fault(file: Path, attestation: str, key: Ed25519PublicKey) -> str | None:
    """Why `attestation` does not prove that this file is what was built; None: it does, signed with `key`."""
    envelope = json.loads(attestation)
    payload = base64.b64decode(envelope["payload"])
    try:
        key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), _signed(payload))
    except InvalidSignature:
        return "the signature is not of this key"
    statement = json.loads(payload)
    if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
        return "it is another kind of statement"
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    if file.name not in digests:
        return f"it says nothing of {file.name}"
    return None if digests[file.name] == _digest(file) else f"{file.name} is not the file that was built"


def _signed(payload: bytes) -> bytes:
    """The bytes that are signed: the payload with its type and both lengths before it."""
    return b" ".join([b"DSSEv1", str(len(PAYLOAD)).encode(), PAYLOAD.encode(), str(len(payload)).encode(), payload])


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
