"""Names that say that what they name is a secret: of Connect's settings, of record headers, and of unknown
fields.

A name is taken for secret too often rather than once too seldom.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kdissect.wording import REDACTED

__all__ = ["REDACTED", "says_secret", "tells_of_secrets"]
_WORDS = (
    *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "token", "credential", "hmac", "salt"),
    *("jaas", "authorization", "cookie", "bearer", "userinfo", "signature"),
    *("apikey", "accesskey", "privatekey", "sessionkey", "accountkey", "secretkey", "sharedkey", "sslkey"),
    *("encryptionkey", "masterkey", "signingkey", "keytab"),
)
"""What is in a name of a secret, once case and punctuation are gone."""
_ANY = re.compile("|".join(_WORDS))
_OTHER = re.compile(r"[\W_]+")
_IN_BYTES = re.compile("|".join(r"[\W_]?".join(word) for word in _WORDS).encode(), re.IGNORECASE)


@lru_cache(maxsize=4096)
def says_secret(name: str) -> bool:
    """Whether a name means a secret value: ``ssl.key.password``, ``X-Api-Key``, ``saltedPassword``."""
    return _ANY.search(_OTHER.sub("", name).lower()) is not None


def tells_of_secrets(data: bytes) -> bool:
    """Whether such a name is anywhere in unknown bytes."""
    return _IN_BYTES.search(data) is not None
