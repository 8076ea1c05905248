"""The display filter: an expression → which exchanges, records and faults are shown.

    chosen = compile_filter('api == Fetch and latency > 50ms')       # kdissect.filter.compiled
    chosen.matches(exchange)

The syntax is Wireshark's (:mod:`~kdissect.filter.syntax`). The names are the columns of the one column table,
their aliases, Kafka's fields by their path, and a few computed ones (:mod:`~kdissect.filter.fields`,
:mod:`~kdissect.filter.paths`).

The rules:

* Names: case and underscores do not count. Enumerated values (APIs, errors, kinds of faults) are written bare
  and in any case. A name that does not exist is an error with its position, never "no match".
* A field may have many values in one exchange. ``==``, ``<``, ``in``, ``contains`` and ``matches`` ask for
  any of them; ``!=`` is Wireshark 4's: the field is there and none of its values equals. ``!==`` is true
  where any value differs, ``===`` where all are equal. ``any`` or ``all`` before a comparison says which is
  meant.
* Brackets choose: elements of an array (``topics[0].partitions[-1]``), a part of text or bytes
  (``record.key[0:4]``), in Wireshark's forms (:mod:`~kdissect.filter.brackets`).
* A value may be another field, of a kind that goes with it: ``request_size > response_size``. After a field
  of text a word means the field of that name only if that is one of kdissect's own or a whole path. A quoted
  word is always text.
* An address without a port stands for all its ports, and ``10.0.0.0/8`` for a network.
* A field that is absent makes every comparison false, ``!=`` too; ``not field == x`` is true then.
* A field alone asks whether it is there; a yes-or-no field whether it is so; an error code whether it is
  not 0.
* Any other word alone is looked for as text, without regard to case, in topics, client id, groups, and
  keys, values and headers of records. Words side by side must all occur.
* ``slow`` needs to know how long exchanges take: :mod:`kdissect.analysis.slow`.
* What is redacted in the output is redacted here: nothing can be learnt of a secret by filtering for it.
* Nothing is evaluated as code; regular expressions run on RE2, in linear time.
"""
