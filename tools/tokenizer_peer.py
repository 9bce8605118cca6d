#!/usr/bin/env python3
"""Compares our tokenizer with the Python package `tokenizers`: same ids, and how fast.

    tools/tokenizer_peer.py compare --program BUILD/tests/codec/tokenizer_lines TOKENIZER_JSON...
    tools/tokenizer_peer.py bench --program BUILD/tests/codec/tokenizer_lines TOKENIZER_JSON

`compare` encodes random Unicode, with and without added tokens, and decodes random ids, by each file
and by variants of the last one that use the rest of the format.  Exit status 1 if anything differs, 77
if the package is neither installed nor to be had.  `bench` times both on one 10 MB text, one thread.
"""

import argparse
import copy
import glob
import gzip
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import sysconfig
import tempfile
import time

PACKAGE = "tokenizers==0.23.3"
SOURCE = pathlib.Path(__file__).resolve().parent.parent
VECTORS = SOURCE / "tests/data/tokenizer/vectors.jsonl"
BENCH_BYTES = 10_000_000
SKIPPED = 77


def find_package(venv):
    """Makes `tokenizers` importable; without it, runs this script again in a virtual environment."""
    if importlib.util.find_spec("tokenizers"):
        return
    python = venv / "bin" / "python"
    if "FATHOM_PEER_VENV" in os.environ:
        sys.exit(SKIPPED)
    installed = subprocess.run(
        [sys.executable, "-m", "venv", str(venv)], check=False
    ).returncode == 0 and subprocess.run(
        [str(python), "-m", "pip", "install", "-q", PACKAGE], check=False
    ).returncode == 0
    if not installed:
        print(f"skipped: {PACKAGE} is not installed and pip cannot fetch it")
        sys.exit(SKIPPED)
    os.execve(python, [str(python), *sys.argv], {**os.environ, "FATHOM_PEER_VENV": "1"})


# Random texts.

SPACES = " \t\n\r\v\f\u00a0\u0085\u2003\u2028\u3000\u180e\u200b\ufeff"
SCRIPTS = [
    (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F),
    (0xE00, 0xE7F), (0x1100, 0x11FF), (0x2000, 0x2BFF), (0x2460, 0x24FF), (0x3040, 0x30FF),
    (0x3000, 0x303F), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFE00, 0xFFEF), (0x1D400, 0x1D7FF),
    (0x1F100, 0x1F1FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE01EF),
]  # fmt: skip


def random_character(rng):
    while True:
        low, high = rng.choice(SCRIPTS) if rng.random() < 0.9 else (0, 0x10FFFF)
        point = rng.randint(low, high)
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)


def random_part(rng, added):
    kind = rng.randrange(9)
    count = rng.choice((1, 1, 2, 3, 5, 12))
    if kind == 0:
        return "".join(rng.choice(SPACES) for _ in range(count))
    if kind == 1:
        return "".join(rng.choice(" \n\r") for _ in range(count))
    if kind == 2:
        return "".join(rng.choice("0123456789\u0663\u00bd\u2167") for _ in range(count))
    if kind == 3:
        return "".join(rng.choice("'!\"#$%&()*+,-./:;<=>?@[]^_`{|}~\\") for _ in range(count))
    if kind == 4:
        return rng.choice(("'s", "'LL", "don't", "'\u017f", "I'VE", "x'd", "fooBar", "\u212a"))
    if kind == 5:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxxyzABC ") for _ in range(count + 2))
    if kind == 6 and added:
        token = rng.choice(added)
        return token if rng.random() < 0.7 else token[: rng.randint(1, len(token))]
    if kind == 7:
        low, high = rng.choice(SCRIPTS)
        return "".join(chr(rng.randint(low, high)) for _ in range(count))
    return "".join(random_character(rng) for _ in range(count))


def random_text(rng, added):
    return "".join(random_part(rng, added) for _ in range(rng.choice((1, 3, 8, 20))))


# Variants of a file: the parts of the format that the released files do not use.

GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(prefix, regex):
    return {
        "type": "ByteLevel",
        "add_prefix_space": prefix,
        "trim_offsets": True,
        "use_regex": regex,
    }


