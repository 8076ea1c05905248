"""The text of ``.proto`` files → the messages that read values (Protobuf language, proto2, proto3, editions).

Services, options and extensions are skipped: decoding needs only messages, enums and the types of fields.
Google's own files that are often imported are built in (:mod:`kdissect.payload.proto_known`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kdissect.payload.avro import SchemaError
from kdissect.payload.proto_types import MAP_KEYS, SCALARS, ProtoEnum, ProtoField, ProtoFile, ProtoMessage

LONGEST = 4 << 20
"""The most characters of one file."""
MOST_FILES = 1_000
"""The most files that import each other."""
LONGEST_NAME = 1_000
"""The most characters of a name: it is searched for in every scope around it."""
DEEPEST_MESSAGE = 64
"""The deepest nesting of messages."""

_MOST_WORDS = 64
_ENTRY = "option map_entry = true ;"

_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|(?P<token>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_][\w.]*|\.[A-Za-z_][\w.]*"
    r"|[-+]?(?:\d[\w.]*(?:(?<=[eE])[-+]\d+)?|\.\d\w*)|[-{}\[\]()<>=;,:+/])",
    re.DOTALL,
)


Import = Callable[[str], str | None]
"""Returns the text of an imported file, by its name in the import; None if unknown."""


def parse_proto(text: str, import_of: Import = lambda _: None) -> ProtoFile:
    """Parse a file and all that it imports.

    :raises SchemaError: the text has another form, or a needed type is missing.
    """
    named: dict[str, ProtoMessage | ProtoEnum] = {}
    files: dict[str, _ProtoParser] = {}
    first = _ProtoParser(text, named)
    waiting = [first]
    while waiting:
        parser = waiting.pop()
        parser.parse()
        for name in parser.imports:
            if name in files:
                continue
            if len(files) >= MOST_FILES:
                raise SchemaError(f"more than {MOST_FILES:,} files import each other")
            found = import_of(name)
            if found is None:
                if name.startswith("google/protobuf/"):
                    continue  # reported if one of its types is used
                raise SchemaError(f"imports {name!r}, which is not there")
            files[name] = _ProtoParser(found, named)
            waiting.append(files[name])
    for parser in (first, *files.values()):
        parser.resolve()
    found_any = named.get("google.protobuf.Any")
    if isinstance(found_any, ProtoMessage) and {1, 2} <= set(found_any.by_number):
        found_any.types = named
    return ProtoFile(first.messages, named)


class _ProtoParser:
    """Parses one file."""

    def __init__(self, text: str, named: dict[str, ProtoMessage | ProtoEnum]) -> None:
        if len(text) > LONGEST:
            raise SchemaError(f"a file may have {LONGEST:,} characters at most")
        self._tokens = _tokens(text)
        self._token = ""
        self._named = named
        self._package = ""
        self._syntax = "proto2"
        self._features = ""
        """The features that the file sets for all its fields and enums (editions)."""
        self.imports: list[str] = []
        self.messages: list[ProtoMessage] = []
        self._to_resolve: list[tuple[ProtoField, str]] = []
        """Fields with a named type, and the scope of the name."""

    # -- tokens

    def _next(self) -> str:
        self._token = next(self._tokens, "")
        return self._token

    def _want(self, *tokens: str) -> str:
        if self._token not in tokens:
            wanted = " or ".join(map(repr, tokens))
            raise SchemaError(f"{wanted} is needed, not {self._token[:40]!r}")
        found = self._token
        self._next()
        return found

    def _name(self) -> str:
        name = self._token
        if not name or not (name[0].isalpha() or name[0] in "_."):
            raise SchemaError(f"a name is needed, not {name[:40]!r}")
        if len(name) > LONGEST_NAME:
            raise SchemaError(f"a name may have {LONGEST_NAME:,} characters at most")
        self._next()
        return name

    def _number(self) -> int:
        try:
            number = int(self._token, 0) if len(self._token) < 20 else None
        except ValueError:
            # In Protobuf, an octal number begins with 0.
            number = int(self._token, 8) if re.fullmatch(r"-?0[0-7]+", self._token) else None
        if number is None:
            raise SchemaError(f"a number is needed, not {self._token[:40]!r}")
        self._next()
        return number

    def _skip_statement(self) -> str:
        """Skip a statement that ends with a semicolon or a block. Return its first words."""
        depth = 0
        words: list[str] = []
        while self._token:
            token = self._token
            if len(words) < _MOST_WORDS:
                words.append(token)
            self._next()
            depth += (token in ("{", "[", "(")) - (token in ("}", "]", ")"))
            if depth == 0 and (token == ";" or (token == "}" and self._token != ";")):
                return " ".join(words)
        raise SchemaError("the file ends too early")

    def _text(self) -> str:
        out = ""
        while self._token[:1] in ("'", '"') and self._token:
            out += self._token[1:-1]
            self._next()
        return out

    # -- statements

    def parse(self) -> None:
        """Read all statements."""
        self._next()
        while self._token:
            word = self._token
            if word in ("syntax", "edition"):
                self._next()
                self._want("=")
                found = self._text()
                self._syntax = "editions" if word == "edition" else found
                self._want(";")
            elif word == "package":
                self._next()
                self._package = self._name()
                self._want(";")
            elif word == "import":
                self._next()
                if self._token in ("public", "weak", "option"):
                    self._next()
                self.imports.append(self._text())
                self._want(";")
            elif word == "message":
                self.messages.append(self._message(self._package, 0))
            elif word == "enum":
                self._enum(self._package)
            elif word == ";":
                self._next()
            else:
                said = self._skip_statement()
                self._features += said if word == "option" else ""

    def _message(self, scope: str, depth: int) -> ProtoMessage:
        self._want("message")
        return self._body(self._name(), scope, depth)

    def _body(self, name: str, scope: str, depth: int) -> ProtoMessage:
        if depth > DEEPEST_MESSAGE:
            raise SchemaError(f"messages nested deeper than {DEEPEST_MESSAGE}")
        full = f"{scope}.{name}" if scope else name
        message = ProtoMessage(full)
        self._named[full] = message
        self._want("{")
        while self._token != "}":
            word = self._token
            if word == "message":
                message.nest(self._message(full, depth + 1))
            elif word == "enum":
                self._enum(full)
            elif word == "oneof":
                self._oneof(message, full, depth)
            elif word == ";":
                self._next()
            elif word in ("option", "extend", "extensions", "reserved"):
                message.is_entry |= self._skip_statement() == _ENTRY
            elif not word:
                raise SchemaError(f"message {full} ends too early")
            else:
                self._field(message, full, depth, "")
        self._want("}")
        return message

    def _oneof(self, message: ProtoMessage, full: str, depth: int) -> None:
        self._next()
        name = self._name()
        self._want("{")
        while self._token != "}":
            if self._token == "option":
                self._skip_statement()
            elif self._token == ";":
                self._next()
            else:
                self._field(message, full, depth, name)
        self._want("}")

    def _field(self, message: ProtoMessage, scope: str, depth: int, oneof: str) -> None:
        label = ""
        if self._token in ("optional", "required", "repeated"):
            label = self._token
            self._next()
        kind = self._name()
        if kind == "map" and self._token == "<":
            self._map(message, scope)
            return
        name = self._name()
        self._want("=")
        field = ProtoField(name, self._number(), kind)
        features = self._options()
        field.is_repeated = label == "repeated"
        field.oneof = oneof and f"oneof {oneof}"
        said = features if "field_presence" in features else self._features
        implicit = self._syntax == "proto3" or "IMPLICIT" in said
        field.has_presence = not field.is_repeated and (not implicit or bool(oneof) or label == "optional")
        if kind == "group":
            field.name = name.lower()
            field.message = self._body(name, scope, depth + 1)
            message.nest(field.message)
        else:
            self._want(";")
            if kind not in SCALARS:
                self._to_resolve.append((field, scope))
            elif "DELIMITED" in features:
                field.kind = kind
        message.add(field)

    def _map(self, message: ProtoMessage, scope: str) -> None:
        self._want("<")
        key = ProtoField("key", 1, self._want(*MAP_KEYS))
        self._want(",")
        value = ProtoField("value", 2, self._name())
        self._want(">")
        name = self._name()
        self._want("=")
        field = ProtoField(name, self._number(), "message")
        self._options()
        self._want(";")
        entry = ProtoMessage(f"{scope}.{name}Entry")
        entry.is_entry = True
        entry.add(key)
        entry.add(value)
        if value.kind not in SCALARS:
            self._to_resolve.append((value, scope))
        message.described.append(entry)
        field.message, field.is_repeated, field.is_map = entry, True, True
        message.add(field)

    def _options(self) -> str:
        """Skip ``[…]``; return its words."""
        words: list[str] = []
        if self._token == "[":
            depth = 0
            while self._token:
                depth += (self._token in ("[", "{")) - (self._token in ("]", "}"))
                words.append(self._token)
                self._next()
                if not depth:
                    break
        return " ".join(words)

    def _enum(self, scope: str) -> None:
        self._want("enum")
        name = self._name()
        enum = ProtoEnum(f"{scope}.{name}" if scope else name)
        enum.is_closed = self._syntax == "proto2" or "enum_type = CLOSED" in self._features
        self._named[enum.name] = enum
        self._want("{")
        while self._token != "}":
            if self._token in ("option", "reserved"):
                said = self._skip_statement()
                if "enum_type" in said:
                    enum.is_closed = "CLOSED" in said
                continue
            if self._token == ";":
                self._next()
                continue
            symbol = self._name()
            self._want("=")
            number = self._number()
            self._options()
            self._want(";")
            if not enum.by_number:
                enum.first = number
            enum.by_number.setdefault(number, symbol)
        self._want("}")

    # -- names

    def resolve(self) -> None:
        """Find the named types of fields: from the innermost scope outwards, as protoc does."""
        for field, scope in self._to_resolve:
            found = self._find(field.kind, scope)
            if isinstance(found, ProtoMessage):
                field.kind, field.message = "message", found
                field.has_presence = not field.is_repeated
                field.is_map = field.is_repeated and found.is_entry and found.has_entry_form
            else:
                field.kind, field.enum = "enum", found
        self._to_resolve.clear()

    def _find(self, name: str, scope: str) -> ProtoMessage | ProtoEnum:
        if name.startswith("."):
            found = self._named.get(name[1:])
        else:
            parts = scope.split(".") if scope else []
            found = None
            for end in range(len(parts), -1, -1):
                found = self._named.get(".".join((*parts[:end], name)))
                if found is not None:
                    break
        if found is None:
            raise SchemaError(f"no type is named {name!r}")
        return found


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            line = text.count("\n", 0, position) + 1
            raise SchemaError(f"line {line}: {text[position : position + 20]!r} is not expected")
        position = found.end()
        token = found["token"]
        if token is not None:
            yield token
