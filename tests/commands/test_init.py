"""accel-gen init: jobs of every model that comes along, of a model in C, of a folder of Hugging Face that transformers wrote, and by
questions. They pass check and plan, and train three steps."""

import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import transformers
import yaml
from chats_made import CHATML_MARKED, tokenizer_of

TREE = Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
MODELS = TREE / "examples" / "models"
TEXT = "A job is a page of keys. " * 400
TOKENS = ["gpt2", "nanogpt", "llama", "mistral", "mixtral", "gemma", "qwen3", "qwen_moe", "gpt_neox", "mamba", "bert", "t5", "gru_bytes",
          "qwen2", "phi", "phi3", "gemma2", "gemma3", "roberta", "distilbert", "albert"]
LLAMA = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 16, "intermediate_size": 24,
         "vocab_size": 256, "max_position_embeddings": 32, "tie_word_embeddings": True, "rms_norm_eps": 1e-5}


class Init(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "corpus.txt").write_text(TEXT)

    def command(self, *words, status=0):
        done = subprocess.run([GENERATOR, *words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def init(self, *words, status=0, **sets):
        (self.folder / "job.yaml").unlink(missing_ok=True)
        flags = [word for key, value in sets.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
        return self.command("init", *words, *flags, status=status)

    def job(self):
        """The job, which check and plan take."""
        self.command("check", "job.yaml")
        self.assertIn("parameters", self.command("plan", "job.yaml"))
        return yaml.safe_load((self.folder / "job.yaml").read_text())

    def train(self):
        self.command("build", "job.yaml", "-o", "trainer")
        done = subprocess.run(["./trainer"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\n +3 +\d+\.\d+")
        return done.stdout

    def test_names(self):
        for name in TOKENS:
            with self.subTest(model=name):
                self.init("--model", name, "--data", "corpus.txt")
                job = self.job()
                self.assertEqual((self.folder / job["model"]["source"]).resolve(), MODELS / f"{name}.c")
                self.assertEqual(job["data"]["train"], {"path": "corpus.txt", "format": "bytes"})
        (self.folder / "gpt2").mkdir()  # a folder does not take the name of a model
        self.init("--model", "gpt2", "--data", "corpus.txt")
        (self.folder / "rows.csv").write_text("1,2,3,0\n4,5,6,1\n" * 20)
        self.init("--model", "mlp_table", "--data", "rows.csv", data__batch_size=2)
        self.assertEqual(self.job()["data"]["features"], 3)

    def test_folder(self):
        """Its values, its weights and what its tokenizer asks for; and it trains."""
        config = transformers.LlamaConfig(**LLAMA)
        transformers.LlamaForCausalLM(config).save_pretrained(self.folder / "llama")
        said = self.init("llama", "--data", "corpus.txt", training__steps=3, tracking__every=1, data__batch_size=2)
        self.assertIn("job.yaml: ", said)
        job = self.job()
        values = job["model"]["config"]
        for key in set(LLAMA) - {"max_position_embeddings"}:
            self.assertEqual(float(values[key]), LLAMA[key], key)
        self.assertEqual((values["head_dim"], values["rope.theta"], values["rope.kind"]), (8, 10000, "ROPE_DEFAULT"))
        self.assertEqual((job["model"]["weights"], job["data"]["sequence_length"]), ("llama", 32))
        self.train()
        (self.folder / "llama" / "tokenizer.json").write_text("{}")
        self.assertIn("accel-gen data corpus.txt -o corpus.txt.tok --tokenizer llama/tokenizer.json", self.init("llama", "--data", "corpus.txt"))
        self.assertEqual(self.job()["data"]["train"], {"path": "corpus.txt.tok", "format": "tokens"})
        self.init("llama/config.json", "--data", "corpus.txt")
        (self.folder / "llama" / "model.safetensors").rename(self.folder / "llama" / "pytorch_model.bin")
        self.init("llama", "--data", "corpus.txt")
        self.assertEqual(self.job()["model"]["weights"], "llama")
        for change, message in (({"hidden_act": "relu"}, "of 'hidden_act'"), ({"attention_bias": True}, "of 'attention_bias'"), ({"alibi": 2}, "alibi (2)"),
                                ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "longrope"), ({"hidden_size": "16"}, "'hidden_size' is not a value")):
            (self.folder / "llama" / "config.json").write_text(json.dumps({**json.loads(config.to_json_string()), "architectures": ["LlamaForCausalLM"], **change}))
            self.assertIn(message, self.init("llama", "--data", "corpus.txt", status=2))
            self.assertFalse((self.folder / "job.yaml").exists())

    def test_misspelt(self):
        """A key that no model has, near one that is missing, by a field's name or by a key of the model's table."""
        for kind, config, wrong, right in ((transformers.LlamaForCausalLM, transformers.LlamaConfig(**LLAMA), "hiden_size", "hidden_size"),
                                           (transformers.LlamaForCausalLM, transformers.LlamaConfig(**LLAMA), "num_hidden_layer", "num_hidden_layers"),
                                           (transformers.T5ForConditionalGeneration, transformers.T5Config(d_model=8, d_kv=4, d_ff=8, num_heads=2, num_layers=1,
                                                                                                           vocab_size=20), "d_modle", "d_model")):
            values = {**json.loads(config.to_json_string()), "architectures": [kind.__name__]}
            values[wrong] = values.pop(right)
            (self.folder / "base").mkdir(exist_ok=True)
            (self.folder / "base" / "config.json").write_text(json.dumps(values))
            said = self.init("base", "--data", "corpus.txt", status=2)
            self.assertIn(f"base/config.json: error: '{right}' is missing", said)
            self.assertIn(f"has no '{wrong}'\n    help: did you mean '{right}'?", said)

    def test_positions(self):
        """RoBERTa's first position is the one after its padding's; a mixture's layers without experts have the width that the file says."""
        small = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 300}
        roberta = transformers.RobertaConfig(**small, max_position_embeddings=20, pad_token_id=2)
        transformers.RobertaForMaskedLM(roberta).save_pretrained(self.folder / "roberta")
        self.init("roberta", "--data", "corpus.txt", "--lora", data__masking__mask_token=3, training__steps=3, tracking__every=1, data__batch_size=2)
        self.assertEqual(self.job()["data"]["sequence_length"], 17)
        self.assertEqual(self.job()["model"]["lora"]["targets"], ["query", "value"])  # of a header that the model includes
        self.train()
        mixture = transformers.Qwen2MoeConfig(**{**small, "intermediate_size": 40}, num_key_value_heads=2, decoder_sparse_step=2, num_experts=4,
                                              num_experts_per_tok=2, moe_intermediate_size=8, shared_expert_intermediate_size=8)
        transformers.Qwen2MoeForCausalLM(mixture).save_pretrained(self.folder / "mixture")
        self.init("mixture", "--data", "corpus.txt", training__steps=3, tracking__every=1, data__batch_size=2)
        self.assertEqual(self.job()["model"]["config"]["intermediate_size"], 40)
        self.train()

    def test_chats(self):
        """The command for the data that is printed, the job, and three steps with adapters."""
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**LLAMA, "vocab_size": 800})).save_pretrained(self.folder / "llama")
        tokenizer_of("llama3", TEXT + (MODELS / "gpt2.c").read_text(), CHATML_MARKED).save_pretrained(self.folder / "llama")
        turn = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A job is a page of keys."}]}
        (self.folder / "chats.jsonl").write_text(f"{json.dumps(turn)}\n" * 30)
        said = self.init("llama", "--data", "chats.jsonl", "--lora", training__steps=3, tracking__every=1, data__batch_size=2)
        told = re.search(r"write its tokens: accel-gen (data .*)", said)[1]
        self.assertEqual(told, "data chats.jsonl -o chats.jsonl.tok --chat llama")
        self.assertIn("tokens to train on", self.command(*told.split()))
        job = self.job()
        self.assertEqual(job["model"]["lora"], {"targets": ["q_proj", "v_proj"], "rank": 8, "alpha": 16})
        self.assertEqual((job["data"]["packing"], job["accumulation"]["normalize"]), ("pad", "tokens"))
        self.train()
        (self.folder / "texts.jsonl").write_text('{"text": "a messages"}\n' * 3)
        self.assertIn("data texts.jsonl -o texts.jsonl.tok --tokenizer llama/tokenizer.json --text-field text",
                      self.init("llama", "--data", "texts.jsonl"))
        transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
                                                                      image_size=8, patch_size=4)).save_pretrained(self.folder / "vit")
        (self.folder / "rows.csv").write_text("1,2,0\n" * 9)
        self.assertIn("a row of the data has 2 numbers before the label, and the model's is of 192", self.init("vit", "--data", "rows.csv", status=2))
        (self.folder / "llama" / "chat_template.jinja").unlink()
        self.assertIn("llama has no chat template for the messages", self.init("llama", "--data", "chats.jsonl", status=2))
        self.assertIn("chats need a tokenizer", self.init("--model", "gpt2", "--data", "chats.jsonl", status=2))

    def test_own_model(self):
        """The keys of its config with their defaults; what has none is asked for or given."""
        text = (MODELS / "gru_bytes.c").read_text().replace("int vocab_size, block_size;", "int vocab_size, block_size;\n  int tricks;\n  bool odd;")
        (self.folder / "own.c").write_text(text.replace(".vocab_size = 256}", ".vocab_size = 256, .odd = true}"))
        self.assertIn("the model's 'tricks' has no default", self.init("own.c", "--data", "corpus.txt", status=2))
        self.init("own.c", "--data", "corpus.txt", model__config__tricks=3, model__config__width=8, model__config__block_size=4, training__steps=3, tracking__every=1)
        job = self.job()
        self.assertEqual(job["model"], {"source": "own.c", "config": {"n_embd": 64, "width": 8, "vocab_size": 256, "block_size": 4, "tricks": 3, "odd": True}})
        self.train()

    def test_questions(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execv(GENERATOR, ["accel-gen", "init"])
        answers = ["nothing", "gpt2", "1", "2", "16", "", "32", "corpus.txt", "0", "4", "3", ""]
        os.write(terminal, "".join(f"{answer}\n" for answer in answers).encode())
        shown = b""
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:
            pass  # its other end is closed
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, shown.decode())
        job = self.job()
        self.assertEqual({key: job["model"]["config"][key] for key in ("n_layer", "n_head", "n_embd", "vocab_size", "block_size")},
                         {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 32})
        self.assertEqual((job["data"]["batch_size"], job["training"]["steps"], job["optimizer"]["lr"]), (4, 3, 0.001))
        self.assertIn("'batch_size' must be at least 1", shown.decode())

    def test_refused(self):
        self.assertIn("there is no model 'gtp2'", self.init("--model", "gtp2", "--data", "corpus.txt", status=2))
        self.assertIn("there is no folder of a model './lama'", self.init("./lama", "--data", "corpus.txt", status=2))
        for name, config, help in (("a", {"architectures": ["LLamaForCausalLM"]}, "did you mean 'LlamaForCausalLM'?"),
                                   ("b", {"_class_name": "UNet2DConditionModel"}, "Qwen2ForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM, Qwen2MoeForCausalLM,")):
            (self.folder / name).mkdir()
            (self.folder / name / "config.json").write_text(json.dumps(config))
            said = self.init(name, "--data", "corpus.txt", status=2)
            self.assertIn(f"no model here is of '{list(config.values())[0] if name == 'b' else 'LLamaForCausalLM'}'", said)
            self.assertIn(help, said)
        self.assertIn("no data is named", self.init("--model", "gpt2", status=2))
        self.assertIn("no model is named", self.init("--data", "corpus.txt", status=2))
        self.assertIn("cannot read the data 'none.txt'", self.init("--model", "gpt2", "--data", "none.txt", status=2))
        for name, begin in (("a.jsonl.gz", b"\x1f\x8b\x08\0\0\0\0\0"), ("a.txt.zst", b"\x28\xb5\x2f\xfd\0\0\0\0")):
            (self.folder / name).write_bytes(begin + bytes(9000))
            self.assertIn(f"the data '{name}' is compressed", self.init("--model", "gpt2", "--data", name, status=2))
        self.assertIn("this model reads rows of numbers", self.init("--model", "mlp_table", "--data", "corpus.txt", status=2))
        self.assertIn("'image_size' has no default", self.init("--model", "vit", "--data", "corpus.txt", status=2))
        self.assertIn("give one of them", self.init("own.c", "--model", "gpt2", "--data", "corpus.txt", status=2))
        self.assertFalse((self.folder / "job.yaml").exists())
        (self.folder / "job.yaml").write_text("mine")
        self.assertIn("job.yaml is there", self.command("init", "--model", "gpt2", "--data", "corpus.txt", status=1))
        self.assertEqual((self.folder / "job.yaml").read_text(), "mine")


if __name__ == "__main__":
    unittest.main()