def split(kind, pattern, behavior, invert=False):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def stage_variants():
    yield "gpt2", [byte_level(False, True)]
    yield "gpt2_prefix", [split("String", "a", "MergedWithNext"), byte_level(True, True)]
    yield "gpt4", [split("Regex", GPT4, "Isolated"), byte_level(False, False)]
    yield "gpt4_removed_inverted", [split("Regex", GPT4, "Removed", True), byte_level(False, False)]
    yield "o200k", [split("Regex", O200K, "Isolated"), byte_level(False, False)]
    for individual in (False, True):
        digits = {"type": "Digits", "individual_digits": individual}
        yield f"digits_{individual}", [digits, byte_level(False, True)]
    behaviors = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    for behavior in behaviors:
        for invert in (False, True):
            yield f"{behavior}_{invert}", [
                split("Regex", r"[\s\p{P}]|\d\d", behavior, invert),
                byte_level(False, False),
            ]
    # Classes that can only be told apart by the engine of the package.
    for name, pattern in (
        ("word", r"\w+"), ("not_word", r"\W+"), ("space", r"\s+"), ("digit", r"\d"),
        ("lazy", r"[a-z]{2,5}?|\p{Lu}{2}|."), ("ahead", r"\p{L}+(?=\d)|\p{L}(?!\p{L}|\s)|\S"),
        ("nested", r"[^a-c[\p{M}x-z]\d]{1,4}"), ("escapes", r"[\x41-\x{5A}\u00e0-\u00ff\-\]]+"),
        ("alternatives", r"a|ab|abc|(?:x|xy)+z?|(b|)c"), ("empty_loop", r"(?:a|b?)*c"),
    ):  # fmt: skip
        yield name, [split("Regex", pattern, "Isolated"), byte_level(False, False)]


def variants(document):
    """Yields (name, document)."""
    for name, stages in stage_variants():
        changed = copy.deepcopy(document)
        changed["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": stages}
        yield name, changed
    merges = document["model"]["merges"]
    pairs = [m if isinstance(m, list) else m.split(" ") for m in merges]
    for name, notation in (("merge_pairs", pairs), ("merge_texts", [" ".join(p) for p in pairs])):
        changed = copy.deepcopy(document)
        changed["model"]["merges"] = notation
        yield name, changed
    changed = copy.deepcopy(document)
    changed["model"]["ignore_merges"] = True
    # Tokens that merges alone would not reach.
    changed["model"]["merges"] = changed["model"]["merges"][::3]
    yield "ignore_merges", changed
    for name in ("lstrip", "rstrip", "single_word", "lstrip rstrip", "lstrip rstrip single_word"):
        changed = copy.deepcopy(document)
        for i, token in enumerate(changed["added_tokens"]):
            if i % 3:
                token.update({flag: True for flag in name.split()})
        top = 1 + max(token["id"] for token in changed["added_tokens"])
        for i, content in enumerate(("foo", "fooBar", "a", "\u4e2d", " ", "<", "\n\n", " x", "x")):
            flags = {flag: flag in name for flag in ("lstrip", "rstrip", "single_word")}
            base_id = document["model"]["vocab"].get(content)
            token = {"id": top if base_id is None else base_id, "content": content}
            top += base_id is None
            token.update(normalized=i % 2 == 0, special=False)
            changed["added_tokens"].append({**token, **flags})
        yield name.replace(" ", "_"), changed


# Comparison.


