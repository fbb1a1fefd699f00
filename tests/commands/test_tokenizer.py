"""accel-gen data --tokenizer against the library that wrote the tokenizers: the same tokens of random texts, for the families
that are read; others refused; a run that was killed resumes."""

import functools
import io
import json
import os
import random
import re
import string
import subprocess
import tarfile
import time
import unicodedata
import unittest

from data_folder import TREE, Folder
from harness import GENERATOR
from rotation import in_turn
from test_data import read
from tokenizers import normalizers, pre_tokenizers
from tokenizers_made import FAMILIES

SEED = int(os.environ.get("SEED", "1"))
MISSING = (TREE / "build/config/missing").read_text().split()
FORMS = {"NFC": normalizers.NFC(), "NFKD": normalizers.NFKD()}
ACCENTS, LOWER, PUNCTUATION = normalizers.StripAccents(), normalizers.Lowercase(), pre_tokenizers.Punctuation()
BERT_ACCENTS = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
CORPUS = ["docs", "gen", "examples"]


@functools.cache
def corpus():
    files = [path for name in CORPUS for path in sorted((TREE / name).rglob("*")) if path.suffix in (".md", ".c", ".h")]
    return "\n".join(path.read_text() for path in files)[:400_000]


@functools.cache
def train(family, text, size=700):
    return FAMILIES[family](text[:100_000], size)  # of more text some take seconds, and learn as many tokens


def agreed(character):
    """Whether the library's tables, some of 2016, have it as Unicode has."""
    kind = unicodedata.category(character)
    marks = [f"a{character}\u0308\u0323", f"a\u0323{character}", f"\u0308{character}", character]
    known = all(normalizer.normalize_str(one) == unicodedata.normalize(form, one) for form, normalizer in FORMS.items() for one in marks)
    known = known and (ACCENTS.normalize_str(character) == "") == (kind[0] == "M") and LOWER.normalize_str(character) == character.lower()
    known = known and (BERT_ACCENTS.normalize_str(character) == "") == (kind == "Mn")
    return known and (len(PUNCTUATION.pre_tokenize_str(f"a{character}a")) == 3) == (kind[0] == "P" or character in string.punctuation)


@functools.cache
def characters():
    known = [chr(c) for c in range(1, 0x30000) if not 0xD800 <= c < 0xE000 and (c < 0x3000 or c % 97 == 0)]
    return [c for c in known if unicodedata.category(c) != "Cn" and agreed(c)]


def random_text(rng, known, text):
    parts = []
    for _ in range(rng.randint(0, 40)):
        kind = rng.randrange(7)
        if kind == 0:
            parts.append("".join(rng.choice(known) for _ in range(rng.randint(1, 8))))
        elif kind == 1:
            parts.append(rng.choice([" ", "  ", "\n", "\r\n", "\t ", "\n\n ", "\u00a0", "\u3000", "\u0085", "\u180e", "\u200b"]))
        elif kind == 2:
            parts.append(rng.choice(["'s", "'LL", "'\u017f", "'t", "''", "don't", "\u212a", "I'M"]))
        elif kind == 3:
            parts.append(str(rng.randint(0, 10**rng.randint(1, 9))))
        elif kind == 4:
            parts.append(rng.choice(["<|end|>", "<|e", "<|end|><|", "<|en", "the re", "the  re"]))
        elif kind == 5:
            at = rng.randrange(len(text))
            parts.append(text[at:at + rng.randint(1, 60)])
        else:
            parts.append(unicodedata.normalize("NFD", rng.choice("éñüåÅḍ̇가각ạ̈")) * rng.randint(1, 3))
    return "".join(parts)


class Families(Folder):
    def test_all(self):
        print("SEED", SEED)
        rng, known, text = random.Random(SEED), characters(), corpus()
        for family in in_turn(FAMILIES, 2):
            with self.subTest(family=family):
                tokenizer = train(family, text)
                definition = json.loads(tokenizer.to_str())
                if family == "gpt2":  # as older versions wrote them
                    definition["model"]["merges"] = [" ".join(merge) for merge in definition["model"]["merges"]]
                (self.folder / "tokenizer.json").write_text(json.dumps(definition))
                texts = [random_text(rng, known, text) for _ in range(150)] + [text[:20000]]
                names = [f"{i}.txt" for i in range(len(texts))]
                for name, one in zip(names, texts):
                    (self.folder / name).write_bytes(one.encode())
                self.data(*names, "-o", "all.tok", "--tokenizer", "tokenizer.json", "--end", "<|end|>")
                tokens, starts, vocabulary = read(self.folder / "all.tok")
                self.assertEqual(vocabulary, tokenizer.get_vocab_size())
                ends = [*starts[1:], len(tokens)]
                for one, first, last in zip(texts, starts, ends, strict=True):
                    wanted = tokenizer.encode(one, add_special_tokens=False).ids
                    self.assertEqual([*wanted, tokenizer.token_to_id("<|end|>")], tokens[first:last].tolist(), repr(one))


