"""Random answers under schemas, regular expressions and tools, judged by others: every answer that is
finished is valid for the package jsonschema (formats checked) or matches by Python's re.

usage: schema_outputs_test.py SAMPLE_GRAMMAR TOKENIZER_JSON
"""
import json
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: no package jsonschema (tests/requirements.txt)")
    sys.exit(77)

import schemas

TEMPERATURE = 1.5
DRAWS = 4
MAX_TOKENS = 400

REGEXES = ["[a-z]+", "(foo|bar)+baz?", "\\d{4}-\\d{2}", "[^\\n]{1,30}", "a.c", "\\s\\S{2,5}", "x*", "[\\w.]+@[\\w]+",
           "^(?:\\+1)?[2-9]\\d{9}$", "[é-ü]{2}€", "[\\^\\]\\\\-]{1,5}", "(a|)b{0,3}", "\\u0041\\x42[\\t ]"]


def run(program, tokenizer, lines):
    done = subprocess.run([program, tokenizer, str(DRAWS), str(TEMPERATURE), str(MAX_TOKENS)],
                          input="".join(json.dumps(line) + "\n" for line in lines), text=True,
                          stdout=subprocess.PIPE, timeout=500, check=True)
    out = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(out) == len(lines), (len(out), len(lines))
    return out


class Judge:
    def __init__(self):
        self.faults = []
        self.finished = self.drawn = 0

    def answers(self, name, result):
        """The finished answers of one constraint; a refused constraint and errors are faults."""
        if "error" in result:
            self.faults.append(f"{name}: refused: {result['error']}")
            return
        for answer in result["answers"]:
            self.drawn += 1
            if "error" in answer:
                self.faults.append(f"{name}: {answer['error']}")
            elif answer["finished"]:
                self.finished += 1
                yield answer["text"]

    def schema(self, schema, result):
        name = json.dumps(schema)
        checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for text in self.answers(name, result):
            try:
                checker.validate(json.loads(text))
            except (ValueError, jsonschema.ValidationError) as fault:
                self.faults.append(f"{name}: {text!r}: {str(fault).splitlines()[0]}")

    def edges(self, schema, texts, result):
        """Some of the texts are taken, and those are valid."""
        name = json.dumps(schema)
        validator = jsonschema.Draft202012Validator(schema)
        taken = [text for text, is_taken in zip(texts, result.get("taken", [])) if is_taken]
        self.faults += [f"{name}: takes {text!r}" for text in taken if not validator.is_valid(json.loads(text))]
        if not taken:
            self.faults.append(f"{name}: takes none of {texts}: {result.get('error')}")

    def regex(self, pattern, result):
        for text in self.answers(pattern, result):
            if re.fullmatch(pattern, text) is None:
                self.faults.append(f"{pattern}: {text!r} does not match")

    def tools(self, schema, result):
        """One call or more; each parameter by the schema."""
        name = "tools " + json.dumps(schema)
        for text in self.answers(name, result):
            calls = re.findall(r'<｜DSML｜ invoke name="f">\n(.*?)</｜DSML｜ invoke>\n', text, re.DOTALL)
            if not calls or not text.endswith("</｜DSML｜ calls>"):
                self.faults.append(f"{name}: {text!r} is no block of calls")
            for call in calls:
                arguments = {}
                for key, is_string, value in re.findall(
                        r'<｜DSML｜ parameter name="([^"]*)" string="(true|false)">(.*?)</｜DSML｜ parameter>',
                        call, re.DOTALL):
                    arguments[key] = value if is_string == "true" else json.loads(value)
                try:
                    jsonschema.Draft202012Validator(schema).validate(arguments)
                except jsonschema.ValidationError as fault:
                    self.faults.append(f"{name}: {text!r}: {fault.message}")


TOOL_SCHEMAS = [
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
     "required": ["city"]},
    {"type": "object", "properties": {"q": {"type": "string", "maxLength": 8}, "n": {"type": ["integer", "null"]},
                                      "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2}},
     "required": ["q", "n", "tags"]},
    {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}, "at": {"$ref": "#/$defs/p"}}, "required": ["at"],
     "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}},
    {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2,3}$"}}, "required": ["code"]},
    {"type": "object", "properties": {"v": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}}, "required": ["v"]},
    {"type": "object"},
    {"type": "object", "properties": {}},
]


def main(program, tokenizer):
    accepted = schemas.accepted()
    assert len(accepted) >= 200, len(accepted)
    lines = [{"kind": "json_schema", "text": json.dumps(s)} for s in accepted]
    lines += [{"kind": "json_schema", "text": json.dumps(s)} for s, _ in schemas.REFUSED]
    lines += [{"kind": "regex", "text": pattern} for pattern in REGEXES]
    lines += [{"kind": "tools", "text": json.dumps([{"type": "function", "function": {
        "name": "f", "parameters": s, "strict": True}}])} for s in TOOL_SCHEMAS]
    lines += [{"kind": "json_schema", "text": json.dumps(s), "try": texts} for s, texts in schemas.EDGES]
    results = iter(run(program, tokenizer, lines))

    judge = Judge()
    for schema, result in zip(accepted, results):
        judge.schema(schema, result)
    of_schemas = judge.finished
    for schema, part in schemas.REFUSED:
        message = next(results).get("error")
        if message is None or part not in message:
            judge.faults.append(f"{json.dumps(schema)}: expected an error with {part!r}, got {message!r}")
    for pattern in REGEXES:
        judge.regex(pattern, next(results))
    for schema in TOOL_SCHEMAS:
        judge.tools(schema, next(results))
    for schema, texts in schemas.EDGES:
        judge.edges(schema, texts, next(results))

    for fault in judge.faults[:40]:
        print(fault)
    print(f"{len(accepted)} schemas: {of_schemas} of {DRAWS * len(accepted)} answers finished, "
          f"{judge.finished} of {judge.drawn} in all; {len(judge.faults)} faults")
    # A constraint under which no answer comes to an end would prove nothing.
    return 0 if not judge.faults and judge.finished > 0.8 * judge.drawn else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
