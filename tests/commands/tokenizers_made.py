"""Tokenizers of the families of Hugging Face's library, trained on a text: what published ones of each family have, step by
step."""

import base64
import json
import struct
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)"
          r"|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
DEEPSEEK_V3 = ("[!\"#$%&'" r"()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+"
               r"|\s+(?!\S)|\s+")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BYTES = pre_tokenizers.ByteLevel
BLANK = "▁"


def splits(*steps):
    steps = [pre_tokenizers.Split(Regex(one), "isolated") if isinstance(one, str) else one for one in steps]
    return pre_tokenizers.Sequence(steps)


def byte_level(*steps):
    return splits(*steps, BYTES(add_prefix_space=False, use_regex=False))


# ---- Charsmaps ----


def units_of(entries):
    """A double array (darts-clone) of texts to offsets: every node takes the first block of 256 units that is free."""
    root = {}
    for text, value in entries.items():
        node = root
        for byte in text.encode():
            node = node.setdefault(byte, {})
        node[-1] = value
    units, blocks = [0] * 256, 1
    stack = [(root, 0)]
    while stack:
        node, at = stack.pop()
        base = blocks * 256
        blocks += 1
        units += [0] * 256
        # The offset is relative, by exclusive or; bit 9 says that it is in blocks of 256.
        units[at] |= ((at ^ base) & ~0xFF) << 2 | 1 << 9
        low = at & 0xFF
        for byte, child in node.items():
            if byte == -1:
                units[at] |= 1 << 8
                units[base ^ low] = 1 << 31 | child
            else:
                place = base ^ low ^ byte
                units[place] |= byte
                stack.append((child, place))
    return units


def charsmap(replacements):
    texts, entries = b"", {}
    for text, by in replacements.items():
        entries[text] = len(texts)
        texts += by.encode() + b"\0"
    units = units_of(entries)
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + texts


def nmt_nfkc():
    """Like SentencePiece's: compatibility forms of single characters, white space to blanks, some characters to nothing."""
    table = {}
    for code in [*range(1, 0x2600), *range(0x3000, 0x3400), *range(0xFB00, 0xFFF0)]:
        if 0xD800 <= code < 0xE000 or unicodedata.category(chr(code)) == "Cn":
            continue
        form = unicodedata.normalize("NFKC", chr(code))
        if form != chr(code):
            table[chr(code)] = form
    table |= {c: " " for c in "\t\n\r\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\u200b\u200e"}
    table |= {chr(c): "" for c in [*range(1, 9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F]}
    table |= {unicodedata.normalize("NFD", c): c for c in "éñüåÅḍ가각ạ"}
    return charsmap(table)


# ---- Families ----


def tokenizer_of(model, normalizer, pre_tokenizer, decoder=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder is not None:
        tokenizer.decoder = decoder
    return tokenizer


def trained_bpe(tokenizer, text, size, special=("<|end|>",), bytes_too=True, **more):
    alphabet = BYTES.alphabet() if bytes_too else []
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=[*special], initial_alphabet=alphabet, show_progress=False, **more)
    tokenizer.train_from_iterator(text.split("\n"), trainer)
    return tokenizer


def of_bytes(pre_tokenizer, normalizer=None, **more):
    def make(text, size):
        tokenizer = tokenizer_of(models.BPE(**more), normalizer, pre_tokenizer, decoders.ByteLevel())
        trained_bpe(tokenizer, text, size)
        tokenizer.add_special_tokens(["<|e", "<|end|><|"])
        tokenizer.add_tokens([AddedToken("the re", normalized=True)])
        return tokenizer
    return make


def roberta(text, size):
    tokenizer = tokenizer_of(models.BPE(), None, BYTES(add_prefix_space=True, trim_offsets=True), decoders.ByteLevel())
    trained_bpe(tokenizer, text, size, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<|end|>", rstrip=True)])
    tokenizer.add_tokens([AddedToken("the", single_word=True)])
    return tokenizer


def clip(text, size):
    """The suffix ends the vocabulary's last bytes too, so every byte has both tokens."""
    normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), BYTES(add_prefix_space=False)])
    made = tokenizer_of(models.BPE(end_of_word_suffix="</w>"), normalizer, pre_tokenizer)
    trained_bpe(made, text, size, end_of_word_suffix="</w>")
    definition = json.loads(made.to_str())
    vocabulary = definition["model"]["vocab"]
    for character in BYTES.alphabet():
        vocabulary.setdefault(character + "</w>", len(vocabulary))
    definition["model"]["unk_token"] = "<|end|>"
    definition["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    tokenizer = Tokenizer.from_str(json.dumps(definition))
    tokenizer.add_special_tokens([AddedToken("<|startoftext|>", normalized=True)])
    return tokenizer


def fallback_decoder():
    return decoders.Sequence([decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def of_characters(normalizer, pre_tokenizer, fuses=True, falls_back=True):
    special = ["<unk>", "<s>", "<|end|>", *(f"<0x{byte:02X}>" for byte in range(256) if falls_back)]

    def make(text, size):
        model = models.BPE(unk_token="<unk>", fuse_unk=fuses, byte_fallback=falls_back)
        tokenizer = tokenizer_of(model, normalizer, pre_tokenizer, fallback_decoder())
        trained_bpe(tokenizer, text.replace("q", ""), size + 300, special, bytes_too=False, limit_alphabet=150)
        definition = json.loads(tokenizer.to_str())
        definition["added_tokens"] = definition["added_tokens"][:3]
        return Tokenizer.from_str(json.dumps(definition))
    return make


def word_pieces(**options):
    def make(text, size):
        model = models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20)
        tokenizer = tokenizer_of(model, normalizers.BertNormalizer(**options), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|end|>"]
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False, limit_alphabet=120)
        tokenizer.train_from_iterator(text.split("\n"), trainer)
        tokenizer.add_tokens([AddedToken("The Re", normalized=True)])
        return tokenizer
    return make


def unigram(normalizer, pre_tokenizer, falls_back=False):
    def make(text, size):
        tokenizer = tokenizer_of(models.Unigram(), normalizer, pre_tokenizer, decoders.Metaspace())
        special = ["<pad>", "<unk>", "</s>", "<|end|>", *(f"<0x{byte:02X}>" for byte in range(256) if falls_back)]
        trainer = trainers.UnigramTrainer(vocab_size=size + len(special), special_tokens=special, unk_token="<unk>", show_progress=False)
        tokenizer.train_from_iterator(text.split("\n"), trainer)
        definition = json.loads(tokenizer.to_str())
        definition["model"]["byte_fallback"] = falls_back
        definition["added_tokens"] = definition["added_tokens"][:4]
        tokenizer = Tokenizer.from_str(json.dumps(definition))
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
        return tokenizer
    return make


def words(text, size):
    tokenizer = tokenizer_of(models.WordLevel(unk_token="<unk>"), normalizers.NFKC(), pre_tokenizers.Whitespace())
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=["<unk>", "<|end|>"], show_progress=False)
    tokenizer.train_from_iterator(text.split("\n"), trainer)
    return tokenizer


def metaspace(scheme, *steps):
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.Metaspace(BLANK, prepend_scheme=scheme)])


