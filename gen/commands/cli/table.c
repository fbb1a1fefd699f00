#include "gen/commands/cli/table.h"

#include <stddef.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/values.h"

enum { MANY = 1 << 30 };

const struct command command_table[] = {
    {.name = "JOB",
     .summary = "write the program of a job",
     .about =
         "Any C17 compiler compiles the program, which is linked with the runtime; its first comment says how. Write "
         "a job whose file has the name of a command with its folder: ./plan.",
     .forms = {{"JOB -o FILE.c", "write the program of a job"}},
     .needed = {"a job file"},
     .most = 1,
     .needs_output = true,
     .run = command_generate},
    {.name = "init",
     .summary = "write a first job: of a model's name, its C, or a folder",
     .about =
         "Takes the name of a model that comes along (gpt2, llama), a model in C with its config's defaults, or a "
         "folder "
         "of Hugging Face with its config.json, weights and tokenizer; what the model cannot represent is refused with "
         "its key. Asks for the rest in a terminal, else takes a small model's sizes. Only a job that has a plan is "
         "written.",
     .page = "models.md#a-first-job",
     .forms = {{"init --model NAME --data FILE [-o JOB]", "write a job that trains a model of this name"},
               {"init MODEL.c --data FILE [-o JOB]", "write a job of a model in C"},
               {"init FOLDER --data FILE [--lora] [-o JOB]", "write a job that continues a published model"}},
     .most = 1,
     .run = command_init},
    {.name = "build",
     .summary = "write the program of a job and compile it",
     .about =
         "Compiles with $CC (cc) and $CFLAGS and links with the runtime, which pkg-config finds next to the command, "
         "or as accel-runtime on its path.",
     .forms = {{"build JOB -o PROGRAM", "write and compile the program of a job"},
               {"build JOB --bundle DIR", "write the program and all its sources, to compile elsewhere"}},
     .needed = {"a job file"},
     .most = 1,
     .needs_output = true,
     .run = command_build},
    {.name = "plan",
     .summary = "print what a program needs: parameters, work, memory, traffic",
     .page = "performance.md",
     .forms = {{"plan JOB", "print what a program needs: parameters, work, memory, traffic"},
               {"plan JOB --html FILE.html", "write it as a page: memory over a step, mesh, schedule of a pipeline"}},
     .needed = {"a job file"},
     .most = 1,
     .run = command_plan},
    {.name = "estimate",
     .summary = "print what a published model takes to load and to train",
     .about =
         "Of a folder of Hugging Face with a config.json, of that file alone, or of a job: finds the model by its "
         "architectures, reads it with that config, and plans it with each optimizer and precision on one rank, and by "
         "ZeRO stage on the job's ranks (8). No weights are needed. --set changes the job, such as data.batch_size=4 "
         "devices.per_node=16 optimizer.name=lion.",
     .page = "memory.md#estimates",
     .forms = {{"estimate FOLDER", "print the memory that a published model takes to load and to train"},
               {"estimate FILE.json", "the same of its config.json alone"},
               {"estimate JOB", "the same of a job's model"}},
     .needed = {"a folder with a config.json, such a file, or a job"},
     .most = 1,
     .run = command_estimate},
    {.name = "tune",
     .summary = "measure which kernels are fastest on this machine",
     .about = "Measures which variants of the kernels of the job's trainer are fastest here, and writes a table that "
              "devices.tuning and --tuning read.",
     .page = "performance.md#tuning",
     .forms = {{"tune JOB", "measure which kernels are fastest on this machine; write a table for plans"}},
     .needed = {"a job file"},
     .most = 1,
     .run = command_tune},
    {.name = "check",
     .summary = "check a job with its model; print it with all defaults",
     .forms = {{"check JOB", "check a job, its model and its hooks; with --resolved, print it with all defaults"},
               {"check --resolved PROGRAM.c", "print the job of a trainer, or of a checkpoint's folder, with all "
                                              "defaults"}},
     .needed = {"a job file"},
     .most = 1,
     .run = command_check},
    {.name = "model",
     .summary = "print a model's parameters, inputs and work",
     .about =
         "Needs no job: --config gives the model's config, --set data.sequence_length=N (128), --set "
         "data.features=N and --set 'data.inputs={...}' the sizes of its inputs. A model that reads features needs "
         "data.features. Of a folder of Hugging Face also each tensor of its weights with the parameter that it "
         "is, and whether one is missing or unused.",
     .page = "models.md",
     .forms = {{"model check FILE [--set data.features=N]",
                "print a model's parameters, inputs and work, without a job"},
               {"model check FOLDER [--logits]", "the same of a published model, with its tensors and logits"}},
     .words = " check ",
     .only_words = true,
     .needed = {"'check'", "a model in C, or a folder of Hugging Face"},
     .most = 2,
     .run = command_model},
    {.name = "audit",
     .summary = "prove what a program does, from its text alone",
     .about = "Prints claims about a program in C, each with a verdict and evidence.",
     .page = "audit.md",
     .forms = {{"audit PROGRAM.c", "prove what a program does, from its text alone"},
               {"audit --regenerate FILE.manifest.json", "check that its inputs still give the same program"},
               {"audit --grammar", "print what the text of a program may hold"}},
     .needed = {"a program in C"},
     .most = 1,
     .run = command_audit},
    {.name = "verify",
     .summary = "compare what a trainer computes with its job, in float64",
     .about =
         "Builds the trainer, runs some of its steps on data that are made for that, and compares each of them with "
         "a second reading of the model, the optimizer and the schedule, in every element. The exit status is 1 "
         "where something differs, 2 where something cannot be told.",
     .page = "verify.md",
     .forms = {{"verify PROGRAM.c --job JOB", "compare what a trainer computes with its job, in float64"}},
     .needed = {"a trainer in C"},
     .most = 1,
     .run = command_verify},
    {.name = "explain",
     .summary = "print what a line of a program comes from",
     .about =
         "Prints which line of a template, which line of the model and which keys of the job a line comes from, or "
         "which lines come from a key. Needs the manifest next to the program, which --manifest writes.",
     .page = "provenance.md",
     .forms = {{"explain PROGRAM.c:LINE", "print what a line of a program comes from"},
               {"explain --key KEY PROGRAM.c", "print the lines that come from a key"}},
     .needed = {"a line of a program, such as trainer.c:812,"},
     .most = 1,
     .run = command_explain},
    {.name = "diff",
     .summary = "compare two jobs, programs or manifests",
     .about = "Compares the jobs, the plans and the code of the step path. The exit status is 1 when they differ, 2 "
              "when one cannot be read.",
     .page = "provenance.md",
     .forms = {{"diff A B", "compare two jobs, programs or manifests"},
               {"diff A B --html FILE.html", "write what differs as a page"}},
     .needed = {"a job, a program or a manifest", "a second one"},
     .most = 2,
     .run = command_diff},
    {.name = "render",
     .summary = "render a Jinja template with values from YAML or JSON",
     .about = "Templates that it includes, imports or extends are looked for in its folder.",
     .page = "jinja.md",
     .forms = {{"render TEMPLATE [VALUES]", "render a Jinja template with values from YAML or JSON"}},
     .needed = {"a template"},
     .most = 2,
     .run = command_render},
    {.name = "data",
     .summary = "write a token file or arrays of images; print a token file",
     .about =
         "Writes the tokens of all files into one, with a checksum over all. A file is a document; with --text-field, "
         "--text-column and --chat a record is one, and files of tokens keep those that they have. After a kill, the "
         "same command with --tokenizer or --chat resumes where it was, except with --task preference. Of a folder of "
         "images, "
         "or of images in shards of WebDataset, it writes arrays of NumPy; the .txt or .json of a shard's samples are "
         "texts and records. NAME-{000..009}.tar are ten files. encode and decode read standard input.",
     .page = "data.md",
     .forms = {{"data FILE... -o FILE.tok", "write the tokens of files into one file"},
               {"data TEXT... -o FILE.tok --tokenizer TOKENIZER.json", "write the tokens of texts into one file"},
               {"data RECORDS... -o FILE.tok --text-field NAME", "write the tokens of records' texts"},
               {"data RECORDS... -o FILE.npz --label NAME", "write rows of labelled texts, for data.inputs"},
               {"data PAIRS... -o FILE.npz --chat FOLDER --task preference",
                "write pairs of completions, for data.inputs"},
               {"data CHATS... -o FILE.tok --chat FOLDER", "write the tokens of chats, and which are trained on"},
               {"data FOLDER -o FILE.npy [--size HxW]",
                "write images, a folder for each class, as an array, and labels"},
               {"data SHARD.tar... -o FILE.npy [--size HxW] [--label NAME]",
                "write the images of shards as an array, and labels"},
               {"data PACKED.npz -o FILE.npz", "write the arrays of a compressed archive into one that a job reads"},
               {"data inspect FILE", "print what is in a token file"},
               {"data encode TOKENIZER.json", "print the token numbers of a text"},
               {"data decode TOKENIZER.json", "print the text of token numbers"}},
     .words = " inspect encode decode ",
     .needed = {"a file to read"},
     .most = MANY,
     .run = command_data},
    {.name = "launch",
     .summary = "start the processes of a program",
     .about = "Prints and runs the command that starts PROGRAM, with as many processes as it has ranks by the JOB or, "
              "without one, by itself. The FLAGs are PROGRAM's.",
     .page = "launching.md",
     .forms = {{"launch [JOB] PROGRAM [FLAG]...", "start the processes of a program"},
               {"launch --write ENGINE JOB PROGRAM [FLAG]...", "write what an engine starts them by"}},
     .needed = {"a job file", "a program"},
     .most = 2,
     .has_rest = true,
     .is_last = is_program,
     .run = command_launch},
    {.name = "checkpoint",
     .summary = "inspect, verify and compare checkpoints; merge shards",
     .about = "The exit status is 1 when a checkpoint is damaged, when two differ, and when there is none.",
     .page = "checkpoints.md",
     .forms = {{"checkpoint list DIR", "print the checkpoints of a project's folder"},
               {"checkpoint show DIR", "print the files and tensors of a checkpoint"},
               {"checkpoint verify DIR", "check that all files are as they were written"},
               {"checkpoint diff DIR DIR", "print how two checkpoints differ"},
               {"checkpoint merge DIR -o FILE", "write the shards of a model as one safetensors file"}},
     .words = " list show verify diff merge ",
     .only_words = true,
     .needed = {"what to do", "the folder of a checkpoint"},
     .most = 3,
     .run = command_checkpoint},
    {.name = "report",
     .summary = "write runs as one page of HTML: curves, job, machine",
     .about =
         "Reads the project folder of each run, or its metrics.jsonl, and writes one file that any browser opens "
         "without a network: loss, evaluations, learning rate, norms and throughput of all runs over each other, norms "
         "of the parameters' gradients, kernels of a profile, texts, the job of each and in what they differ, and "
         "where they ran. The page is whole without scripts.",
     .page = "report.md",
     .forms = {{"report RUN... [--job JOB] -o FILE.html", "write runs as one page of HTML"},
               {"report RUN... [--job JOB] --serve [--port N]", "show it in a browser of this machine as they go"}},
     .needed = {"the folder of a run"},
     .most = MANY,
     .needs_output = true,
     .run = command_report},
    {.name = "watch",
     .summary = "show a run in the terminal as it goes",
     .about =
         "Reads the project folder of a run, again whenever it was written to: how far it is, its loss as a curve, "
         "evaluations, learning rate, norm, throughput, memory, and the time to its end. q ends it, and the run "
         "continues. Where standard output is no terminal, it prints what there is and ends.",
     .page = "runtime.md#watching-a-run",
     .forms = {{"watch RUN", "show a run in the terminal as it goes"}},
     .needed = {"the folder of a run"},
     .most = 1,
     .run = command_watch},
    {.name = "export",
     .summary = "write a model as GGUF or ONNX, a job's gradients as StableHLO",
     .about =
         "Takes a folder of Hugging Face, such as a run with checkpoint.folder_of leaves, with config.json, "
         "weights and, for GGUF, tokenizer.json. What such a file cannot represent exactly is refused with its key "
         "or the model's line. --set model.config.KEY=VALUE gives what config.json does not say, such as a ResNet's "
         "image_size. For stablehlo it takes a job, and writes what a micro-batch computes: the loss and the "
         "gradients.",
     .page = "models.md#gguf",
     .forms = {{"export FOLDER --format gguf -o FILE.gguf [--dtype f16]", "write a model as a file of GGUF"},
               {"export FOLDER --format onnx -o FILE.onnx [--sequence N]", "write its inference graph as ONNX"},
               {"export JOB --format stablehlo -o FILE.mlir [--compile]",
                "write a job's loss and gradients as StableHLO"}},
     .needed = {"a folder with a config.json, or a job"},
     .most = 1,
     .needs_output = true,
     .run = command_export},
    {.name = "import",
     .summary = "write a job from configurations of other trainers",
     .about =
         "Each key of the files becomes a key of the job, a sentence why it needs none, or a refusal with the reason. "
         "Several files make one job. The exit status is 1 when a key is refused or not known, 2 when a file cannot "
         "be read.",
     .page = "import.md",
     .forms = {{"import FILE... [-o JOB]", "print what the keys of configurations are here, and write a job of them"}},
     .needed = {"a configuration"},
     .most = MANY,
     .run = command_import},
    {.name = "config",
     .summary = "write the defaults of this machine, for jobs to extend",
     .about =
         "Asks in a terminal, with what the machine has as the answer to each question; ? explains a key. A job takes "
         "the file with extends: FILE and overrides what it likes. update adds the keys that a file lacks and leaves "
         "what it says; comments are dropped.",
     .page = "job.md#extends",
     .forms = {{"config [-o FILE]", "ask for the defaults of this machine, and write them for jobs to extend"},
               {"config --default [-o FILE]", "write what the machine has, and ask nothing"},
               {"config update FILE", "add what a file lacks"}},
     .words = " update ",
     .only_words = true,
     .most = 2,
     .run = command_config},
    {.name = "test",
     .summary = "run a small job on this machine or cluster, and check it",
     .about = "Generates, audits, compiles and runs a small job with data of its own: all ranks take their steps, "
              "operations among ranks give what each rank computes by itself, losses are those of one process, and a "
              "checkpoint is resumed bit for bit. The exit status is 1 when a check fails. Nothing is left of it.",
     .page = "launching.md#trying-a-machine",
     .forms = {{"test [--ranks N] [--hosts A,B,...]", "run a small job on this machine or cluster, and print what it "
                                                      "proved"}},
     .run = command_test},
    {.name = "env",
     .summary = "print what this machine has, to paste into an issue",
     .about = "Prints accel-gen's version and commit, the system, processors and instruction sets, memory, limits of "
              "control groups, GPUs, compilers, launchers, MPI, libraries with their versions, and the variables of "
              "the environment that matter.",
     .forms = {{"env", "print what this machine has: processors, memory, GPUs, compilers, libraries, variables"}},
     .run = command_env},
    {.name = "help",
     .summary = "explain a command, or a group or key of the job",
     .about =
         "Finds a key without its group, a value of a key, and what Accelerate and other trainers call something, with "
         "its class or without: Accelerator.gather, fsdp_sharding_strategy, --tp_size.",
     .page = "job.md",
     .forms = {{"help [TOPIC]", "explain a command, a group of the job, or a key such as optimizer.lr"}},
     .most = 1,
     .takes_dashes = true,
     .run = command_help},
    {.name = "version",
     .summary = "print the version, and the commit that it was built from",
     .page = "versions.md",
     .forms = {{"version", "print the version, and the commit that it was built from"}},
     .run = command_version},
    {0},
};

