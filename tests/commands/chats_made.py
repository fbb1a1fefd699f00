"""Chat templates in the styles of published families, written for these tests; random conversations; and what transformers makes
of them: tokens, and which are the assistant's."""

import random

from tokenizers_made import FAMILIES
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>",
           "<end_of_turn>", "[INST]", "[/INST]", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<|tool|>", "<tool_call>",
           "</tool_call>"]
CHATML = """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
CHATML_MARKED = """{%- for message in messages -%}
    {%- if message.role == 'assistant' -%}
        {{- '<|im_start|>assistant\n' -}}
        {%- generation -%}
        {{- message.content + '<|im_end|>' -}}
        {%- endgeneration -%}
        {{- '\n' -}}
    {%- else -%}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
"""
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set turns = messages[1:] %}{% set system = '<<SYS>>\n' ~ messages[0]['content'] ~ '\n<</SYS>>\n\n' %}
{%- else %}{% set turns = messages %}{% set system = '' %}{% endif %}
{%- for message in turns %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate: user, assistant, user, ...') }}{% endif %}
{%- if message['role'] == 'user' %}{{ bos_token + '[INST] ' + (system if loop.first else '') + message['content'].strip() + ' [/INST]' }}
{%- elif message['role'] == 'assistant' %}{{ ' ' + message['content'].strip() + ' ' + eos_token }}{% endif %}
{%- endfor %}"""
LLAMA3 = """{% for message in messages %}
    {% set head = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' %}
    {% if loop.first %}{% set head = bos_token + head %}{% endif %}
{{- head + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{% if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""
LLAMA31 = """{{- bos_token }}
{%- if tools is none or tools is not defined %}{% set tools = none %}{% endif %}
{%- if messages[0].role == 'system' %}{% set system = messages[0].content %}{% set messages = messages[1:] %}{% else %}{% set system = '' %}{% endif %}
{{- '<|start_header_id|>system<|end_header_id|>\n\n' }}
{%- if tools is not none %}{{ 'Environment: ipython\n' }}{% endif %}
{{- 'Cutting Knowledge Date: December 2023\nToday Date: ' + (date_string if date_string is defined else strftime_now('%d %b %Y')) + '\n\n' }}
{%- if tools is not none %}
    {{- 'You have access to the following functions.\n\n' }}
    {%- for t in tools %}{{ t | tojson(indent=4) }}{{ '\n\n' }}{% endfor %}
{%- endif %}
{{- system }}{{ '<|eot_id|>' }}
{%- for message in messages %}
    {%- if message.tool_calls is defined and message.tool_calls %}
        {%- for call in message.tool_calls %}
            {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
            {{- '{"name": "' + call.function.name + '", "parameters": ' }}{{ call.function.arguments | tojson }}{{ '}<|eot_id|>' }}
        {%- endfor %}
    {%- elif message.role == 'tool' %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\n\n' }}{{ message.content | tojson }}{{ '<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}
"""
MISTRAL = """{{ bos_token }}{% for message in messages %}
{%- if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}
{%- elif message['role'] == 'assistant' %}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}
{%- elif message['role'] != 'system' %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}
{%- endfor %}"""
GEMMA = """{{ bos_token }}{% for message in messages %}
{%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"""
GEMMA_MARKED = """{{ bos_token }}{% for message in messages %}
{% if message['role'] == 'assistant' %}
<start_of_turn>model
{% generation %}{{ message['content'] }}<end_of_turn>
{% endgeneration %}
{% else %}
<start_of_turn>{{ message['role'] }}
{{ message['content'] }}<end_of_turn>
{% endif %}
{% endfor %}"""
ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n' + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
PHI3 = """{% for message in messages %}{% if message['role'] in ('system', 'user') %}{{ '<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n' }}
{%- elif message['role'] == 'assistant' %}{{ '<|assistant|>\n' + message['content'] + '<|end|>\n' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ '' }}{% endif %}"""
PHI4 = """{% for message in messages %}{% if message['role'] == 'assistant' %}{{ '<|im_start|>assistant<|sep|>' }}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}
{%- else %}{{ '<|im_start|>' + message['role'] + '<|sep|>' + message['content'] + '<|im_end|>' }}{% endif %}{% endfor %}"""
DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(is_first=true, system='') -%}
{%- for message in messages %}{% if message['role'] == 'system' %}{% set ns.system = ns.system + message['content'] %}{% endif %}{% endfor -%}
{{ bos_token }}{{ ns.system }}
{%- for message in messages %}
{%- if message['role'] == 'user' %}{{ '<|user|>' + message['content'] }}{% endif %}
{%- if message['role'] == 'assistant' and message['content'] is not none %}{{ '<|assistant|>' + message['content'] + eos_token }}{% endif %}
{%- endfor -%}
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""
QWEN_TOOLS = """{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}{{ messages[0].content + '\n\n' }}{% endif %}
    {{- '# Tools\n\nYou may call one or more functions.\n\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\n</tools><|im_end|>\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' + (message.content or '') }}
        {%- for tool_call in message.tool_calls or [] %}
            {%- if tool_call.function %}{% set tool_call = tool_call.function %}{% endif %}
            {{- '\n<tool_call>\n{"name": "' }}{{ tool_call.name }}{{ '", "arguments": ' }}{{ tool_call.arguments | tojson }}{{ '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
        {{- '\n<tool_response>\n' + message.content + '\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
"""
QWEN_MARKED = QWEN_TOOLS.replace("{{- '<|im_start|>assistant\\n' + (message.content or '') }}", "{{- '<|im_start|>assistant\\n' }}{%- generation %}{{- message.content or '' }}").replace(
    "{{- '<|im_end|>\\n' }}\n    {%- elif message.role == 'tool'", "{{- '<|im_end|>' }}{%- endgeneration %}{{- '\\n' }}\n    {%- elif message.role == 'tool'")
COMMAND = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}
{%- else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}
{%- if system_message != false %}{{ '<|system|>' + system_message + '<|end|>' }}{% endif %}
{%- for message in loop_messages %}{% set content = message['content'] %}
{%- if message['role'] == 'user' %}{{ '<|user|>' + content.strip() + '<|end|>' }}
{%- elif message['role'] == 'assistant' %}{{ '<|assistant|>' + content.strip() + '<|end|>' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""
RAG = """{{ bos_token }}{% for document in documents or [] %}{{ '<doc id=' ~ loop.index0 ~ '>' ~ document.title ~ ': ' ~ document.text ~ '</doc>\n' }}{% endfor %}
{%- for message in messages %}{{ message.role | upper }}: {{ message.content }}
{{ eos_token }}{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT: ' }}{% endif %}"""
ALPACA = """{% for message in messages %}{% if message.role == 'system' %}{{ message.content + '\n\n' }}{% elif message.role == 'user' %}{{ '### Instruction:\n' + message.content + '\n\n' }}
{%- elif message.role == 'assistant' %}{{ '### Response:\n' + message.content + '\n\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '### Response:\n' }}{% endif %}"""
VICUNA = """{{ bos_token }}{%- macro line(name, text) -%}{{ name }}: {{ text }}{%- endmacro -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}{{ line('USER', message.content) }} {% elif message.role == 'assistant' -%}{{ line('ASSISTANT', message.content) }}{{ eos_token }}{% endif -%}
{%- endfor -%}{%- if add_generation_prompt -%}ASSISTANT:{%- endif -%}"""
NEMOTRON = """{% set ns = namespace(count=0) %}{% for message in messages if message.content is string %}{% if message.role == 'tool' %}{% continue %}{% endif %}
{%- set ns.count = ns.count + 1 %}<|start_header_id|>{{ message.role }}<|end_header_id|>{{ ns.count }} {% if message.role == 'assistant' %}{% generation %}{{ message.content | replace('\n', ' ') }}<|eot_id|>{% endgeneration %}{% else %}{{ message.content }}<|eot_id|>{% endif %}
{%- endfor %}"""
JSON_STYLE = """{{ {'tools': tools, 'b': [1, none, 2.5]} | tojson(sort_keys=true, separators=(',', ':')) }}
{% for message in messages %}{{ message | tojson(ensure_ascii=true) }}
{{ eos_token }}{% endfor %}{% if add_generation_prompt %}{{ '{"role": "assistant"' }}{% endif %}"""
HARMONY = """{%- for message in messages %}{% set content = message.content if message.content is string else message.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join('') %}
{%- if message.role == 'assistant' %}<|im_start|>assistant<|channel|>final<|message|>{% generation %}{{ content }}<|end|>{% endgeneration %}{% else %}<|im_start|>{{ message.role }}<|message|>{{ content }}<|end|>{% endif %}
{%- endfor %}{% if add_generation_prompt %}<|im_start|>assistant{% endif %}"""

TEMPLATES = {"chatml": CHATML, "chatml_marked": CHATML_MARKED, "llama2": LLAMA2, "llama3": LLAMA3, "llama31": LLAMA31,
             "mistral": MISTRAL, "gemma": GEMMA, "gemma_marked": GEMMA_MARKED, "zephyr": ZEPHYR, "phi3": PHI3, "phi4": PHI4,
             "deepseek": DEEPSEEK, "qwen": QWEN_TOOLS, "qwen_marked": QWEN_MARKED, "command": COMMAND, "rag": RAG, "alpaca": ALPACA,
             "vicuna": VICUNA, "nemotron": NEMOTRON, "json": JSON_STYLE, "harmony": HARMONY}
TOKENIZERS = ["llama3", "qwen2", "llama2", "mistral", "gemma", "gpt2", "deepseek"]  # of FAMILIES, which chat models have
WORDS = ["hello", "the", "weather in", "größe", "漢字", "I don't", "42", "\n", "  ", "print(x)", "<b>&'</b>", "🙂 so", "naïve", '"quoted"',
         "<|im_end|>", "</s>", "e\u0301t\u00e9", "\t"]


def tokenizer_of(family, text, template):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=FAMILIES[family](text, 700), bos_token="<s>", eos_token="</s>",
                                        unk_token=None, additional_special_tokens=SPECIAL[2:])
    tokenizer.chat_template = template
    return tokenizer


def words(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12))) + rng.choice([".", "!", " ok"])


def tool(rng):
    return {"type": "function", "function": {"name": rng.choice(["weather", "add"]), "description": words(rng), "parameters": {
        "type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number", "default": 1.5}}, "required": ["a"]}}}


