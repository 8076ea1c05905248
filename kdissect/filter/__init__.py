"""The display filter: an expression → which exchanges, records and faults are shown.

    chosen = compile_filter('api == Fetch and latency > 50ms')       # kdissect.filter.compiled
    chosen.matches(exchange)

The syntax is Wireshark's (:mod:`~kdissect.filter.syntax`). The names are the columns of the table of
exchanges, their aliases, Kafka's fields by their path, and a few computed ones
(:mod:`~kdissect.filter.fields`, :mod:`~kdissect.filter.paths`).

The rules:

* Names: case and underscores do not count. Enumerated values (APIs, errors, kinds of faults) are written
  without quotes, in any case. A name that does not exist is an error with its position, never "no match".
* A field may have many values in one exchange. ``==``, ``<``, ``in``, ``contains`` and ``matches`` are true
  if any value matches. ``!=`` is Wireshark 4's: the field is present and none of its values is equal. ``!==``
  is true if any value differs, ``===`` if all are equal. ``any`` or ``all`` before a comparison overrides
  this.
* Brackets select elements of an array (``topics[0].partitions[-1]``) or a part of text or bytes
  (``record.key[0:4]``), in Wireshark's forms (:mod:`~kdissect.filter.brackets`).
* A value may be another field of a comparable kind: ``request_size > response_size``. After a field of text,
  a word means another field only if it is a name of kdissect's own or a whole path. A quoted word is always
  text.
* An address without a port means all its ports, and ``10.0.0.0/8`` means a network.
* If a field is absent, every comparison is false, ``!=`` too; ``not field == x`` is true then.
* A field alone is true if the field is present. A flag alone is true if its value is true, an error code
  alone if it is not 0.
* Any other word alone is searched as text, ignoring case, in topics, client id, groups, and keys, values and
  headers of records. If there are several words, all must occur.
* ``slow`` needs to know how long exchanges take: :mod:`kdissect.analysis.slow`.
* Values that are redacted in the output are redacted here: a filter cannot reveal a secret.
* No part of a filter is evaluated as code; regular expressions run on RE2, in linear time.
"""
