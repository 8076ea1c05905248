"""The display filter: an expression → which exchanges, records and faults are shown.

    chosen = compile_filter('api == Fetch and latency > 50ms')       # kdissect.filter.compiled
    chosen.matches(exchange)

The syntax is Wireshark's (:mod:`~kdissect.filter.syntax`), the names are the columns of the one column
table, their aliases, Kafka's fields by their path, and a few that are computed
(:mod:`~kdissect.filter.fields`, :mod:`~kdissect.filter.paths`).

The rules:

* Names: case and underscores do not count. Enumerated values (APIs, errors, kinds of faults) are written
  bare and in any case; a name that does not exist is an error with its position, never "no match".
* A field may have many values in one exchange. ``==``, ``<``, ``in``, ``contains`` and ``matches`` ask for
  any of them; ``!=`` is Wireshark 4's: the field is there and none of its values equals. ``!==`` is true
  where any value differs, ``===`` where all are equal.
* A field that is absent makes every comparison false, ``!=`` too; ``not field == x`` is true then.
* A field alone asks whether it is there; a yes-or-no field whether it is so; an error code whether it is
  not 0.
* Any other word alone is looked for as text, without regard to case, in topics, client id, groups, and
  keys, values and headers of records. Words side by side must all occur.
* What is redacted in the output is redacted here: nothing can be learnt of a secret by filtering for it.
* Nothing is evaluated as code; regular expressions run on RE2, in linear time.
"""
