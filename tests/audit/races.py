"""Single edits of programs for processors, each of which makes threads, or the lanes of a loop, race: the claim no-race notices
it. A kind takes a program's text and a random generator, as those of mutations.py."""

import re

from mutations import replace

# A loop in a function that is divided among threads, up to its end.
DIVIDED = re.compile(r"^#pragma omp parallel for[^\n]*\n(?:  +for \([^\n]*\)\n)*( +)for \([^\n]*\) \{\n(?:\1 [^\n]*\n|#[^\n]*\n)*\1\}\n", re.M)
# A region of several loops.
TEAM = re.compile(r"^#pragma omp parallel\n  \{\n(?:    [^\n]*\n|#[^\n]*\n)*  \}\n", re.M)


def loops(text):
    return [match.span() for match in DIVIDED.finditer(text)]


def teams(text):
    return [match.span() for match in TEAM.finditer(text)]


def blocks(text):
    """Loops over more than one block of columns that threads share out."""
    found = re.finditer(r"^#pragma omp (?:parallel )?for\n( +)for \(size_t first = 0; first < (\d+); first \+= (?!\2\b)\d+\) \{\n(?:\1 [^\n]*\n|#[^\n]*\n)*\1\}\n", text, re.M)
    return [match.span() for match in found]


def loops_and_teams(text):
    return loops(text) + teams(text)


def hoisted(pattern, outside, inside):
    """A declaration in a divided loop moves before it."""
    def kind(text, rng):
        found = [(span, match) for span in loops(text) for match in re.finditer(pattern, text[span[0]:span[1]], re.M)]
        if not found:
            return None
        (low, high), match = rng.choice(found)
        body = text[low:high]
        return (text[:low] + "  " + match.expand(outside) + "\n" + body[:match.start()] + match.expand(inside)
                + body[match.end():] + text[high:])
    return kind


def before(pattern, directive, where=lambda text: [(0, len(text))]):
    return replace(pattern, lambda m, r: f"\n#pragma omp {directive}{m[0]}", where)


def moved_inwards(text, rng):
    """Rows are divided among threads instead of columns, though two of them may be added to one."""
    found = list(re.finditer(r"#pragma omp for\n(    for \(size_t first [^\n]*\{\n(?:      const [^\n]*\n)?)(      for \(size_t r = 0)", text))
    match = rng.choice(found) if found else None
    return match and f"{text[:match.start()]}{match[1]}#pragma omp for nowait\n{match[2]}{text[match.end():]}"


def less(by):
    return lambda m, r: f"{m[1]}{int(m[2]) - by}{m[3]}"


RANGE = r"(\n    \{\d+, )(\d+)(, [^\n]*\},\n    (?:/\*[^\n]*\*/\n    )?\{)"  # a row of a table that is not the last one

KINDS = {
    "a variable of all threads": hoisted(r"^    (?:const )?(float|size_t|int32_t) (\w+) = ([^,;{}]*);$", r"\1 \2;", r"    \2 = \3;"),
    "an array of all threads": hoisted(r"^    float (\w+)((?:\[\d+\])+) = \{0(?:\.0f)?\};$", r"float \1\2;", r"    memset(\1, 0, sizeof \1);"),
    "sums without a reduction": replace(r"omp simd reduction\(\+ : [^)]*\)", "omp simd"),
    "a reduction by another operator": replace(r"reduction\(\+ :", "reduction(* :"),
    "a wait left out": replace(r"#pragma omp for\n", "#pragma omp for nowait\n", lambda text: [
        (low, text.rindex("#pragma omp for", low, high)) for low, high in teams(text)]),
    "a loop that every thread does": replace(r"#pragma omp for\n", "", teams),
    "a sweep that every thread does": replace(r"#pragma omp parallel for simd\n", "#pragma omp parallel\n"),
    "chunks of one row more": replace(r"(\(chunk \+ 1\) \* \d+)(\)?; r\+\+\))", r"\1 + 1\2"),
    "blocks of one column more": replace(r"(const size_t last = first \+ )(\d+)(;)", less(-1), blocks),
    "a line of one element more": replace(r"(c < )(WIDTH; c\+\+\) y)", r"c <= \2", blocks),
    "a smaller stride": replace(r"(\n    float \*\w+ = \w+ \+ r \* )(\d+)(;)", less(1), loops),
    "a term left out": replace(r"(\n +float \*\w+ = \w+ \+ b \* \d+) \+ [hg] \* \d+;", r"\1;", loops),
    "lanes of a sum": before(r"(?<=[;{])\n +for \([^\n]*\) (?:\{\n +)?(?:sum|total|counts?) \+= ", "simd"),
    "threads of a sum": before(r"\n  for \(size_t (?:chunk|i) [^\n]*\) (?:\{\n    )?(?:sum|total) \+= ", "parallel for"),
    "rows instead of columns": moved_inwards,
    "the element before": replace(r"(\n    y\[i\] = )([^;]*);", r"\1\2 + y[i > 0 ? i - 1 : 0];", loops),
    "one row for all chunks": replace(r"(dw = weight_sum|db = bias_sum|losses|counts)\[chunk\](?=;|,| =| \+=|\+\+)", r"\1[0]", loops_and_teams),
    "an operand that is the result": replace(r"\n  (rotary_\w+)\(([^,;]+), ([^,;]+),", r"\n  \1(\2, \2,"),
    "ranges that overlap": replace(RANGE, less(-1), lambda text: [
        m.span() for m in re.finditer(r"^\} ranges\[\] = \{\n(?:    [^\n]*\n)*\};", text, re.M)]),
}

