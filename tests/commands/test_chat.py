"""accel-gen data --chat against transformers' apply_chat_template: the same tokens, and the same ones are the assistant's, for
templates in the styles of the families of chat models; records that are refused."""

import json
import os
import struct
import subprocess
import time
import unittest

import numpy as np
from chats_made import TEMPLATES, TOKENIZERS, expected, random_conversations, rendered, tokenizer_of
from data_folder import Folder
from harness import GENERATOR
from test_tokenizer import corpus

SEED = int(os.environ.get("SEED", "1"))
WITH_TOOLS = ("llama31", "qwen", "qwen_marked", "json")


def read(path):
    """A token file by docs/data.md: the tokens of each document, and which are trained on; None: the file says nothing of that."""
    content = path.read_bytes()
    magic, version, width, count, vocabulary, _, documents, spans, trained = struct.unpack("<8sIIQQQQQQ", content[:64])
    assert magic == b"ACCELTOK" and (version == 2 or (version == 1 and spans == trained == 0))
    tokens = np.frombuffer(content[64:64 + count * width], dtype=f"<u{width}").tolist()
    starts = list(struct.unpack(f"<{documents}Q", content[len(content) - 8 * documents - 16 * spans:len(content) - 16 * spans]))
    ranges = struct.unpack(f"<{2 * spans}Q", content[len(content) - 16 * spans:])
    marks = [False] * count
    for first, end in zip(ranges[::2], ranges[1::2]):
        marks[first:end] = [True] * (end - first)
    assert sum(marks) == trained
    ends = starts[1:] + [count]
    return [(tokens[a:b], marks[a:b] if version == 2 else None) for a, b in zip(starts, ends)]


