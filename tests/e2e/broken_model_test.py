"""Checkpoints that are not whole: exit code 3 and one line that names the file."""
import json
import shutil
import struct

import program
from program import ProgramTest


class BrokenModel(ProgramTest):
    def setUp(self):
        super().setUp()
        self.demo = program.settings.root / "models/demo"
        self.model = self.folder / "model"
        shutil.copytree(self.demo, self.model)

    def refused(self, *says):
        return self.fails(3, "generate", "--prompt", "hi", "--model", self.model, says=says)

    def edit_config(self, **changes):
        file = self.model / "config.json"
        config = json.loads(file.read_text(encoding="utf-8"))
        config.update(changes)
        file.write_text(json.dumps(config), encoding="utf-8")

    def shard(self, number=1):
        return self.model / f"model-0000{number}-of-00003.safetensors"

    def edit_header(self, edit):
        """Rewrites the JSON header of the first shard with its length."""
        data = self.shard().read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        edit(header)
        text = json.dumps(header).encode()
        self.shard().write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])

    def test_the_copy_itself_works(self):
        out = self.text("generate", "--model", self.model, "--prompt", "4 * 70", "--temperature", "0")
        self.assertEqual(out, "280\n")

    def test_truncated_shard(self):
        data = self.shard().read_bytes()
        for length in (0, 4, 1000, len(data) - 1):
            self.shard().write_bytes(data[:length])
            self.refused(self.shard().name)

    def test_missing_shard(self):
        self.shard(2).unlink()
        self.refused(self.shard(2).name)

    def test_half_downloaded_shard_of_the_hub(self):
        self.shard(3).rename(str(self.shard(3)) + ".incomplete")
        self.refused(self.shard(3).name)

    def test_wrong_dtype(self):
        def edit(header):
            name = next(n for n, t in header.items() if n != "__metadata__" and t["dtype"] == "BF16")
            header[name]["dtype"] = "F16"
        self.edit_header(edit)
        self.refused(self.shard().name)

    def test_dtype_of_the_same_size(self):
        self.name = None

        def edit(header):
            self.name = next(n for n, t in header.items() if n != "__metadata__" and t["dtype"] == "F8_E4M3")
            header[self.name]["dtype"] = "I8"
        self.edit_header(edit)
        self.refused(self.name)

    def test_tensor_that_is_missing(self):
        self.name = None

        def edit(header):
            self.name = next(n for n in header if n != "__metadata__")
            header["other"] = header.pop(self.name)
        self.edit_header(edit)
        self.refused("other", "do not belong together")
        index = self.model / "model.safetensors.index.json"
        text = index.read_text(encoding="utf-8")
        index.write_text(text.replace(json.dumps(self.name), '"other"'), encoding="utf-8")
        self.refused(self.name)

    def test_hostile_header_length(self):
        data = self.shard().read_bytes()
        for length in (2**63, 2**64 - 1, 2**40):
            self.shard().write_bytes(struct.pack("<Q", length) + data[8:])
            self.refused(self.shard().name)

    def test_unknown_model_type(self):
        self.edit_config(model_type="llama")
        self.refused("config.json", "llama")

    def test_unknown_key_of_the_architecture(self):
        self.edit_config(sliding_window_pattern=3)
        self.refused("sliding_window_pattern")

    def test_config_that_is_not_json(self):
        (self.model / "config.json").write_text("{", encoding="utf-8")
        self.refused("config.json")

    def test_no_tokenizer(self):
        (self.model / "tokenizer.json").unlink()
        self.refused("tokenizer.json")

    def test_tokenizer_of_another_model(self):
        file = self.model / "tokenizer.json"
        tokenizer = json.loads(file.read_text(encoding="utf-8"))
        tokenizer["added_tokens"].append({"id": 5000, "content": "<|extra|>", "single_word": False,
                                          "lstrip": False, "rstrip": False, "normalized": False,
                                          "special": True})
        file.write_text(json.dumps(tokenizer), encoding="utf-8")
        self.refused("tokenizer.json", "5000")

    def test_damaged_generation_config(self):
        file = self.model / "generation_config.json"
        file.write_text("[]", encoding="utf-8")
        self.refused("generation_config.json")
        file.write_text('{"temperature": 0}', encoding="utf-8")
        out = self.text("generate", "--model", self.model, "--prompt", "4 * 70")
        self.assertEqual(out, "280\n")

    def test_damaged_class_map(self):
        file = self.model / "engram_map.bin"
        file.write_bytes(file.read_bytes()[:-4])
        self.refused("engram_map.bin")


if __name__ == "__main__":
    program.main()