FILL = "  for (size_t i = 0; i < 32; i++) y[i] = x[i];\n"
TEAM_OF = "  float s[32];\n#pragma omp parallel\n  {{\n{}\n  }}\n"
FIRST = "#pragma omp for{}\n    for (size_t i = 0; i < 32; i++) s[i] = x[i];\n"
SECOND = "#pragma omp for\n    for (size_t i = 0; i < 32; i++) y[i] = s[31 - i];"
SAME = "#pragma omp for\n    for (size_t i = 0; i < 32; i++) y[i] = s[i];"
BY_NUMBER = """#pragma omp parallel
  {{
    const size_t t = (size_t)omp_get_thread_num();
    if (t < {})
      for (size_t c = 0; c < {}; c++) y[t * 4 + c] = x[t * 4 + c];
  }}"""
BLOCKS = """#pragma omp parallel for
  for (size_t first = 0; first < 32; first += 5) {{
    const size_t last = first + {} < 32 ? first + {} : 32;
    for (size_t i = first; i < last; i++) y[i] = x[i];
  }}"""

# A condition bounds a number of two counters, which alone would reach to 39.
BOUNDED = """  float s[40] = {{0}};
#pragma omp parallel for
  for (size_t r = 0; r < 10; r++)
    for (size_t c = 0; c < 4; c++) {{
      const size_t i = r * 4 + c;
      {}
    }}
  for (size_t i = 0; i < 32; i++) y[i] = x[i] + s[i];"""


def sum_of(clause, line, start="0.0f", directive=""):
    return f"{FILL}  float sum = {start};\n#pragma omp parallel for {clause}\n  for (size_t i = 0; i < 32; i++) {{\n{directive}    {line}\n  }}\n  y[0] = sum;"


