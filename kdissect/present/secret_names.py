"""Names that suggest a secret: of Connect's settings, of record headers, and of unknown fields.

A harmless name counts as a secret rather than a secret as harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache

from kdissect.wording import REDACTED

__all__ = ["REDACTED", "contains_secret_name", "suggests_secret"]
_WORDS = (
    *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "token", "credential", "hmac", "salt"),
    *("jaas", "authorization", "cookie", "bearer", "userinfo", "signature"),
    *("apikey", "accesskey", "privatekey", "sessionkey", "accountkey", "secretkey", "sharedkey", "sslkey"),
    *("encryptionkey", "masterkey", "signingkey", "keytab"),
)
"""Words in names of secrets, without case and punctuation."""
_ANY = re.compile("|".join(_WORDS))
_OTHER = re.compile(r"[\W_]+")


@lru_cache(maxsize=4096)
def suggests_secret(name: str) -> bool:
    """Whether a name suggests a secret: ``ssl.key.password``, ``X-Api-Key``, ``saltedPassword``."""
    return _ANY.search(_OTHER.sub("", name).lower()) is not None


def contains_secret_name(data: bytes) -> bool:
    """Whether unknown bytes contain such a name, with at most one sign between two of its letters."""
    return _in_bytes()(data) is not None


@cache
def _in_bytes() -> Callable[[bytes], object]:
    """The search for any of the names, by RE2: bytes that unpack to a large size must not take long to
    search."""
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.encoding = re2.Options.Encoding.LATIN1  # bytes of any value
    pattern = "|".join(r"[\W_]?".join(word) for word in _WORDS)
    return re2.compile(pattern.encode(), options).search  # type: ignore[no-any-return]