class Text(Folder):
    """From text to numbers and back, for programs that write text in numbers."""

    def run_text(self, way, text):
        return subprocess.run([GENERATOR, "data", way, "tokenizer.json"], cwd=self.folder, input=text, capture_output=True)

    def test_there_and_back(self):
        rng, known, text = random.Random(SEED), characters(), corpus()
        for family in in_turn(FAMILIES, 2):
            with self.subTest(family=family):
                self.there_and_back(train(family, text), rng, known, text)

    def there_and_back(self, tokenizer, rng, known, text):
        (self.folder / "tokenizer.json").write_text(tokenizer.to_str())
        for _ in range(2):
            one = random_text(rng, known, text) + "<|end|>é"
            result = self.run_text("encode", one.encode())
            wanted = tokenizer.encode(one, add_special_tokens=False).ids
            self.assertEqual([int(word) for word in result.stdout.split()], wanted, result.stderr)
            self.decodes(tokenizer, wanted)
        # Of tokens of single bytes the library decodes a run as a whole, or not at all.
        others = [token for text, token in tokenizer.get_vocab().items() if not text.startswith("<0x")]
        self.decodes(tokenizer, rng.choices(others, k=300))

    def decodes(self, tokenizer, tokens):
        result = self.run_text("decode", " ".join(map(str, tokens)).encode())
        self.assertEqual(result.returncode, 0, result.stderr)
        wanted = tokenizer.decode(tokens, skip_special_tokens=False) + "\n"
        self.assertEqual(*(re.sub("\ufffd+", "\ufffd", one) for one in (result.stdout.decode(errors="replace"), wanted)))

    def test_refusals(self):
        (self.folder / "tokenizer.json").write_text(train("gpt2", corpus()).to_str())
        for text, message in ((b"7 x", "separated by white space"), (b"5000000", "no token has the number 5000000")):
            result = self.run_text("decode", text)
            self.assertEqual(result.returncode, 1)
            self.assertIn(message, result.stderr.decode())


