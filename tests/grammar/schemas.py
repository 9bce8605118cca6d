"""Schemas for the tests of structured output: a fixed list, then families drawn from a seed."""
import random

WRITTEN = [
    True,
    {},
    {"type": "null"},
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "string"},
    {"type": "array"},
    {"type": "object"},
    {"type": ["string", "null"]},
    {"type": ["integer", "boolean", "array"], "items": {"type": "integer"}, "minimum": 3},
    {"type": "integer", "minimum": -3, "maximum": 12},
    {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1000},
    {"type": "integer", "minimum": 0.5, "maximum": 3.5},
    {"type": "integer", "minimum": 9223372036854775000},
    {"type": "integer", "multipleOf": 7},
    {"type": "integer", "multipleOf": 5, "minimum": -11, "maximum": 101},
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "number", "exclusiveMinimum": -2.5, "exclusiveMaximum": 100.25},
    {"type": "number", "minimum": 0},
    {"type": "number", "maximum": -0.001},
    {"type": "number", "multipleOf": 3},
    {"type": "string", "minLength": 3, "maxLength": 9},
    {"type": "string", "maxLength": 0},
    {"type": "string", "minLength": 12},
    {"type": "string", "maxLength": 40},
    {"type": "string", "pattern": "^[a-z]+$"},
    {"type": "string", "pattern": "^[A-Z][a-z]{2,8}( [A-Z][a-z]{2,8}){0,2}$"},
    {"type": "string", "pattern": "^\\d{3}-\\d{4}$"},
    {"type": "string", "pattern": "[^a-z]{2,5}"},
    {"type": "string", "pattern": "^\\S+\\s\\w+$"},
    {"type": "string", "pattern": "^(a|b|)c*$"},
    {"type": "string", "pattern": "^.{0,20}$"},
    {"type": "string", "pattern": "^[^\\d\\s]{1,6}$"},
    {"type": "string", "pattern": "^[\\^a-c\\]\\-]{1,9}$"},
    {"type": "string", "pattern": "^[\\u00e0-\\u00ff]{1,5}\\u20ac?$"},
    {"type": "string", "pattern": "^[a-z][a-z0-9_]*$", "minLength": 3, "maxLength": 10},
    {"type": "string", "pattern": "^\\W\\D$"},
    {"enum": [1, "two", None, True, 3.5, [1, 2], {"a": "b"}]},
    {"const": {"x": [1, {"y": "z\"\\\n"}]}},
    {"const": 0.1},
    {"const": "é€😀/"},
    {"type": "integer", "enum": [1, 2.5, "3", 4]},
    {"type": "string", "enum": ["a", "bbb", "cccccc"], "maxLength": 3},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4},
    {"type": "array", "items": False},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "items": {"type": "null"},
     "minItems": 3, "maxItems": 5},
    {"type": "array", "prefixItems": [{"const": 1}, False], "items": True},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 1},
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}, "maxItems": 3},
    {"type": "array", "prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"type": "object", "properties": {"name": {"type": "integer"}, "nam": {"type": "boolean"}},
     "required": ["name"], "additionalProperties": True},
    {"type": "object", "properties": {"é": {"type": "integer"}}, "additionalProperties": True},
    {"type": "object", "properties": {"a b": {"type": "null"}, "c\"d": {"type": "null"}, "": {"const": 1}}},
    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 5}},
    {"type": "object", "additionalProperties": False},
    {"type": "object", "required": ["x", "y"]},
    {"type": "object", "required": ["x"], "additionalProperties": {"type": "boolean"}},
    {"type": "object", "properties": {"a": False, "b": {"type": "integer"}}},
    {"type": "object", "minProperties": 1, "maxProperties": 3, "additionalProperties": {"type": "null"}},
    {"type": "object", "properties": {k: {"type": "boolean"} for k in "abcde"}, "minProperties": 2,
     "maxProperties": 3},
    {"type": "object", "properties": {k: {"type": "boolean"} for k in "abcde"}, "required": ["c"],
     "minProperties": 2},
    {"type": "object", "propertyNames": {"pattern": "^[a-z]{1,4}$"}, "additionalProperties": {"type": "integer"}},
    {"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"type": "integer"}},
    {"type": "object", "propertyNames": {"maxLength": 3}, "maxProperties": 2},
    {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}},
    {"type": "object", "patternProperties": {"^[0-9]+$": {"type": "boolean"}}, "maxProperties": 4},
    {"type": "object", "properties": {"id": {"type": "integer"}}, "patternProperties": {"^x-[a-z]+$": {}},
     "required": ["id"]},
    {"properties": {"a": {"type": "integer"}}},
    {"minLength": 2, "maxLength": 4},
    {"minimum": 3, "maxLength": 2},
    {"unevaluatedProperties": False, "properties": {"q": {"type": "null"}}},
    {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 5}, {"type": "null"}]},
    {"type": "string", "anyOf": [{"pattern": "^a+$"}, {"enum": ["b", 3]}]},
    {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
     "anyOf": [{"required": ["k"]}, {"required": ["v"]}]},
    {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    {"oneOf": [{"const": 1}, {"enum": [2, "3"]}, {"type": "null"}]},
    {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}],
     "$defs": {"cat": {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}},
               "dog": {"type": "object", "properties": {"kind": {"const": "dog"}, "name": {"type": "string"}},
                       "required": ["name"]}}},
    {"oneOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
                "additionalProperties": False},
               {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"],
                "additionalProperties": False}]},
    {"allOf": [{"type": "integer"}, {"minimum": 4}, {"maximum": 9}]},
    {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"extra": {"type": "boolean"}}, "required": ["extra"]}],
     "$defs": {"base": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}},
               {"properties": {"a": {"minimum": 3}, "b": {"type": "null"}}}, {"required": ["a"]}]},
    {"allOf": [{"properties": {"a": {"type": "integer"}}, "additionalProperties": {"maximum": 7}},
               {"properties": {"b": {"type": "integer"}}}], "type": "object", "required": ["a", "b"]},
    {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"minimum": 5}, {"maxLength": 3}]}]},
    {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
        "value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["value", "next"]}}},
    {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6},
                                      "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}},
     "required": ["name"]},
    {"$defs": {"a/b": {"type": "integer"}, "c~d": {"const": 1}, "e f": {"type": "null"}},
     "type": "array", "prefixItems": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c~0d"}, {"$ref": "#/$defs/e%20f"}],
     "minItems": 3},
    {"definitions": {"s": {"type": "string", "maxLength": 3}}, "type": "array",
     "items": {"$ref": "#/definitions/s", "minLength": 2}, "maxItems": 3},
    {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 2,
     "$defs": {"t": {"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/u"}]}, "u": {"type": "null"}}},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/x", "title": "T",
     "description": "D", "default": 1, "examples": [2], "x-own": 3, "type": "integer"},
] + [{"type": "string", "format": f} for f in (
    "date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri",
    "uri-reference", "json-pointer")] + [
    {"type": "string", "format": "uuid", "maxLength": 36},
    {"type": "integer", "format": "int32"},
    {"type": "string", "format": "password"},
]