def ask(program, file, lines):
    done = subprocess.run(
        [program, str(file)], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{program} {file}: {done.stderr}")
    return done.stdout.split("\n")[: len(lines)]


def compare_file(program, file, document, count, rng):
    """Compares one tokenizer file; returns the number of differences."""
    from tokenizers import Tokenizer

    package = Tokenizer.from_file(str(file))
    bare = {**document, "added_tokens": []}
    package_plain = Tokenizer.from_str(json.dumps(bare))
    added = [token["content"] for token in document["added_tokens"]]
    size = 20 + max(token["id"] for token in document["added_tokens"])

    texts = [random_text(rng, added) for _ in range(count)]
    # An id that is unused prints nothing; the package needs it to be unsigned.
    streams = [[rng.randrange(size) for _ in range(rng.randint(1, 30))] for _ in range(count // 4)]
    questions, expected = [], []
    for text in texts:
        for command, peer in (("A", package), ("P", package_plain)):
            questions.append(f"{command} {text.encode().hex()}")
            ids = peer.encode(text, add_special_tokens=False).ids
            expected.append("".join(f"{i} " for i in ids))
    for ids in streams:
        for command, skip in (("D", False), ("S", True)):
            questions.append(f"{command} {' '.join(map(str, ids))}")
            expected.append(package.decode(ids, skip_special_tokens=skip).encode().hex())

    wrong = 0
    for question, ours, theirs in zip(questions, ask(program, file, questions), expected):
        if ours == theirs:
            continue
        wrong += 1
        if wrong <= 3:
            shown = bytes.fromhex(question[2:]).decode() if question[0] in "AP" else question
            print(f"{file.name}: {question[0]} {shown!r}\n  ours    {ours}\n  package {theirs}")
    print(f"{file.name}: {len(questions)} questions, {wrong} different")
    return wrong


def compare(options):
    find_package(options.venv)
    rng = random.Random(options.seed)
    wrong = 0
    for file in options.files:
        document = json.loads(file.read_text(encoding="utf-8"))
        wrong += compare_file(options.program, file, document, options.count, rng)
    with tempfile.TemporaryDirectory() as folder:
        base = json.loads(options.files[-1].read_text(encoding="utf-8"))
        for name, document in variants(base):
            file = pathlib.Path(folder) / f"{name}.json"
            file.write_text(json.dumps(document), encoding="utf-8")
            wrong += compare_file(options.program, file, document, options.count // 4, rng)
    print("all equal" if wrong == 0 else f"{wrong} differences (seed {options.seed})")
    return 1 if wrong else 0


# Benchmark.


def take(patterns, limit):
    """Text of the files that match, in a fixed order, up to `limit` bytes; invalid UTF-8 is repaired."""
    text, used = [], 0
    for pattern in patterns:
        for name in sorted(glob.glob(pattern, recursive=True)):
            if used >= limit:
                break
            if not os.path.isfile(name) or os.path.islink(name):
                continue
            data = pathlib.Path(name).read_bytes()
            data = gzip.decompress(data) if name.endswith(".gz") else data
            text.append(data.decode("utf-8", "replace"))
            used += len(data)
    return "".join(text).encode()[:limit].decode("utf-8", "ignore")


def bench_text():
    """40% prose, 40% code, 20% words of 76 languages and notations in random order."""
    prose = [
        str(SOURCE / "tests/data/demo/heldout.txt"), "/usr/share/perl/**/*.pod",
        "/usr/share/doc/**/README*", "/usr/share/vim/**/doc/*.txt", "/usr/share/man/man*/*.gz",
    ]  # fmt: skip
    code = [sysconfig.get_paths()["stdlib"] + "/*.py", "/usr/include/*.h", "/usr/include/linux/*.h",
            sysconfig.get_paths()["stdlib"] + "/*/*.py"]  # fmt: skip
    parts = [take(prose, BENCH_BYTES * 4 // 10), take(code, BENCH_BYTES * 4 // 10)]
    words = []
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        words += json.loads(line).get("text", "").split(" ")
    rng = random.Random(1)
    mixed, used = [], sum(len(p.encode()) for p in parts)
    while used < BENCH_BYTES:
        mixed.append(rng.choice(words) + " ")
        used += len(mixed[-1].encode())
    sizes = [len(p.encode()) for p in (*parts, "".join(mixed))]
    print("text: prose {:,}, code {:,}, mixed {:,} bytes".format(*sizes))
    # Interleaved by 50,000 characters, so that no cache settles on one kind.
    parts.append("".join(mixed))
    length = max(map(len, parts))
    return "".join(p[at : at + 50_000] for at in range(0, length, 50_000) for p in parts)


def bench(options):
    find_package(options.venv)
    from tokenizers import Tokenizer

    text = options.text.read_text(encoding="utf-8") if options.text else bench_text()
    size = len(text.encode()) / 1e6
    package = Tokenizer.from_file(str(options.files[0]))
    chunks = [text[at : at + 16_384] for at in range(0, len(text), 16_384)]
    with tempfile.NamedTemporaryFile("wb", suffix=".txt") as file:
        file.write(text.encode())
        file.flush()
        ours, whole, by_chunk = [], [], []
        for _ in range(options.runs):
            command = [options.program, str(options.files[0]), file.name, "3"]
            lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            ours += [float(line.split()[2]) for line in lines.splitlines()]
            num_tokens = int(lines.split()[1])
            start = time.process_time()
            num_peer = len(package.encode(text, add_special_tokens=False).ids)
            whole.append(time.process_time() - start)
            start = time.process_time()
            for chunk in chunks:
                package.encode(chunk, add_special_tokens=False)
            by_chunk.append(time.process_time() - start)
    if num_tokens != num_peer:
        sys.exit(f"different numbers of tokens: {num_tokens}, package {num_peer}")
    peer = min(whole + by_chunk)
    print(f"{size:.2f} MB, {num_tokens:,} tokens, {options.runs} rounds, processor time of one thread")
    print(f"package, whole text   {size / min(whole):7.2f} MB/s")
    print(f"package, 16 K pieces  {size / min(by_chunk):7.2f} MB/s")
    print(f"ours, whole text      {size / min(ours):7.2f} MB/s  = {peer / min(ours):.1f}x the better")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("mode", choices=("compare", "bench"))
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="TOKENIZER_JSON")
    parser.add_argument("--program", required=True, help="the program tokenizer_lines")
    parser.add_argument("--venv", type=pathlib.Path, default=SOURCE / "build/tokenizer_venv")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--count", type=int, default=1500, help="random texts a file")
    parser.add_argument("--text", type=pathlib.Path, help="bench: a UTF-8 file instead of the mix")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return compare(options) if options.mode == "compare" else bench(options)


if __name__ == "__main__":
    sys.exit(main())