class Refusals(Folder):
    def refused(self, change, message):
        tokenizer = json.loads(self.good)
        change(tokenizer)
        (self.folder / "bad.json").write_text(json.dumps(tokenizer))
        self.assertIn(message, self.data("a.txt", "-o", "a.tok", "--tokenizer", "bad.json", status=1))
        self.assertFalse((self.folder / "a.tok").exists())

    def test_all(self):
        self.good = train("llama3", "a b c d a b a b", 300).to_str()
        (self.folder / "a.txt").write_text("text")
        split = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Apart", "invert": False}
        last = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        blanks = {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True}
        strip = {"type": "Strip", "strip_left": True, "strip_right": True}
        for change, message in (
            (lambda t: t["model"].update(type="WordPiece"), "model.type: this is not BPE, the model that ByteLevel"),
            (lambda t: t["model"].update(type="Lattice"), "model.type: this is not BPE, Unigram, WordLevel or WordPiece"),
            (lambda t: t["model"].update(dropout=0.1), "model: dropout"),
            (lambda t: t["model"].update(unk_token="none"), "model.unk_token: this is not a token"),
            (lambda t: t["model"]["vocab"].pop("a"), "model.vocab: a byte is not a token"),
            (lambda t: t["model"]["merges"].append("a zz"), "does not join two tokens"),
            (lambda t: t["model"]["merges"].append(["a"]), "does not join two tokens"),
            (lambda t: t.update(normalizer={"type": "Nmt"}), "normalizer: a step that is none of those"),
            (lambda t: t.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAA"}), "that is not whole"),
            (lambda t: t.update(pre_tokenizer={"type": "UnicodeScripts"}), "pre_tokenizer: a step that is none of those"),
            (lambda t: t.update(pre_tokenizer=None), "model: there is neither an unk_token nor one for each byte"),
            (lambda t: t.update(pre_tokenizer=blanks, normalizer=strip), "of which a normalizer removes characters"),
            (lambda t: t["pre_tokenizer"]["pretokenizers"].insert(0, split), "a Split of another behavior"),
            (lambda t: t["pre_tokenizer"]["pretokenizers"].insert(1, blanks), "a step that is not WhitespaceSplit"),
            (lambda t: t["pre_tokenizer"]["pretokenizers"].append(split), "a step after ByteLevel"),
            (lambda t: t["pre_tokenizer"]["pretokenizers"].__setitem__(1, last), "add_prefix_space within"),
            (lambda t: t["pre_tokenizer"]["pretokenizers"][0]["pattern"].update(Regex="(a"), "pre_tokenizer: '(a': missing"),
        ):
            with self.subTest(message=message):
                self.refused(change, message)
        (self.folder / "cut.json").write_text(self.good[:500])
        self.assertIn("cut.json:", self.data("a.txt", "-o", "a.tok", "--tokenizer", "cut.json", status=1))
        (self.folder / "good.json").write_text(self.good)
        (self.folder / "latin.txt").write_bytes(b"caf\xe9")
        self.assertIn("latin.txt: byte 3: this is not UTF-8",
                      self.data("latin.txt", "-o", "a.tok", "--tokenizer", "good.json", status=1))
        self.assertIn("no token '<eos>'",
                      self.data("a.txt", "-o", "a.tok", "--tokenizer", "good.json", "--end", "<eos>", status=1))


class Killed(Folder):
    def test_resumes(self):
        text = corpus()
        train("t5", text).save(str(self.folder / "tokenizer.json"))
        (self.folder / "a.txt").write_text("e\u0301" + text * 40)
        (self.folder / "b.txt").write_text(text[:1000])
        self.kill_and_go_on("a.txt", "b.txt")

    def test_records(self):
        """Records are tokens of their texts, each of its own, and a run over them that was killed resumes."""
        text = corpus()
        tokenizer = train("qwen2", text)
        tokenizer.save(str(self.folder / "tokenizer.json"))
        draw = random.Random(SEED)
        starts = [draw.randrange(len(text) - 5000) for _ in range(8000)]
        texts = [text[start : start + draw.randrange(1, 5000)] for start in starts]
        shards = 0 if "archive" in MISSING else 4000  # of the records, in a shard of WebDataset
        with tarfile.open(self.folder / "s.tar", "w") as out:
            for i, content in enumerate(json.dumps({"text": text}).encode() for text in texts[:shards]):
                member = tarfile.TarInfo(f"{i}.json")
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))
        (self.folder / "a.jsonl").write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in texts[shards:]))
        (self.folder / "b.jsonl").write_text('{"text": "<|end|> \u00e4"}\n\n{"text": "last"}')
        self.kill_and_go_on(*(["s.tar"] if shards else []), "a.jsonl", "b.jsonl", "--text-field", "text")
        tokens, starts, _ = read(self.folder / "whole.tok")
        self.assertEqual(len(starts), len(texts) + 2)
        end = tokenizer.token_to_id("<|end|>")
        for i in (0, 1, 17, len(texts) - 1):
            self.assertEqual(tokens[starts[i] : starts[i + 1]].tolist(), [*tokenizer.encode(texts[i]).ids, end])

    def kill_and_go_on(self, *files):
        words = [*files, "-o", "killed.tok", "--tokenizer", "tokenizer.json", "--end", "<|end|>"]
        self.data(*["whole.tok" if word == "killed.tok" else word for word in words])
        resumes = 0
        for _ in range(20):  # one that ends before it is killed proves nothing
            run = subprocess.Popen([GENERATOR, "data", *words], cwd=self.folder, stderr=subprocess.PIPE, text=True)
            note = self.folder / "killed.tok.progress"
            before = note.stat().st_mtime_ns if note.exists() else 0
            while run.poll() is None and (not note.exists() or note.stat().st_mtime_ns == before):
                time.sleep(0.002)
            run.kill()
            resumes += "resumes at byte" in run.communicate()[1]
            if resumes == 2:
                break
        self.assertGreater(resumes, 0)
        self.data(*words)
        self.assertEqual((self.folder / "killed.tok").read_bytes(), (self.folder / "whole.tok").read_bytes())
        self.assertFalse((self.folder / "killed.tok.progress").exists())


if __name__ == "__main__":
    unittest.main()