# Refused: the schema, and a part of the message.
REFUSED = [
    (False, "no value"),
    ({"not": {"type": "string"}}, "\"not\""),
    ({"if": {"type": "string"}, "then": {"minLength": 2}}, "\"if\""),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
    ({"type": "object", "dependentSchemas": {"a": {}}}, "dependentSchemas"),
    ({"type": "array", "contains": {"type": "integer"}}, "contains"),
    ({"type": "array", "uniqueItems": True}, "uniqueItems"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
    ({"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]}, "oneOf"),
    ({"allOf": [{"pattern": "^a"}, {"pattern": "b$"}]}, "pattern"),
    ({"allOf": [{"type": "integer"}, {"type": "string"}]}, "no value"),
    ({"$ref": "https://example.com/other.json"}, "$ref"),
    ({"$ref": "#anchor"}, "$ref"),
    ({"$ref": "#/$defs/missing"}, "leads nowhere"),
    ({"$ref": "#"}, "circle"),
    ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "circle"),
    ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "never end"),
    ({"type": "string", "format": "regex"}, "format"),
    ({"type": "string", "format": "color"}, "format"),
    ({"type": "string", "pattern": "(?=a)b"}, "looks ahead"),
    ({"type": "string", "pattern": "(a)\\1"}, "\\1"),
    ({"type": "string", "pattern": "a^b"}, "within"),
    ({"type": "string", "pattern": "["}, "]"),
    ({"type": "string", "pattern": "^\"$"}, "no value"),
    ({"type": "string", "pattern": "^(a|bc)+$", "maxLength": 5}, "maxLength"),
    ({"type": "string", "minLength": 5, "maxLength": 4}, "no value"),
    ({"type": "integer", "minimum": 5, "maximum": 4}, "no value"),
    ({"type": "integer", "minimum": 5, "multipleOf": 3}, "multipleOf"),
    ({"type": "number", "multipleOf": 0.01}, "multipleOf"),
    ({"type": "array", "minItems": 3, "maxItems": 2}, "no value"),
    ({"type": "object", "required": ["a"], "additionalProperties": False}, "no value"),
    ({"type": "object", "minProperties": 3}, "minProperties"),
    ({"type": "text"}, "\"type\""),
    ({"type": "string", "minLength": -1}, "minLength"),
    ({"type": "string", "maxLength": "3"}, "maxLength"),
    ({"properties": [1]}, "properties"),
    ({"required": "a"}, "required"),
    ({"enum": []}, "enum"),
    ({"tpye": "string"}, "tpye"),
    ({"type": "string", "nullable": True}, "nullable"),
    ({"items": [{"type": "integer"}]}, "items"),
    ({"type": "object", "patternProperties": {"a": {}, "b": {}}}, "patternProperties"),
    ({"type": "object", "properties": {"ab": {}}, "patternProperties": {"^a": {}}}, "patternProperties"),
    ({"$dynamicRef": "#x"}, "dynamicRef"),
    ({"enum": ["a"], "pattern": "a"}, "enum"),
    ({"allOf": [{"patternProperties": {"^a": {}}}, {"additionalProperties": False}]}, "patternProperties"),
    ({"allOf": [{"prefixItems": [{}]}, {"unevaluatedItems": False}]}, "prefixItems"),
    ({"allOf": [{"anyOf": [{"required": ["a"]}], "unevaluatedProperties": False}, {"properties": {"b": {}}}]},
     "unevaluatedProperties"),
    ({"$ref": "#/$defs/a", "$defs": {"b": {}, "a": {"$id": "http://x/a", "$ref": "#/$defs/b",
                                                    "$defs": {"b": {"type": "null"}}}}}, "$id"),
    ({"allOf": [{"$id": "x", "items": {"$ref": "#/$defs/b"}}], "$defs": {"b": {}}}, "$id"),
    ({"type": "string", "pattern": "^a{2}{3}$"}, "repeats a repetition"),
    ({"type": "string", "pattern": "^a*{3}$"}, "repeats a repetition"),
    ({"type": "string", "pattern": "{2}"}, "nothing to repeat"),
    ({"type": "string", "pattern": "(?<1>a)"}, "group name"),
    ({"type": "string", "pattern": "(?<n>a)(?<n>b)"}, "two groups"),
    (3, "schema"),
]

# Texts at the edge of a schema: those that are taken must be valid.
EDGES = [
    ({"type": "object", "properties": {"b": {"type": "integer"}},
      "anyOf": [{"properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False}]},
     ['{}', '{"a":1}', '{"b":2}', '{"a":1,"b":2}', '{"b":2,"a":1}']),
    ({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False},
                {"properties": {"b": {"type": "integer"}}}]},
     ['{}', '{"a":1}', '{"b":2}', '{"a":1,"b":2}']),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False,
      "allOf": [{"properties": {"b": {"type": "integer"}}}]},
     ['{}', '{"a":1}', '{"a":1,"b":2}', '{"a":1,"c":2}']),
    ({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}},
                {"type": "object", "properties": {"k": {"const": "b"}}}]},
     ['{}', '{"k":"a"}', '{"k":"b"}', '{"k":"c"}']),
    ({"type": "object", "properties": {"n": {"type": "integer"}},
      "oneOf": [{"properties": {"k": {"const": "a"}, "x": {"type": "integer"}}, "required": ["k"]},
                {"properties": {"k": {"const": "b"}}, "required": ["k"]}]},
     ['{"k":"a"}', '{"n":1,"k":"a","x":2}', '{"k":"b"}', '{"k":"c"}', '{}', '{"n":1}', '3']),
    ({"type": "integer", "maximum": 9223372036854775807}, ["9223372036854775807", "9223372036854775808"]),
    ({"type": "integer", "minimum": -9223372036854775808}, ["-9223372036854775808", "-9223372036854775809"]),
    ({"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 2}, ['[1]', '[1,"a"]', '["a",1]']),
    ({"type": "number", "exclusiveMinimum": 0}, ["0", "0.0", "-0", "0e5", "-0.0", "0.1", "1"]),
    ({"type": "number", "minimum": 0.5, "maximum": 1.5}, ["0.4", "0.5", "1.5", "1.51", "1e3", "4e-1", "1.50"]),
    ({"type": "string", "minLength": 2, "maxLength": 2}, [r'"\ud83d\ude00"', '"😀"', '"😀😀"', '"ab"', r'"\u0041"']),
    ({"type": "string", "pattern": "^[^a]$"}, ['"a"', r'"\u0061"', '"b"', '"é"', '"bb"']),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
     ['{"a":1}', r'{"\u0061":"x"}', '{"a":"x"}', '{"b":1}', '{"a":1,"b":"x"}', '{"b":"x","a":"x"}']),
    ({"type": "object", "propertyNames": {"maxLength": 2}}, ['{"aa":1}', '{"aaa":1}', r'{"\u0041\u0041\u0041":1}']),
    ({"enum": [1, 1.5, "a", [1], {"b": 1, "a": 2}]}, ["1", "1.5", '"a"', "[1]", '{"b":1,"a":2}', "2", "[1,1]", '"b"']),
]


