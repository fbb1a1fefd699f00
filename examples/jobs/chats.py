"""Writes build/chats for examples/jobs/chats.yaml: conversations that are made up, and what a folder of Hugging Face has for them:
a tokenizer whose tokens are bytes and four special ones, and a chat template that marks the assistant's text. Takes nothing but
Python."""

import json
import pathlib
import random

FOLDER = pathlib.Path("build/chats")
SPECIAL = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
TEMPLATE = """{% for message in messages %}
{{ '<|' + message.role + '|>' }}
{%- if message.role == 'assistant' %}{% generation %}{{ message.content + eos_token }}{% endgeneration %}
{%- else %}{{ message.content + eos_token }}{% endif %}
{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""


def byte_characters():
    """The characters by which GPT-2's tokenizer spells bytes: those that are printable, and others from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def tokenizer():
    added = [{"id": 256 + i, "content": text, "special": True, "normalized": False, "single_word": False, "lstrip": False,
              "rstrip": False} for i, text in enumerate(SPECIAL)]
    vocabulary = {character: byte for byte, character in enumerate(byte_characters())}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    return {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}


def conversation(rng):
    messages = [{"role": "system", "content": "Add."}] if rng.random() < 0.3 else []
    for _ in range(rng.randint(1, 3)):
        a, b = rng.randint(0, 20), rng.randint(0, 20)
        messages += [{"role": "user", "content": f"{a} + {b}?"}, {"role": "assistant", "content": f"It is {a + b}."}]
    return {"messages": messages}


def main():
    rng = random.Random(1337)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (FOLDER / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "tokenizer_class": "PreTrainedTokenizerFast"}))
    (FOLDER / "chat_template.jinja").write_text(TEMPLATE)
    (FOLDER / "chats.jsonl").write_text("".join(f"{json.dumps(conversation(rng))}\n" for _ in range(2000)))


if __name__ == "__main__":
    main()