def llama2_normalizer():
    return normalizers.Sequence([normalizers.Prepend(BLANK), normalizers.Replace(" ", BLANK)])


def sentence_piece(*steps):
    return normalizers.Sequence([normalizers.Precompiled(nmt_nfkc()), *steps])


QUOTES = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
WHITE = pre_tokenizers.WhitespaceSplit

# Name to a function of a text and a size.
FAMILIES = {
    "gpt2": of_bytes(BYTES(add_prefix_space=False)),
    "space": of_bytes(BYTES(add_prefix_space=True)),
    "llama3": of_bytes(byte_level(LLAMA3), ignore_merges=True),
    "qwen2": of_bytes(byte_level(QWEN2), normalizers.NFC()),
    "starcoder": of_bytes(splits(pre_tokenizers.Digits(individual_digits=True), BYTES(add_prefix_space=False))),
    "deepseek_v3": of_bytes(byte_level(r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_V3)),
    "deepseek": of_bytes(byte_level(r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", LLAMA3)),
    "roberta": roberta,
    "clip": clip,
    "llama2": of_characters(llama2_normalizer(), None),
    "mistral": of_characters(None, pre_tokenizers.Metaspace(BLANK, prepend_scheme="first", split=False)),
    "gemma": of_characters(normalizers.Replace(" ", BLANK), pre_tokenizers.Split(" ", "merged_with_previous")),
    "unfused": of_characters(normalizers.NFKC(), pre_tokenizers.Split(" ", "merged_with_next"), fuses=False, falls_back=False),
    "bert": word_pieces(lowercase=True),
    "bert_cased": word_pieces(lowercase=False, strip_accents=True),
    "bert_plain": word_pieces(lowercase=False, clean_text=False, handle_chinese_chars=False),
    "t5": unigram(sentence_piece(), metaspace("always")),
    "t5_old": unigram(sentence_piece(), metaspace("always", WHITE())),
    "xlm_roberta": unigram(sentence_piece(normalizers.Replace(Regex(" {2,}"), " ")), metaspace("always", WHITE())),
    "albert": unigram(normalizers.Sequence([*QUOTES, normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                            normalizers.Precompiled(nmt_nfkc())]), metaspace("always", WHITE())),
    "deberta": unigram(normalizers.Sequence([normalizers.Strip(), normalizers.Precompiled(nmt_nfkc()),
                                             normalizers.Replace(Regex(" {2,}"), " ")]), metaspace("always")),
    "unigram_bytes": unigram(normalizers.NFKC(), splits(pre_tokenizers.Punctuation("contiguous"), WHITE()), falls_back=True),
    "words": words,
}