class Family:
    """Draws schemas that nest a few levels."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def name(self):
        return "".join(self.random.choice("abcxyz_") for _ in range(self.random.randint(1, 5)))

    def leaf(self):
        r = self.random
        low = r.randint(-50, 50)
        return r.choice([
            lambda: {"type": "boolean"},
            lambda: {"type": "null"},
            lambda: {"type": "integer", "minimum": low, "maximum": low + r.randint(0, 300)},
            lambda: {"type": "integer", "exclusiveMinimum": low},
            lambda: {"type": "number", "minimum": low / 4, "maximum": low / 4 + r.randint(0, 9)},
            lambda: {"type": "string", "minLength": r.randint(0, 3), "maxLength": r.randint(3, 12)},
            lambda: {"type": "string", "pattern": r.choice(["^[a-f0-9]{4}$", "^(yes|no)$", "^v\\d+(\\.\\d+)?$"])},
            lambda: {"type": "string", "format": r.choice(["date", "ipv4", "uuid"])},
            lambda: {"enum": r.sample([1, 2, "a", "b", None, False, 2.5], r.randint(1, 4))},
            lambda: {"type": r.sample(["integer", "string", "null"], 2), "maxLength": 4},
        ])()

    def schema(self, depth):
        r = self.random
        if depth == 0 or r.random() < 0.2:
            return self.leaf()
        kind = r.choice(["object", "object", "array", "anyOf", "tuple", "allOf", "map"])
        if kind == "object":
            properties = {self.name(): self.schema(depth - 1) for _ in range(r.randint(1, 4))}
            out = {"type": "object", "properties": properties,
                   "required": [k for k in properties if r.random() < 0.6]}
            if r.random() < 0.3:
                out["additionalProperties"] = r.choice([False, self.leaf()])
            return out
        if kind == "map":
            return {"type": "object", "additionalProperties": self.schema(depth - 1), "maxProperties": 3}
        if kind == "array":
            low = r.randint(0, 2)
            return {"type": "array", "items": self.schema(depth - 1), "minItems": low,
                    "maxItems": low + r.randint(0, 2)}
        if kind == "tuple":
            return {"type": "array", "prefixItems": [self.schema(depth - 1) for _ in range(r.randint(1, 3))],
                    "items": r.choice([False, {"type": "boolean"}]), "maxItems": 4}
        if kind == "allOf":
            return {"allOf": [{"type": "object", "properties": {"p": self.schema(depth - 1)}, "required": ["p"]},
                              {"properties": {"q": self.leaf()}}]}
        return {"anyOf": [self.schema(depth - 1) for _ in range(r.randint(2, 3))]}


def accepted():
    """At least 200 schemas of all kinds."""
    family = Family(20)
    drawn = [family.schema(3) for _ in range(120)]
    return WRITTEN + drawn
