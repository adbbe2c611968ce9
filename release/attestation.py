"""Statements about files, signed and verified: that they are, byte for byte, what was built.

The form is the one of a publish attestation on PyPI: an in-toto statement in a DSSE envelope. There the key belongs to the
workflow's identity for ten minutes and its certificate is in a public log; here it is made for one check and forgotten,
so that signing and verifying can be tried without a network.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, Key

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://docs.pypi.org/attestations/publish/v1"


def attest(files: Sequence[Path], signer: CryptoSigner) -> str:
    """A signed statement of the files' SHA-256 digests, as JSON."""
    subject = [{"name": file.name, "digest": {"sha256": _digest(file)}} for file in files]
    statement = {"_type": STATEMENT, "subject": subject, "predicateType": PREDICATE, "predicate": None}
    envelope = Envelope(json.dumps(statement).encode(), PAYLOAD, {})
    envelope.sign(signer)
    return json.dumps(envelope.to_dict(), indent=2)


def fault(file: Path, attestation: str, key: Key) -> str | None:
    """Why `attestation` does not prove that this file is what was built; None: it does, signed with `key`."""
    envelope = Envelope.from_dict(json.loads(attestation))
    try:
        envelope.verify([key], 1)
    except VerificationError:
        return "the signature is not of this key"
    statement = json.loads(envelope.payload)
    if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
        return "it is another kind of statement"
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    if file.name not in digests:
        return f"it says nothing of {file.name}"
    return None if digests[file.name] == _digest(file) else f"{file.name} is not the file that was built"


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
