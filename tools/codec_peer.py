#!/usr/bin/env python3
"""Times the codec beside the published package deepseek-recipe 0.2.0, in one run, on one thread.

Both get the same body: a conversation of an agent with tools, in each of the three protocols.  The
package must be installed in the Python that runs this (pip install deepseek-recipe==0.2.0).  Prints a table; the exit
code is 1 if prompts or ids differ, or a factor is below what the project asks for.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

WANTED = {"render": 3.0, "encode": 5.0, "request to prompt": 3.0}
PROTOCOLS = ("chat_completions", "responses", "messages")
MODEL = "DeepSeek-V4.1-Flash"


def agent_request(size):
    """About `size` bytes: ten tools, then turns of calls, results and answers."""
    rng = random.Random(7)
    words = ("the file has a function that reads lines and returns them as text; build, test, "
             "error: expected ';' before 'return' /src/main.cc:42 value=3.14 if (x < 10) {").split(" ")

    def text(n):
        out = []
        while n > 0:
            word = rng.choice(words) + rng.choice([" ", " ", " ", "\n", "  "])
            out.append(word)
            n -= len(word)
        return "".join(out)

    tools = [{"type": "function", "function": {
        "name": f"tool_{i}", "description": text(300),
        "parameters": {"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "description": text(60)},
            "limit": {"type": "integer", "minimum": 0, "default": 10},
            "flags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}}}}}
        for i in range(10)]
    messages = [{"role": "system", "content": text(2000)}]
    turn = 0
    while len(json.dumps(messages)) + len(json.dumps(tools)) < size:
        call = f"call_{turn}"
        messages += [
            {"role": "user", "content": text(400)},
            {"role": "assistant", "content": text(200), "reasoning_content": text(600),
             "tool_calls": [{"id": call, "type": "function", "function": {
                 "name": "tool_1", "arguments": json.dumps({"path": text(50), "limit": turn})}}]},
            {"role": "tool", "tool_call_id": call, "content": text(1500)},
            {"role": "assistant", "content": text(500), "reasoning_content": text(300)}]
        turn += 1
    messages.append({"role": "user", "content": "go on"})
    return {"model": MODEL, "messages": messages, "tools": tools}


def as_responses(chat):
    """The same conversation as a body of Responses."""
    items = []
    for message in chat["messages"]:
        role = message["role"]
        if role == "tool":
            items.append({"type": "function_call_output", "call_id": message["tool_call_id"],
                          "output": message["content"]})
            continue
        if "reasoning_content" in message:
            items.append({"type": "reasoning", "summary": [], "content": [
                {"type": "reasoning_text", "text": message["reasoning_content"]}]})
        kind = "output_text" if role == "assistant" else "input_text"
        items.append({"type": "message", "role": role,
                      "content": [{"type": kind, "text": message["content"]}]})
        for call in message.get("tool_calls", []):
            items.append({"type": "function_call", "call_id": call["id"],
                          "name": call["function"]["name"], "arguments": call["function"]["arguments"]})
    return {"model": MODEL, "input": items,
            "tools": [{"type": "function", **tool["function"]} for tool in chat["tools"]]}


def as_messages(chat):
    """The same conversation as a body of Messages."""
    messages = []
    for message in chat["messages"][1:]:
        if message["role"] == "tool":
            messages.append({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": message["tool_call_id"],
                 "content": message["content"]}]})
            continue
        blocks = []
        if "reasoning_content" in message:
            blocks.append({"type": "thinking", "thinking": message["reasoning_content"], "signature": ""})
        blocks.append({"type": "text", "text": message["content"]})
        for call in message.get("tool_calls", []):
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
                           "input": json.loads(call["function"]["arguments"])})
        messages.append({"role": message["role"], "content": blocks})
    return {"model": MODEL, "max_tokens": 1000, "system": chat["messages"][0]["content"],
            "thinking": {"type": "enabled", "budget_tokens": 1000}, "messages": messages,
            "tools": [{"name": f["name"], "description": f["description"], "input_schema": f["parameters"]}
                      for f in (tool["function"] for tool in chat["tools"])]}


def body_of(protocol, size):
    chat = agent_request(size)
    make = {"chat_completions": lambda: chat, "responses": lambda: as_responses(chat),
            "messages": lambda: as_messages(chat)}
    return json.dumps(make[protocol]()).encode()


def least_seconds(seconds, call):
    begin = time.perf_counter()
    least = float("inf")
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


def time_package(protocol, body, tokenizer_file, seconds):
    import deepseek_recipe as recipe
    encoding = recipe.DeepseekV41Encoding().with_tokenizer(recipe.Tokenizer.from_file(tokenizer_file))
    options = recipe.ConversionOptions()
    request = {"chat_completions": recipe.ChatCompletionRequest, "responses": recipe.ResponsesRequest,
               "messages": recipe.MessagesRequest}[protocol]
    convert = lambda: request(body).convert(options)
    conversation = convert().conversation
    return {
        "read_s": least_seconds(seconds, convert),
        "render_s": least_seconds(seconds, lambda: encoding.render_conversation(conversation)),
        "encode_s": least_seconds(seconds, lambda: encoding.encode(conversation)),
        "prompt_bytes": len(encoding.render_conversation(conversation).prompt.encode()),
        "ids": len(encoding.encode(conversation)),
    }


def compare(protocol, size, args):
    good = True
    body = body_of(protocol, size)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(body)
        file.flush()
        ours = json.loads(subprocess.run(
            [args.program, protocol, file.name, args.tokenizer, str(args.seconds)],
            check=True, capture_output=True, text=True).stdout)
    theirs = time_package(protocol, body, args.tokenizer, args.seconds)
    for key in ("prompt_bytes", "ids"):
        if ours[key] != theirs[key]:
            print(f"{key} differ: {ours[key]} and {theirs[key]}")
            good = False
    for side in (ours, theirs):
        side["request to prompt_s"] = side["read_s"] + side["render_s"]
    # Encoding a conversation renders it, too.
    ours["encode_s"] += ours["render_s"]
    print(f"{protocol}: {len(body):,} bytes, {ours['ids']:,} ids; JSON alone {ours['json_s'] * 1e6:.1f} us")
    for name in ("read", "render", "request to prompt", "encode"):
        a, b = ours[name + "_s"], theirs[name + "_s"]
        print(f"  {name:17} ours {a * 1e6:9.1f} us  package {b * 1e6:9.1f} us  factor {b / a:5.2f}")
        good &= b / a >= WANTED.get(name, 0)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="codec_speed")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json of V4.1")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    args = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    failed = False
    for protocol in PROTOCOLS:
        for size in (60_000, 100_000):
            failed |= not compare(protocol, size, args)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