# What a kernel of claims.py does to y[32] from x[32], and the verdict of no-race.
KERNELS = [
    ("holds", "#pragma omp parallel for\n" + FILL),
    ("holds", "#pragma omp parallel for collapse(2)\n  for (size_t r = 0; r < 8; r++)\n    for (size_t c = 0; c < 4; c++) y[r * 4 + c] = x[r];"),
    ("broken", "#pragma omp parallel for collapse(2)\n  for (size_t r = 0; r < 8; r++)\n    for (size_t c = 0; c < 4; c++) y[r + c] = x[r];" + FILL),
    ("broken", "#pragma omp parallel\n" + FILL),
    ("broken", FILL + "#pragma omp parallel for\n  for (size_t i = 0; i < 32; i++) y[i * i % 32] = x[i];"),
    ("cannot tell", FILL + "#pragma omp parallel for\n  for (size_t i = 0; i < 32; i++) y[x[i] > 0.5f] = x[i];"),
    ("holds", sum_of("reduction(+ : sum)", "sum += x[i];")),
    ("broken", sum_of("", "sum += x[i];")),
    ("broken", sum_of("reduction(+ : sum)", "sum *= x[i];")),
    ("broken", sum_of("reduction(+ : sum)", "y[i] = sum += x[i];")),
    ("holds", sum_of("reduction(max : sum)", "sum = x[i] > sum ? x[i] : sum;")),
    ("broken", sum_of("reduction(max : sum)", "sum = x[i] < sum ? x[i] : sum;")),
    ("holds", sum_of("", "sum += x[i];", directive="#pragma omp atomic\n")),
    ("holds", sum_of("", "sum += x[i];", directive="#pragma omp critical\n")),
    ("broken", sum_of("", "y[i] = sum;\n#pragma omp atomic\n    sum += x[i];")),
    ("holds", sum_of("private(sum)", "sum = x[i], y[i] = sum;")),
    ("broken", sum_of("", "sum = x[i], y[i] = sum;")),
    ("broken", "  size_t c;\n#pragma omp parallel for\n  for (size_t r = 0; r < 8; r++)\n    for (c = 0; c < 4; c++) y[r * 4 + c] = x[r];"),
    ("holds", TEAM_OF.format(FIRST.format("") + SECOND)),
    ("broken", TEAM_OF.format(FIRST.format(" nowait") + SECOND)),
    ("broken", TEAM_OF.format(FIRST.format(" nowait") + SAME)),  # which thread has which iteration is the library's choice
    ("holds", TEAM_OF.format(FIRST.format(" nowait") + "#pragma omp barrier\n" + SECOND)),
    ("holds", TEAM_OF.format("#pragma omp single\n    memcpy(s, x, sizeof s);\n" + SECOND)),
    ("broken", TEAM_OF.format("#pragma omp single nowait\n    memcpy(s, x, sizeof s);\n" + SECOND)),
    ("broken", TEAM_OF.format("#pragma omp master\n    memcpy(s, x, sizeof s);\n" + SECOND)),
    ("holds", TEAM_OF.format("#pragma omp master\n    memcpy(s, x, sizeof s);\n#pragma omp barrier\n" + SECOND)),
    ("broken", TEAM_OF.format("    memcpy(s, x, sizeof s);\n#pragma omp barrier\n" + SECOND)),
    ("cannot tell", TEAM_OF.format("#pragma omp task\n    memcpy(s, x, sizeof s);\n" + SECOND)),
    ("broken", TEAM_OF.format("#pragma omp for nowait reduction(+ : total)\n    for (size_t i = 0; i < 32; i++) total += x[i];\n"
                              "#pragma omp for\n    for (size_t i = 0; i < 32; i++) y[i] = total;").replace("float s[32]", "float total = 0.0f")),
    ("holds", TEAM_OF.format("#pragma omp for reduction(+ : total)\n    for (size_t i = 0; i < 32; i++) total += x[i];\n"
                             "#pragma omp for\n    for (size_t i = 0; i < 32; i++) y[i] = total;").replace("float s[32]", "float total = 0.0f")),
    ("broken", FILL + "  float s[32];\n#pragma omp parallel for\n  for (size_t i = 0; i < 32; i++) {\n    s[i] = x[i];\n#pragma omp atomic\n"
     "    y[0] += s[31 - i];\n  }"),
    ("holds", FILL + BY_NUMBER.format(8, 4)),
    ("cannot tell", FILL + BY_NUMBER.format(7, 5)),  # there may be one thread
    ("holds", BLOCKS.format(5, 5)),
    ("broken", BLOCKS.format(6, 6)),
    ("holds", BOUNDED.format("if (i < 32) s[i] = s[32 + c];")),
    ("cannot tell", BOUNDED.format("if (i < 33) s[i] = s[32 + c];")),
    ("cannot tell", BOUNDED.format("if (i < 32) s[i] = s[32 + c];\n      if (i < 33) s[i] = s[32 + c];")),
    ("holds", "#pragma omp simd\n" + FILL),
    ("broken", FILL + "#pragma omp simd\n  for (size_t i = 1; i < 32; i++) y[i] += y[i - 1];"),
    ("broken", FILL + "  for (size_t r = 0; r < 8; r++)\n#pragma omp simd\n    for (size_t c = 0; c < 4; c++) y[r] += x[r * 4 + c];"),
]