#define MEMBER(name) .member = offsetof(struct options, name)

const struct option option_table[] = {
    {"-o", "--output", "FILE", .completes = COMPLETES_FILE, MEMBER(output),
     .commands = " JOB build tune audit diff import config launch init report ",
     .summary =
         "where to write; - is standard output. The file appears whole or not at all; a file that is read is refused"},
    {"-o", "--output", "FILE", .completes = COMPLETES_FILE, .read = value_file, .commands = " data checkpoint export ",
     .summary = "where to write; not standard output. The file appears whole or not at all; a file that is read is "
                "refused"},
    {"--set", NULL, "KEY=VALUE", .completes = COMPLETES_SETTING, .read = value_override,
     .commands = " JOB build plan tune check model launch import config estimate init export ",
     .summary = "override a key of the job: --set optimizer.lr=3e-4 --set data.train.path=other.txt; the value is "
                "YAML, and null removes the key"},
    {"--program", NULL, "KIND", .choices = " train evaluate generate ", MEMBER(program),
     .commands = " JOB build plan diff ",
     .summary = "the trainer (default), the evaluator of its weights, or the generator of text"},
    {"--templates", NULL, "DIR", .completes = COMPLETES_FOLDER, MEMBER(templates), .commands = " JOB build ",
     .summary = "use the templates of a folder instead of the built-in ones"},
    {"--manifest", .commands = " JOB ", MEMBER(manifest), .page = "provenance.md",
     .summary = "write FILE.manifest.json next to FILE.c: where each line comes from, and digests"},
    {"--bundle", NULL, "DIR", .completes = COMPLETES_FOLDER, MEMBER(bundle), .commands = " build ",
     .summary =
         "instead of -o: write the program and all its sources into a folder. There 'sh build.sh' compiles it with "
         "a C compiler and what the job needs (nvcc, hipcc, oneDNN or MPI), without accel-gen, clang or ninja"},
    {"--provenance", .commands = " JOB build ", MEMBER(provenance), .page = "provenance.md",
     .summary = "write FILE.intoto.json and FILE.cdx.json next to FILE: what it was made from, for supply-chain tools"},
    {"--key", NULL, "KEY", .completes = COMPLETES_KEY, MEMBER(key), .commands = " explain ",
     .summary = "a key of the job, or a group of them"},
    {"--regenerate", .commands = " audit ", MEMBER(regenerate), .page = "provenance.md",
     .summary = "the argument is a manifest: check that its inputs still give the same program"},
    {"--grammar", .commands = " audit ", MEMBER(grammar), .page = "audit.md",
     .summary = "print what the text of a program may hold: directives, attributes, headers, names"},
    {"--nodes", NULL, "N", .read = value_nodes, .commands = " plan ", .page = "parallelism.md",
     .summary = "plan for N machines, and predict the time of their communication"},
    {"--latency", NULL, "US", .read = value_latency, .commands = " plan ",
     .summary = "predict for a network of this latency in microseconds (20)"},
    {"--bandwidth", NULL, "MB/S", .read = value_bandwidth, .commands = " plan ",
     .summary = "predict for a network of this bandwidth in megabytes a second (1250)"},
    {"--step", NULL, "MS", .read = value_step, .commands = " plan ",
     .summary = "the milliseconds of a step of one rank, to predict by"},
    {"--fit", .commands = " plan ", MEMBER(fits), .page = "memory.md#what-fits",
     .summary = "print the largest batch and the longest sequence that fit the memory, and what else could be trained"},
    {"--device-map", .commands = " plan ", MEMBER(device_map), .page = "memory.md#which-memory-modules-are-in",
     .summary = "print which memory each module is in, their sizes, the largest layer, and what streams"},
    {"--read-bandwidth", NULL, "MB/S", .read = value_read_bandwidth, .commands = " plan ",
     .summary = "with --device-map: the megabytes a second that come from another memory, for times"},
    {"--tuning", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(tuning), .commands = " JOB build plan check model ",
     .summary =
         "the table of measurements that chooses kernels and predicts step times, as devices.tuning; machine is this "
         "machine's own"},
    {"--rounds", NULL, "N", .read = value_rounds, .commands = " tune ", .summary = "how often each program is run (3)"},
    {"--measured", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(measured), .commands = " tune ",
     .page = "performance.md",
     .summary =
         "for a job on GPUs: the file that its trainer wrote on the machine with the GPU, with ACCEL_MEASURE=FILE in "
         "its environment"},
    {"--dump", NULL, "PASS", MEMBER(dump), .commands = " JOB plan ", .page = "architecture.md#the-passes",
     .summary = "print the plan as it is after a pass; --dump help lists the passes"},
    {"--config", NULL, "K=V,...", MEMBER(config), .commands = " model ", .summary = "the model's config"},
    {"--logits", .commands = " model ", MEMBER(logits), .page = "models.md#what-a-folder-has",
     .summary = "build a program of the folder's model, and print its logits after a random prompt"},
    {"--resolved", .commands = " check ", MEMBER(resolved),
     .summary = "print the job with every default filled in; of a job's file, with the source of each value"},
    {"--json", .commands = " plan model explain diff checkpoint import env estimate ", MEMBER(json),
     .summary = "print one JSON object; plan.schema.json describes that of a plan"},
    {"--html", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(html), .commands = " plan diff ",
     .page = "report.md#plans",
     .summary = "write a page instead, which any browser opens without a network; - is standard output"},
    {"--command", NULL, "TEXT", MEMBER(command), .commands = " audit ", .page = "audit.md#plain-command",
     .summary = "the command that compiles the program, to check in addition to the one that it states"},
    {"--object", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(object), .commands = " audit ", .page = "audit.md",
     .summary = "the program's object code, or the linked program, to check together with its text"},
    {"--format", NULL, "F", .choices = " text json sarif junit html ", MEMBER(format), .commands = " audit ",
     .page = "audit.md", .summary = "the format of the report (text)"},
    {"--format", NULL, "F", .choices = " text bytes nanogpt llmc tokens megatron ", MEMBER(format),
     .commands = " data ", .page = "data.md",
     .summary =
         "the format of the files that are read. The default is text or bytes (a byte is a token), for inspect tokens. "
         "A file that is not text (JSON, a table) is refused unless --format is given"},
    {"--format", NULL, "KIND", .choices = " accelerate deepspeed trainer llamafactory axolotl nanogpt ", MEMBER(format),
     .commands = " import ", .page = "import.md", .summary = "what the files are, where their keys do not say it"},
    {"--format", NULL, "KIND", .choices = " gguf onnx stablehlo ", MEMBER(format), .commands = " export ",
     .page = "models.md#gguf", .summary = "what is written"},
    {"--dtype", NULL, "TYPE", .choices = " f32 f16 q8_0 ", MEMBER(dtype), .commands = " export ",
     .page = "models.md#gguf",
     .summary = "gguf: the type of matrices: float32 (default), float16, or 8 bits in blocks of 32 with a scale"},
    {"--batch", NULL, "N", .read = value_batch, .commands = " export ", .page = "models.md#onnx",
     .summary = "onnx: the one number of samples that the graph takes (any)"},
    {"--sequence", NULL, "N", .read = value_sequence, .commands = " export ", .page = "models.md#onnx",
     .summary = "onnx: the one length of a sequence that the graph takes (any)"},
    {"--compile", .commands = " export ", MEMBER(compile), .page = "stablehlo.md",
     .summary = "stablehlo: compile the module with XLA, and print the memory that it takes"},
    {"--model", NULL, "NAME", MEMBER(model), .commands = " init ", .page = "models.md",
     .summary = "a model that comes along, such as gpt2 or llama; instead of a file or a folder"},
    {"--data", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(data), .commands = " init ", .page = "data.md",
     .summary = "what to train on: .tok, .csv, .npy or .bin by its ending; .jsonl of chats or texts by its first line; "
                "else any file, whose bytes are tokens"},
    {"--job", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(job), .commands = " report ",
     .page = "report.md#memory",
     .summary = "the job of a run: its plan's memory becomes a picture of who has which bytes over a step"},
    {"--job", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(job), .commands = " verify ", .page = "verify.md",
     .summary = "the job that the program is to compute"},
    {"--functions", .commands = " verify ", MEMBER(functions), .page = "verify.md#functions",
     .summary = "call each of the program's functions by itself, too, and compare it with a formula"},
    {"--serve", .commands = " report ", MEMBER(serves), .page = "report.md#in-a-browser",
     .summary = "instead of -o: serve the page on 127.0.0.1, and load it again in the browser when the runs' files "
                "change; Ctrl-C ends it"},
    {"--port", NULL, "N", .read = value_port, .commands = " report ", .page = "report.md#in-a-browser",
     .summary = "with --serve: the port (6060); 0 is one that is free"},
    {"--lora", .commands = " init ", MEMBER(lora), .page = "finetuning.md#low-rank-adapters",
     .summary = "train low-rank adapters of the attention's matrices, and nothing else"},
    {"--default", .commands = " config init ", MEMBER(takes_defaults),
     .summary = "ask nothing: take what the machine has"},
    {"--strict", .commands = " import ", MEMBER(strict), .summary = "write no job when a key is refused or not known"},
    {"--fail-on", NULL, "V", .choices = " broken unproved never ", MEMBER(fail_on), .commands = " audit ",
     .page = "audit.md", .summary = "which verdict gives exit status 1 (unproved, and broken with it)"},
    {"--march", NULL, "NAME", MEMBER(march), .commands = " audit diff ", .page = "audit.md",
     .summary = "the processor that the program is compiled for (native)"},
    {"--root", NULL, "NAME", MEMBER(root), .commands = " audit diff ", .page = "audit.md",
     .summary = "the function of the step path, where audit does not find it"},
    {"-I", "--include", "DIR", .completes = COMPLETES_FOLDER, .read = value_include, .commands = " audit diff ",
     .page = "audit.md", .summary = "a folder of headers that the program includes; may be repeated"},
    {"--text-field", NULL, "NAME", MEMBER(text_field), .commands = " data ",
     .summary = "for JSON Lines: the text in this field of each record is a document"},
    {"--text-column", NULL, "NAME", MEMBER(text_column), .commands = " data ",
     .summary = "for a CSV with a header, or a TSV: the text in this column of each row is a document"},
    {"--text-pair", NULL, "NAME", MEMBER(text_pair), .commands = " data ", .page = "data.md#labelled-texts",
     .summary = "with --label: the column or field of a second text of each record"},
    {"--label", NULL, "NAME", MEMBER(label), .commands = " data ", .page = "data.md#labelled-texts",
     .summary = "with --tokenizer and --text-column or --text-field: the column or field of the label; writes arrays "
                "of rows (.npz)"},
    {"--task", NULL, "WHAT",
     .choices = " classification multi-label regression token-classification question-answering "
                "preference ",
     MEMBER(task), .commands = " data ", .page = "data.md#labelled-texts",
     .summary = "with --label: what it is, the name of a class (default), names of several labels, a number, a name "
                "for each word of a list, or the part of the text of --text-pair that answers a question; with --chat: "
                "preference, pairs of "
                "completions"},
    {"--labels", NULL, "LIST", .completes = COMPLETES_FILE, MEMBER(labels), .commands = " data ",
     .page = "data.md#labelled-texts",
     .summary = "with --label, or for images of a folder or of shards: the names of the labels in their order, a,b,c "
                "or a JSON file "
                "with id2label; the default is the names that occur, sorted"},
    {"--max-length", NULL, "N", .read = value_max_length, .commands = " data ", .page = "data.md#labelled-texts",
     .summary = "with --label or --task preference: the tokens of a row, to which texts are shortened and padded"},
    {"--doc-stride", NULL, "N", .read = value_doc_stride, .commands = " data ", .page = "data.md#questions",
     .summary = "with --task question-answering: the tokens that two windows of a long context share (0)"},
    {"--pad", NULL, "TOKEN", MEMBER(pad), .commands = " data ", .page = "data.md#labelled-texts",
     .summary =
         "with --label or --task preference: the text of the padding token, where no tokenizer_config.json names it"},
    {"--chat", NULL, "FOLDER", .completes = COMPLETES_FOLDER, MEMBER(chat), .commands = " data ",
     .page = "data.md#chats",
     .summary =
         "for JSON Lines of messages, or of prompts and completions: a folder of Hugging Face whose tokenizer and "
         "chat template make the tokens"},
    {"--chat-template", NULL, "NAME", .completes = COMPLETES_FILE, MEMBER(chat_template), .commands = " data ",
     .page = "data.md#chats",
     .summary = "with --chat: the name of one of the folder's templates, or a file that ends in .jinja"},
    {"--train-on", NULL, "WHAT", .choices = " assistant last all ", MEMBER(train_on), .commands = " data ",
     .page = "data.md#chats",
     .summary = "with --chat, the tokens that are trained on: the assistant's (default), those of its last message, or "
                "all"},
    {"--on-bad-record", NULL, "WHAT", .choices = " stop skip ", MEMBER(on_bad_record), .commands = " data ",
     .page = "data.md",
     .summary =
         "with --text-field, --text-column or --chat, a record without such a text or label, an image that cannot "
         "be read, and a sample of a shard without its files: stop (default), or skip it and report how many were"},
    {"--size", NULL, "HxW", MEMBER(size), .commands = " data ", .page = "data.md#images",
     .summary = "for images: the height and width of each, or one number for both. Without it all images "
                "must have the size of the first"},
    {"--fit", NULL, "WHAT", .choices = " crop stretch ", MEMBER(fit), .commands = " data ", .page = "data.md#images",
     .summary =
         "with --size, of an image whose sides have another ratio: cut off what is too much (default), or stretch"},
    {"--gray", .commands = " data ", MEMBER(gray), .page = "data.md#images",
     .summary = "for images of a folder or of shards: one channel instead of red, green and blue"},
    {"--tokenizer", NULL, "FILE", .completes = COMPLETES_FILE, MEMBER(tokenizer), .commands = " data ",
     .page = "data.md", .summary = "a tokenizer.json of Hugging Face that makes tokens from UTF-8 texts"},
    {"--end", NULL, "TOKEN", MEMBER(end), .commands = " data ",
     .summary = "with --tokenizer: the text of a token that ends each document, such as '<|endoftext|>'"},
    {"--by", NULL, "NAME", .choices = " mpirun srun env ", MEMBER(by), .commands = " launch ", .page = "launching.md",
     .summary =
         "what starts the processes. The default is env where RANK, WORLD_SIZE and MASTER_ADDR are set, srun inside "
         "a Slurm job, and mpirun elsewhere. env: torchrun or a Kubernetes operator starts this command once for each "
         "rank or machine, and the one of RANK 0 runs mpirun across all of them"},
    {"--hosts", NULL, "A,B,...", MEMBER(hosts), .commands = " launch ",
     .summary = "the machines for mpirun, as many as devices.nodes"},
    {"--write", NULL, "ENGINE", .choices = " slurm kubernetes kubeflow sagemaker ", MEMBER(write),
     .commands = " launch ", .page = "launching.md",
     .summary = "write the file from which this engine starts the ranks, to standard output or to -o FILE: a script of "
                "sbatch, a manifest of the MPI Operator or of Kubeflow Trainer, a request of SageMaker"},
    {"--with", NULL, "NAME=VALUE", .read = value_with, .commands = " launch ", .page = "launching.md",
     .summary = "with --write: a parameter of the engine, such as image=NAME; may be repeated"},
    {"--ranks", NULL, "N", .read = value_ranks, .commands = " test ", .page = "launching.md#trying-a-machine",
     .summary = "the number of ranks: by default those of the Slurm job, one for each GPU, or two on each machine"},
    {"--hosts", NULL, "A,B,...", MEMBER(hosts), .commands = " test ", .page = "launching.md#trying-a-machine",
     .summary = "the machines, for mpirun; they share the working folder"},
    {"--by", NULL, "NAME", .choices = " mpirun srun ", MEMBER(by), .commands = " test ", .page = "launching.md",
     .summary = "what starts the processes: srun inside a Slurm job, and mpirun elsewhere"},
    {"--device", NULL, "KIND", .choices = " cpu cuda ", MEMBER(device), .commands = " test ",
     .summary = "processors (default) or NVIDIA GPUs"},
    {"--print", .commands = " launch ", MEMBER(print), .summary = "print the command without running it"},
    {"--undefined", NULL, "KIND", .choices = " strict lenient chainable debug ", MEMBER(undefined),
     .commands = " render ", .summary = "what an undefined name evaluates to (strict: an error)"},
    {"--source-map", .commands = " render ", MEMBER(source_map),
     .summary = "print which template line wrote which part of the output, instead of the output"},
    {"--trim-blocks", .commands = " render ", MEMBER(trim_blocks), .summary = "remove the newline after a block tag"},
    {"--lstrip-blocks", .commands = " render ", MEMBER(lstrip_blocks),
     .summary = "remove the blanks before a block tag that begins its line"},
    {"--keep-newline", .commands = " render ", MEMBER(keep_newline),
     .summary = "keep the newline at the end of the template"},
    {"--autoescape", .commands = " render ", MEMBER(autoescape), .summary = "escape values for HTML"},
    {"-v", "--verbose", .commands = " build ", MEMBER(verbose), .summary = "show the compiler's command"},
    {"-v", "--verbose", .commands = " verify ", MEMBER(verbose), .summary = "show the compiler's command"},
    {"-v", "--verbose", .commands = " plan ", MEMBER(verbose),
     .summary = "list what is chosen for each kernel, of which alternatives, and what was measured of them"},
    {"-v", "--verbose", .commands = " tune ", MEMBER(verbose), .summary = "print each measurement"},
    {"-v", "--verbose", .commands = " audit ", MEMBER(verbose), .summary = "print all evidence"},
    {"-v", "--verbose", .commands = " explain ", MEMBER(verbose), .summary = "list all keys of a line"},
    {"-v", "--verbose", .commands = " diff ", MEMBER(verbose), .summary = "show functions that only one side has"},
    {"-q", "--quiet", .commands = " init build tune data checkpoint export test ", MEMBER(quiet),
     .summary = "print warnings and errors alone, and show no progress"},
    {"--color", NULL, "WHEN", .choices = " auto always never ", MEMBER(color), .commands = " * ",
     .summary = "colours in messages; auto (default): on a terminal, unless NO_COLOR is set"},
    {"--help", "-h", .commands = " * ", MEMBER(asks_help), .summary = "print the options of the command"},
    {"--as", NULL, "FORM", .choices = " man bash zsh fish markdown ", MEMBER(as), .commands = " help ", .hidden = true,
     .summary = "print the table of commands and options for other readers"},
    {0},
};

const struct command *command_find(const char *name) {
  for (const struct command *command = command_table + 1; command->name != NULL; command++)
    if (strcmp(command->name, name) == 0) return command;
  return NULL;
}

bool command_takes(const struct command *command, const struct option *option) {
  return strcmp(option->commands, " * ") == 0 || text_names(option->commands, command->name, false);
}

const char *words_listed(struct arena *arena, const char *words, const char *last) {
  struct text out = text_in(arena);
  for (const char *at = words + 1; *at != '\0'; at += strcspn(at, " ") + 1) {
    int length = (int)strcspn(at, " ");
    bool ends = at[length + 1] == '\0';
    text_printf(&out, "%s%.*s", out.length == 0 ? "" : ends ? last : ", ", length, at);
  }
  return text_string(&out);
}
