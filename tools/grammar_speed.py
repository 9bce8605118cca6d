#!/usr/bin/env python3
"""Tokens a second with a constraint beside tokens a second without, on one model, in one process.

Groups of requests take turns: free ones, then ones under the constraint, and so on; each group runs at
once and alone, answers have the same number of tokens (fewer where the constraint lets them end).  A ratio compares neighbours; the median of the
ratios counts.  Exit code 1: a median is below --least.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["name", "age"]}
CASES = {
    "schema": {"guided_json": {"type": "array", "items": PERSON, "minItems": 400}},
    "lengths and formats": {"guided_json": {"type": "array", "minItems": 400, "items": {
        "type": "object", "required": ["id", "when", "title"], "properties": {
            "id": {"type": "string", "pattern": "^[a-z]{3}-[0-9]{4,8}$"},
            "when": {"type": "string", "format": "date-time"}, "title": {"type": "string", "maxLength": 80}}}}},
    "regex of words": {"guided_regex": "([A-Za-z]+[ ,.]){500}"},
    "free regex": {"guided_regex": "[^\\n]{600,}"},
    "text of a length": {"guided_regex": "[^\\n]{1,200}"},
}
# Where the constraint ends answers early: the free ones are as short, since the beginning of a group, beside the
# prompts of the others, is a larger part of a short answer.
MOST_TOKENS = {"text of a length": 40}


def request(kind, i, tokens):
    params = {"max_tokens": tokens, "temperature": 1, "seed": i, "ignore_eos": True}
    return {"id": f"{kind}-{i}", "prompt": "Tell me a story about the sea and a ship.",
            "params": {**params, **CASES.get(kind, {})}}


def measure(args, kind, batch):
    """Rate of each group, in turn without and with the constraint; the first pair warms up."""
    groups = [("free" if g % 2 == 0 else kind) for g in range(2 * (args.pairs + 1))]
    tokens = min(args.tokens, MOST_TOKENS.get(kind, args.tokens))
    lines = [request(name, g * batch + i, tokens) for g, name in enumerate(groups) for i in range(batch)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        done = subprocess.run([args.program, "generate", "--jsonl", file.name, "--model", args.model,
                               "--max-batch", str(batch), "--think", "off", "--prefix-cache", "off"],
                              stdout=subprocess.PIPE, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer in answers:
        assert answer["finish_reason"] in ("length", "stop"), answer
    rates = []
    for g in range(len(groups)):
        rate = 0
        for answer in answers[g * batch:(g + 1) * batch]:
            timing = answer["timing"]
            rate += 1000 * (answer["usage"]["completion_tokens"] - 1) / (timing["e2e_ms"] - timing["ttft_ms"])
        rates.append(rate)
    return rates[2:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="fathom")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--batch", type=int, action="append", help="requests at once (default: 1 and 8)")
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--least", type=float, default=0.95)
    args = parser.parse_args()
    failed = False
    print("| constraint | at once | tokens/s without | with | ratio, median | quartiles |\n|---|---|---|---|---|---|")
    for kind in args.case or CASES:
        for batch in args.batch or (1, 8):
            rates = measure(args, kind, batch)
            free, held = rates[::2], rates[1::2]
            # Each constrained group beside the free ones before and after it.
            around = [(a + b) / 2 for a, b in zip(free, free[1:] + free[-1:])]
            ratios = [h / f for h, f in zip(held, around)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"| {kind} | {batch} | {statistics.median(free):.0f} | {statistics.median(held):.0f} | "
                  f"{middle:.3f} | {low:.3f}-{high:.3f} |", flush=True)
            failed |= middle < args.least
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
