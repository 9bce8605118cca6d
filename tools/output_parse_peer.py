#!/usr/bin/env python3
"""Times the parsing of outputs beside the published package, one id a chunk, one thread, in one run.

    tools/output_parse_peer.py --program BUILD/tools/parse_speed [--venv DIR] TOKENIZER_JSON

The output is an agent's: thinking, an answer, calls with long and short arguments.  Two figures each:
events made, and the JSON of Chat Completions chunks written as well.  The package is timed from
Python, its chunks made before the clock starts.  Exit status 77 if it is not to be had.
"""

import argparse
import importlib.util
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

PACKAGE = "deepseek-recipe==0.2.0"
SKIPPED = 77
SECONDS = 2.0
WORDS = (
    "the a of function returns value because we should check whether file error is not open and then "
    "call it again with other arguments so that tests pass"
).split()
CODE = 'def f(x):\n    if x < 3 and x != "q":\n        return [i for i in range(x)]  # ok\n'


def find_package(venv):
    """Makes the package importable; without it, runs this script again in a virtual environment."""
    if importlib.util.find_spec("deepseek_recipe"):
        return
    python = venv / "bin" / "python"
    if "FATHOM_PEER_VENV" in os.environ:
        sys.exit(SKIPPED)
    installed = (
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=False).returncode == 0
        and subprocess.run(
            [str(python), "-m", "pip", "install", "-q", PACKAGE], check=False
        ).returncode
        == 0
    )
    if not installed:
        print(f"skipped: {PACKAGE} is not installed and pip cannot fetch it")
        sys.exit(SKIPPED)
    os.execve(python, [str(python), *sys.argv], {**os.environ, "FATHOM_PEER_VENV": "1"})


def make_output():
    rng = random.Random(1)

    def prose(num_words):
        parts = []
        for i in range(num_words):
            parts.append(rng.choice(WORDS))
            if i % 40 == 39:
                parts.append(rng.choice((".\n\n", ".\n", ": `a < b`.")))
        return " ".join(parts)

    def parameter(name, value, is_string=True):
        kind = "true" if is_string else "false"
        return (
            f'<｜DSML｜ parameter name="{name}" string="{kind}">{value}</｜DSML｜ parameter>\n'
        )

    def call(name, *parameters):
        return f'<｜DSML｜ invoke name="{name}">\n{"".join(parameters)}</｜DSML｜ invoke>\n'

    calls = [
        call("write_file", parameter("path", "src/a.py"), parameter("text", CODE * 60)),
        call("run", parameter("command", "pytest -q 2>&1"), parameter("timeout", "30", False)),
        call("todo", parameter("items", str([{"n": i} for i in range(40)]).replace("'", '"'), False)),
    ]
    block = f"<｜DSML｜ calls>\n{''.join(calls)}</｜DSML｜ calls>"
    return f"{prose(4000)}\n</think>\n\n{prose(1500)}\n\n{block}"


def package_rate(tokenizer, ids, with_json):
    import deepseek_recipe as recipe

    chunk = recipe.InferenceChunk
    tokens = 0
    elapsed = 0.0
    while elapsed < SECONDS:
        chunks = [chunk.ready(prompt_usage=recipe.PromptUsage(prompt_tokens=10))]
        chunks += [chunk.tokens([i]) for i in ids]
        chunks.append(chunk.finish(recipe.InferenceFinishReason.Stop))
        body = {
            "model": "DeepSeek-V4.1-Flash",
            "messages": [{"role": "user", "content": "x"}],
            "tools": [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}],
            "stream": True,
        }
        request = recipe.ChatCompletionRequest(body).convert(recipe.ConversionOptions())
        options = request.parsing_options
        generator = recipe.ChatCompletionRequest.chunk_generator(request, "id", "model")
        processor = recipe.StreamProcessor(generator, options, tokenizer)
        begin = time.perf_counter()
        for one in chunks:
            events = processor.push(one)
            if with_json:
                for event in events:
                    event.to_json()
        elapsed += time.perf_counter() - begin
        tokens += len(ids)
    return tokens / elapsed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the program parse_speed")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path("build/recipe_venv"))
    parser.add_argument("tokenizer", help="tokenizer.json of V4.1")
    args = parser.parse_args()
    find_package(args.venv)
    import deepseek_recipe as recipe

    tokenizer = recipe.Tokenizer.from_file(args.tokenizer)
    ids = tokenizer.encode(make_output())
    with tempfile.NamedTemporaryFile("w", suffix=".ids") as file:
        file.write(" ".join(map(str, ids)))
        file.flush()
        ours = subprocess.run(
            [args.program, args.tokenizer, file.name, str(SECONDS)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    rates = {line.split()[0]: float(line.split()[1]) for line in ours.splitlines()}
    print(f"{len(ids)} ids, one a chunk; million tokens a second")
    print(f"{'':8}{'Fathom':>10}{'package':>10}{'times':>8}")
    for kind in ("events", "json"):
        package = package_rate(tokenizer, ids, kind == "json")
        ratio = rates[kind] / package
        print(f"{kind:8}{rates[kind] / 1e6:10.2f}{package / 1e6:10.2f}{ratio:8.1f}")


if __name__ == "__main__":
    main()