def conversation(rng, tools=False):
    """A record; with tools some turns call one."""
    messages = [{"role": "system", "content": words(rng)}] if rng.random() < 0.5 else []
    record = {"messages": messages}
    if tools:
        record["tools"] = [tool(rng) for _ in range(rng.randint(1, 2))]
    for _ in range(rng.randint(1, 4)):
        messages.append({"role": "user", "content": words(rng)})
        if tools and rng.random() < 0.5:
            call = {"type": "function", "function": {"name": "add", "arguments": {"b": words(rng), "a": rng.random(), "c": None}}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "name": "add", "content": words(rng)})
        messages.append({"role": "assistant", "content": words(rng)})
    if rng.random() < 0.2:
        messages.append({"role": "user", "content": words(rng)})
    if rng.random() < 0.3:
        record["documents"] = [{"title": words(rng), "text": words(rng)}]
    return record


class Inconsistent(Exception):
    pass


def rendered(tokenizer, record, messages, prompts=False):
    return tokenizer.apply_chat_template(messages, tools=record.get("tools"), documents=record.get("documents"), tokenize=False,
                                         add_generation_prompt=prompts, **record.get("chat_template_kwargs", {}))


def turn_ranges(tokenizer, record, whole):
    """The assistant's messages by what rendering adds to those before them, with the prompt."""
    messages, ranges = record["messages"], []
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = rendered(tokenizer, record, messages[:i], prompts=True)
        upto = rendered(tokenizer, record, messages[:i + 1])
        if not (whole.startswith(before) and whole.startswith(upto) and len(before) <= len(upto)):
            raise Inconsistent(i + 1)
        ranges.append((len(before), len(upto)))
    return ranges


def expected(tokenizer, record):
    """Tokens, and whether each is the assistant's."""
    marked = "{% generation" in tokenizer.chat_template or "{%- generation" in tokenizer.chat_template
    out = tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), documents=record.get("documents"),
                                        tokenize=True, return_dict=True, return_assistant_tokens_mask=marked,
                                        **record.get("chat_template_kwargs", {}))
    if marked:
        return out["input_ids"], [bool(m) for m in out["assistant_masks"]]
    whole = rendered(tokenizer, record, record["messages"])
    ranges = turn_ranges(tokenizer, record, whole)
    offsets = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return out["input_ids"], [any(a < end and begin < b for a, b in ranges) for begin, end in offsets]


def random_conversations(seed, count, tools=False):
    rng = random.Random(seed)
    return [conversation(rng, tools) for _ in range(count)]
