"""Names that say that what they name is a secret: of Connect's settings, of record headers, and of unknown
fields.

A name is taken for secret too often rather than once too seldom.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache

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


@lru_cache(maxsize=4096)
def says_secret(name: str) -> bool:
    """Whether a name means a secret value: ``ssl.key.password``, ``X-Api-Key``, ``saltedPassword``."""
    return _ANY.search(_OTHER.sub("", name).lower()) is not None


def tells_of_secrets(data: bytes) -> bool:
    """Whether such a name is anywhere in unknown bytes, with at most one sign between two of its letters."""
    return _in_bytes()(data) is not None


@cache
def _in_bytes() -> Callable[[bytes], object]:
    """The search for any of the names, by RE2: what unpacks to much must not take long to look through."""
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.encoding = re2.Options.Encoding.LATIN1  # bytes of any value
    pattern = "|".join(r"[\W_]?".join(word) for word in _WORDS)
    return re2.compile(pattern.encode(), options).search  # type: ignore[no-any-return]