class Chat(Folder):
    def lines(self, records, name="chats.jsonl"):
        (self.folder / name).write_text("".join(json.dumps(record, ensure_ascii=i % 2 == 0) + "\n" for i, record in enumerate(records)))
        return name

    def model(self, template, family="llama3"):
        tokenizer = tokenizer_of(family, corpus()[:50_000], template)
        tokenizer.save_pretrained(self.folder / "model")
        return tokenizer

    def made(self, *words):
        self.data("chats.jsonl", "-o", "out.tok", "--chat", "model", *words)
        return read(self.folder / "out.tok")

    def compare(self, tokenizer, records):
        self.lines(records)
        got = self.made()
        self.assertEqual(len(got), len(records))
        for record, (tokens, marks) in zip(records, got):
            wanted, trained = expected(tokenizer, record)
            self.assertEqual(tokens, wanted, record)
            self.assertEqual(marks, trained, (record, tokenizer.convert_ids_to_tokens(tokens)))

    def test_templates(self):
        for number, (name, template) in enumerate(TEMPLATES.items()):
            family = TOKENIZERS[number % len(TOKENIZERS)]
            with self.subTest(template=name, tokenizer=family):
                records = random_conversations(SEED + number, 12)
                if name in WITH_TOOLS:
                    records += random_conversations(SEED + number, 12, tools=True)
                self.compare(self.model(template, family), records)

    def test_tokenizers(self):
        for family in TOKENIZERS:
            for name in ("mistral", "llama2", "vicuna"):
                with self.subTest(template=name, tokenizer=family):
                    self.compare(self.model(TEMPLATES[name], family), random_conversations(SEED, 12))


    def refused(self, record, *words):
        self.lines([{"messages": [{"role": "user", "content": "a"}]}, record])
        return self.data("chats.jsonl", "-o", "out.tok", "--chat", "model", *words, status=1)

    def test_train_on(self):
        tokenizer = self.model(TEMPLATES["chatml"])
        records = [record for record in random_conversations(SEED, 20) if record["messages"][-1]["role"] == "assistant"]
        self.lines(records)
        for record, (tokens, marks) in zip(records, self.made("--train-on", "last"), strict=True):
            wanted, trained = expected(tokenizer, record)
            first = len(trained) - trained[::-1].index(True)  # the run of them that ends the last message
            while trained[first - 1]:
                first -= 1
            self.assertEqual((tokens, marks), (wanted, [t and i >= first for i, t in enumerate(trained)]))
        for record, (tokens, marks) in zip(records, self.made("--train-on", "all"), strict=True):
            self.assertEqual((tokens, marks), (expected(tokenizer, record)[0], None))

    def test_completions(self):
        tokenizer = self.model(TEMPLATES["llama3"])
        self.lines([{"prompt": "What is it?", "completion": " It is 42."}, {"prompt": "no", "completion": ""}])
        (tokens, marks), (_, none) = self.made("--end", "</s>")
        parts = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("What is it?", " It is 42.")]
        self.assertEqual(tokens, parts[0] + parts[1] + [tokenizer.eos_token_id])
        self.assertEqual(marks, [False] * len(parts[0]) + [True] * (len(parts[1]) + 1))
        self.assertEqual(sum(none), 1)
        prompt, completion = [{"role": "user", "content": "Say hi"}], [{"role": "assistant", "content": "hi"}]
        self.lines([{"prompt": prompt, "completion": completion}])
        (tokens, marks), = self.made()
        before = rendered(tokenizer, {}, prompt, prompts=True)
        length = len(tokenizer(before, add_special_tokens=False)["input_ids"])
        self.assertEqual(tokens, tokenizer.apply_chat_template(prompt + completion)["input_ids"])
        self.assertEqual(marks, [i >= length for i in range(len(tokens))])

    def test_conversations(self):
        """ShareGPT's turns are the messages of these roles."""
        tokenizer = self.model(TEMPLATES["chatml"])
        names = {"user": ("human", "user"), "assistant": ("gpt", "chatgpt", "assistant", "model"), "system": ("system",)}
        records = [record for record in random_conversations(SEED, 40) if all(
            set(message) == {"role", "content"} and message["role"] in names and isinstance(message["content"], str) for message in record["messages"])]
        self.assertGreater(len(records), 5)
        turns = [{"conversations": [{"from": names[m["role"]][i % len(names[m["role"]])], "value": m["content"]} for m in record["messages"]]}
                 for i, record in enumerate(records)]
        for record, turn in zip(records, turns):
            if record["messages"][0]["role"] == "system":
                turn["system"] = turn["conversations"].pop(0)["value"]
        self.lines([*turns, {"conversations": records[0]["messages"]}])
        wanted = [expected(tokenizer, {"messages": record["messages"]}) for record in [*records, records[0]]]
        self.assertEqual(self.made(), wanted)
        for turn, message in (({"from": "critic", "value": "a"}, "message 2 of 'conversations' is from 'critic', which no role is known for"),
                              ({"from": "gpt"}, "message 2 of 'conversations' has no 'value' that is a text"),
                              ({"value": "a"}, "message 2 of 'conversations' has no 'from' that is a text")):
            self.assertIn("chats.jsonl:2: " + message, self.refused({"conversations": [{"from": "human", "value": "a"}, turn]}))

    def test_plan(self):
        """accel-gen plan says how many tokens of the job's file are trained on."""
        self.model(TEMPLATES["chatml_marked"])
        self.lines(random_conversations(SEED, 30))
        documents = self.made()
        trained, count = (sum(map(sum, lists)) for lists in ([m for _, m in documents], [[1] * len(t) for t, _ in documents]))
        job = {"model": {"source": str(GENERATOR.parents[1] / "examples/models/gpt2.c"), "config": {"vocab_size": 2000, "block_size": 16, "n_layer": 1, "n_head": 2, "n_embd": 8}},
               "data": {"train": {"path": "out.tok", "format": "tokens"}, "batch_size": 1, "packing": "pad", "eval_fraction": 0},
               "accumulation": {"normalize": "tokens"}, "training": {"steps": 1}}
        (self.folder / "job.yaml").write_text(json.dumps(job))

        def plan(*flags):
            return subprocess.check_output([GENERATOR, "plan", "job.yaml", *flags], cwd=self.folder, text=True)

        self.assertIn(f"data      {count:,} tokens, of which {trained:,} are trained on\n", plan())
        self.assertEqual(json.loads(plan("--json"))["data"], {"tokens": count, "trained": trained})
        self.made("--train-on", "all")
        self.assertNotIn("data   ", plan())

    def test_named_templates(self):
        """A list in tokenizer_config.json, as older folders have it, and files."""
        tokenizer = self.model(None)
        config = json.loads((self.folder / "model/tokenizer_config.json").read_text())
        config["chat_template"] = [{"name": "default", "template": "{{ messages[0].content }} plain"},
                                   {"name": "tool_use", "template": "{{ messages[0].content }} {{ tools | tojson }}"}]
        (self.folder / "model/tokenizer_config.json").write_text(json.dumps(config))
        (self.folder / "own.jinja").write_text("{{ bos_token }}{{ enable }}{{ tools is none }}\n")
        messages, tools = [{"role": "user", "content": "Hi"}], [{"name": "größer <b>"}]
        self.lines([{"messages": messages, "chat_template_kwargs": {"enable": 3}}, {"messages": messages, "tools": tools}])

        def texts(*words):
            return [tokenizer.decode(tokens) for tokens, _ in self.made("--train-on", "all", *words)]

        self.assertEqual(texts(), ["Hi plain", 'Hi [{"name": "größer <b>"}]'])
        self.assertEqual(texts("--chat-template", "default"), ["Hi plain", "Hi plain"])
        self.assertEqual(texts("--chat-template", "own.jinja"), ["<s>3True", "<s>False"])
        told = self.data("chats.jsonl", "-o", "out.tok", "--chat", "model", "--chat-template", "other", status=1)
        self.assertIn("model: no chat template is called 'other'", told)

    def test_dates(self):
        tokenizer = self.model("{{ strftime_now('%Y') | length }}{{ strftime_now('') }}{{ messages[0].role }}")
        self.lines([{"messages": [{"role": "user", "content": "a"}]}])
        self.assertEqual(tokenizer.decode(self.made("--train-on", "all")[0][0]), "4user")

    def test_bad_records(self):
        self.model(TEMPLATES["llama2"])
        user, answer = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
        for record, message in (
            ({"messages": []}, "chats.jsonl:2: 'messages' is empty"),
            ({"messages": "a"}, "chats.jsonl:2: 'messages' is not a list"),
            ({"messages": [user, {"content": "a"}]}, "chats.jsonl:2: message 2 of 'messages' has no 'role'"),
            ({"messages": [{"role": "user"}]}, "chats.jsonl:2: message 1 of 'messages' has no 'content'"),
            ({"messages": [user, user]}, "chats.jsonl:2: the chat template, line 8, column 82: Roles must alternate"),
            ({"messages": [user], "tools": "[]"}, "chats.jsonl:2: 'tools' is not a list of objects"),
            ({"text": "a", "id": 1}, "chats.jsonl:2: the record has neither 'messages' nor 'conversations' nor 'prompt' and 'completion'\n"
                                     "    help: its fields are: text, id"),
            ({"prompt": [user], "completion": []}, "chats.jsonl:2: 'completion' is empty")):
            self.assertIn(message, self.refused(record))
        with open(self.folder / "chats.jsonl", "a") as file:
            file.write('{"messages": [}\n')
        told = self.data("chats.jsonl", "-o", "out.tok", "--chat", "model", "--on-bad-record", "skip")
        self.assertIn("warning: 2 records were skipped; the first: chats.jsonl:2: 'completion' is empty", told)
        self.lines([{"messages": [user, answer]}])
        with open(self.folder / "chats.jsonl", "a") as file:
            file.write('{"messages": [}\n')
        self.assertIn("chats.jsonl:2:15: ", self.data("chats.jsonl", "-o", "out.tok", "--chat", "model", status=1))

    def test_inconsistent_templates(self):
        """A text of a message that depends on those after it is refused, but not where none is needed."""
        self.model("{% for m in messages %}{{ m.role }}{% if loop.last %} last{% endif %}: {{ m.content }}{% endfor %}")
        user, answer = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
        told = self.refused({"messages": [user, answer, user]})
        self.assertIn("chats.jsonl:2: message 2: the template renders what is before it differently", told)
        self.data("chats.jsonl", "-o", "out.tok", "--chat", "model", "--train-on", "all")
        self.model("{% macro say(m) %}{% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}{{ say(messages[0]) }}")
        self.assertIn("a block 'generation' of the chat template is within a macro", self.refused({"messages": [user]}))
        self.model("{% generation %}{{ messages[0].content }}")
        self.assertIn("the chat template, line 1", self.refused({"messages": [user]}))
        self.model("{% set _ = messages.append(1) %}")
        self.assertIn("it runs in a sandbox", self.refused({"messages": [user]}))

    def test_long_conversations(self):
        """Longer than what threads share out."""
        tokenizer = self.model(TEMPLATES["chatml_marked"], "qwen2")
        record = {"messages": [m for one in random_conversations(SEED, 40) for m in one["messages"]]}
        record["messages"][3]["content"] *= 3000
        self.compare(tokenizer, [record])

    def test_memory(self):
        """Of a conversation with many answers, each of which is found by two renderings: no more than a few times its text."""
        self.model("{% for m in messages %}{{ m.role + m.content }}{% endfor %}")
        messages = [{"role": role, "content": "some words " * 180} for _ in range(400) for role in ("user", "assistant")]
        self.lines([{"messages": messages}])
        run = subprocess.Popen([GENERATOR, "data", "chats.jsonl", "-o", "out.tok", "--chat", "model"], cwd=self.folder,
                               stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = status
        self.assertEqual(status, 0)
        self.assertLess(usage.ru_maxrss, 300 << 10)  # KiB; all renderings are 600 MiB

    def kill(self, words, note):
        """Kills a run after its first note of the progress."""
        for _ in range(20):  # one that ends before it is killed proves nothing
            run = subprocess.Popen([GENERATOR, *words], cwd=self.folder, stdout=subprocess.DEVNULL)
            while run.poll() is None and not note.exists():
                time.sleep(0.002)
            run.kill()
            if run.wait() != 0 and note.exists():
                return
        self.fail("no run was killed in time")

    def test_killed(self):
        """A run that was killed resumes, and the file has the same bytes."""
        self.model(TEMPLATES["chatml"])
        self.lines(random_conversations(SEED, 300) * 100)
        words = ("data", "chats.jsonl", "-o", "killed.tok", "--chat", "model")
        note = self.folder / "killed.tok.progress"
        self.data("chats.jsonl", "-o", "whole.tok", "--chat", "model")
        self.kill(words, note)
        self.assertIn("resumes at byte", self.data(*words[1:]))
        self.assertEqual((self.folder / "killed.tok").read_bytes(), (self.folder / "whole.tok").read_bytes())
        self.kill(words, note)
        self.assertIn("it is a file of the chat model", self.data("chats.jsonl", "-o", "model/tokenizer.json", "--chat", "model", status=1))
        (self.folder / "chats.jsonl").touch()  # so does a file that was written to, even of the same size
        self.assertNotIn("resumes at byte", self.data(*words[1:]))
        self.kill(words, note)
        self.model(TEMPLATES["chatml"].replace("im_end", "end"))  # another template begins again
        self.assertNotIn("resumes at byte", self.data(*words[1:]))
        self.data("chats.jsonl", "-o", "whole.tok", "--chat", "model")
        self.assertEqual((self.folder / "killed.tok").read_bytes(), (self.folder / "whole.tok").read_bytes())

    def test_marks_are_kept(self):
        """By a copy, as the documents are, and through inspect."""
        self.model(TEMPLATES["chatml_marked"])
        self.lines(random_conversations(SEED, 9))
        trained = sum(mark for _, document in self.made() for mark in document)
        self.assertIn(f"trained     {trained} tokens", self.data("inspect", "out.tok"))
        self.data("out.tok", "out.tok", "-o", "twice.tok", "--format", "tokens")
        self.assertEqual(read(self.folder / "twice.tok"), 2 * read(self.folder / "out.tok"))


if __name__ == "__main__":
    unittest.main()
