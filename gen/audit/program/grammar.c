#include "gen/audit/program/grammar.h"

#include <string.h>

/* ---- The lists: words between spaces; a star matches any rest ---- */

static const char pragma_directives[] = " simd / parallel / for / parallel for / parallel for simd / for simd ";
static const char pragma_clauses[] = " collapse(NUMBER) reduction(+ : NAMES) nowait ";

/* These change speed or layout, and not what the C says, whatever they stand on. Layout is libclang's to know. */
static const char attributes[] =
    " noinline always_inline unused warn_unused_result hot cold packed aligned vector_size may_alias format "
    "__noinline__ __always_inline__ __unused__ __packed__ __aligned__ __vector_size__ __may_alias__ ";

static const char headers[] =
    " assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h setjmp.h signal.h "
    "stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h tgmath.h "
    "threads.h time.h uchar.h wchar.h wctype.h unistd.h sys/socket.h sys/stat.h sys/time.h sys/types.h dirent.h "
    "fcntl.h "
    "glob.h omp.h mpi.h nccl.h dnnl.h cblas.h oneapi/dnnl/dnnl.h accel/* ";

static const char reserved[] =
    " __attribute__ __attribute __VA_ARGS__ __restrict __restrict__ __inline __inline__ __func__ _Bool _Alignas "
    "_Alignof _Static_assert __builtin_expect __builtin_memcpy __builtin_memset "
    "__builtin_memmove __builtin_alloca __builtin_offsetof ";

/* The same in the device's half. */
static const char of_devices[] =
    " __global__ __device__ __host__ __forceinline__ __launch_bounds__ __grid_constant__ __shared__ __syncthreads* "
    "__syncwarp __shfl_* __ballot_sync __ffs __popc __umul64hi __umulhi __half* __nv_bfloat16* __bfloat162float "
    "__float2* __float_to_tf32 __pipeline_* __align__ __maxnreg__ __fmaf_rn __fadd_rn __fmul_rn __expf __ldg ";

/* Of the constants of C's own headers, those that every machine of a kind has alike. */
static const char macros[] =
    " NULL INFINITY NAN HUGE_VAL HUGE_VALF assert static_assert alignas alignof bool true false offsetof "
    "INT8_MAX INT16_MAX INT32_MAX INT64_MAX INT8_MIN INT16_MIN INT32_MIN INT64_MIN UINT8_MAX UINT16_MAX UINT32_MAX "
    "UINT64_MAX SIZE_MAX PTRDIFF_MAX PTRDIFF_MIN INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX LLONG_MAX "
    "LLONG_MIN ULLONG_MAX CHAR_BIT SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT8_C INT16_C INT32_C "
    "INT64_C UINT8_C UINT16_C UINT32_C UINT64_C FLT_MAX FLT_MIN FLT_EPSILON FLT_TRUE_MIN DBL_MAX DBL_MIN DBL_EPSILON "
    "DBL_TRUE_MIN isnan isinf isfinite isnormal signbit fpclassify PRId64 PRIu64 PRId32 PRIu32 EXIT_SUCCESS "
    "EXIT_FAILURE EOF stdin stdout stderr SEEK_SET SEEK_CUR SEEK_END RAND_MAX errno ENOENT EINVAL ENOMEM EINTR "
    "va_start va_arg va_end va_copy setjmp sigsetjmp AF_INET SOCK_STREAM CLOCK_MONOTONIC CLOCK_REALTIME "
    "CLOCKS_PER_SEC M_PI M_E accel_launch_in ACCEL_* MPI_* ";

/* Which machine the program is for, and the words of conditions. Lines that they leave out are listed. */
static const char conditions[] =
    " defined __x86_64__ __aarch64__ __ARM_NEON __SSE2__ __AVX__ __AVX2__ __FMA__ __F16C__ __AVX512F__ __AVX512BW__ "
    "__AVX512DQ__ __AVX512VL__ __AVX512BF16__ __AVX512FP16__ __ARM_FEATURE_BF16 __ARM_FEATURE_SVE __cplusplus ";

static const char refused[] =
    " asm __asm __asm__ _Pragma __pragma _Noreturn noreturn _Generic _Thread_local thread_local __thread _Atomic "
    "__typeof__ __typeof typeof typeof_unqual __auto_type __extension__ __label__ _Complex __complex__ __real__ "
    "__imag__ __declspec __transaction_atomic _Accum _Fract _Sat volatile __volatile__ __volatile ";

/* What compiles a program, with flags that choose instructions, optimization and warnings. */
static const char compilers[] = " cc gcc gcc-* clang clang-* aarch64-linux-gnu-gcc x86_64-linux-gnu-gcc nvcc hipcc ";

static const char flags[] =
    " -std=c17 -std=c++17 -O -O0 -O1 -O2 -O3 -Os -Og -g -g0 -g1 -g2 -g3 -ggdb* -gdwarf-* -march=* -mtune=* -mcpu=* "
    "-mprefer-vector-width=* -arch=* "
    "-gencode=* --offload-arch=* -lineinfo -fopenmp -fopenmp-simd -fno-math-errno -fno-trapping-math "
    "-ffp-contract=fast "
    "-ffp-contract=off -fPIC -fPIE -pie -fstack-protector-strong -fdiagnostics-* -fcolor-diagnostics -pthread -pipe -c "
    "-v -w -Wall -Wextra -Wpedantic -Werror -Wno-* -lm -lstdc++ ";

/* gcc writes these into an object, where nobody gave them. */
static const char machine_flags[] =
    " -mmmx -msse* -mssse3 -m3dnow* -mavx* -mpopcnt -mfma -mfma4 -mbmi* -maes -mpclmul -mgfni -mvpclmulqdq -mvaes "
    "-madx -mabm "
    "-mcldemote -mclflushopt -mclwb -mclzero -mcx16 -mf16c -mfsgsbase -mfxsr -msahf -mlzcnt -mmovbe -mmovdir64b "
    "-mmovdiri -mmwaitx -mpconfig -mpku -mprefetchwt1 -mprfchw -mptwrite -mrdpid -mrdrnd -mrdseed -mserialize -msha "
    "-mshstk -mtbm -mtsxldtrk -mwaitpkg -mwbnoinvd -mxsave* -mamx-* -muintr -mhreset -mkl -mwidekl -mno-* "
    "--param=l1-cache-size=* --param=l1-cache-line-size=* --param=l2-cache-size=* -fasynchronous-unwind-tables "
    "-fstack-protector* -fstack-clash-protection -fcf-protection* -fPIC -fPIE -fpie -fno-pie -fno-PIE "
    "-grecord-gcc-switches -grecord-command-line ";

static const char packages[] = " accel-runtime* sqlite3 ";

bool grammar_has_compiler(const char *name) {
  return text_lists(compilers, name, true);
}

bool grammar_has_flag(const char *word) {
  return text_lists(flags, word, true);
}

bool grammar_has_machine_flag(const char *word) {
  return text_lists(machine_flags, word, true);
}

bool grammar_has_package(const char *name) {
  return text_lists(packages, name, true);
}

/* ---- Pragmas ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
static const char word_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

static const char *past_blanks(const char *at) {
  return at + strspn(at, " ");
}

/* Moves past `text` and the blanks after it, if it is there. */
static bool skip(const char **at, const char *text) {
  size_t length = strlen(text);
  bool is_word = strchr(letters, text[0]) != NULL;
  if (strncmp(*at, text, length) != 0 || (is_word && strspn(*at + length, word_bytes) > 0)) return false;
  *at = past_blanks(*at + length);
  return true;
}

static bool skip_number(const char **at) {
  size_t length = strspn(*at, "0123456789");
  *at = past_blanks(*at + length);
  return length > 0 && length < 6;
}

static bool skip_names(const char **at) {
  do {
    if (**at == '\0' || strchr(letters, **at) == NULL) return false;
    *at = past_blanks(*at + strspn(*at, word_bytes));
  } while (skip(at, ","));
  return true;
}

static bool skip_clause(const char **at) {
  if (skip(at, "nowait")) return true;
  if (skip(at, "collapse")) return skip(at, "(") && skip_number(at) && skip(at, ")");
  return skip(at, "reduction") && skip(at, "(") && skip(at, "+") && skip(at, ":") && skip_names(at) && skip(at, ")");
}

bool grammar_has_pragma(const char *text) {
  const char *at = text;
  if (skip(&at, "GCC")) return skip(&at, "unroll") && skip_number(&at) && *at == '\0';
  if (skip(&at, "unroll")) return *at == '\0' || (skip_number(&at) && *at == '\0');
  if (!skip(&at, "omp")) return false;
  bool parallel = skip(&at, "parallel");
  bool loop = skip(&at, "for");
  bool simd = (loop || !parallel) && skip(&at, "simd");
  if (!parallel && !loop && !simd) return false;
  while (*at != '\0')
    if (!skip_clause(&at)) return false;
  return true;
}

/* ---- Names ---- */

/* Numbers, names and commas, in one pair of brackets. */
static bool is_plain(const char *arguments) {
  size_t length = strlen(arguments);
  if (length == 0) return true;
  if (length < 2 || arguments[0] != '(' || arguments[length - 1] != ')') return false;
  for (size_t i = 1; i + 1 < length; i++)
    if (strchr(word_bytes, arguments[i]) == NULL && strchr(" ,*", arguments[i]) == NULL) return false;
  return true;
}

bool grammar_has_attribute(const char *name, const char *arguments) {
  return text_lists(attributes, name, true) && is_plain(arguments);
}

bool grammar_has_header(const char *name) {
  return text_lists(headers, name, true) && strstr(name, "..") == NULL;
}

bool grammar_is_reserved(const char *name) {
  return name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

bool grammar_has_reserved(const char *name, bool is_device) {
  return text_lists(reserved, name, true) || (is_device && text_lists(of_devices, name, true));
}

bool grammar_has_macro(const char *name) {
  return text_lists(macros, name, true);
}

bool grammar_has_condition(const char *name) {
  return text_lists(conditions, name, true);
}

bool grammar_refuses_word(const char *word) {
  return text_lists(refused, word, true);
}

/* ---- The report ---- */

static void write_list(struct text *text, const char *title, const char *words) {
  size_t column = 0;
  text_printf(text, "%s:\n", title);
  for (const char *at = words + 1; *at != '\0';) {
    size_t size = strcspn(at, " ");
    if (column + size > 96) text_printf(text, "\n"), column = 0;
    text_printf(text, "%s%.*s", column == 0 ? "  " : " ", (int)size, at);
    column += size + 1;
    at += size + 1;
  }
  text_printf(text, "\n\n");
}

void grammar_write(struct text *text) {
  text_printf(text, "What the text of a program may hold. Anything else breaks the claim in brackets.\n\n"
                    "Bytes (one-reading): ASCII outside of strings and comments, lines that end with a newline; no\n"
                    "trigraph, no digraph, no backslash at the end of a line but in a #define after a blank.\n\n");
  write_list(text, "OpenMP's directives (nothing-hidden)", pragma_directives);
  write_list(text, "their clauses", pragma_clauses);
  write_list(text, "other pragmas", " unroll GCC unroll NUMBER ");
  write_list(text, "attributes (nothing-hidden)", attributes);
  write_list(text, "headers as <...> (nothing-hidden)", headers);
  write_list(text, "names that C reserves (one-reading)", reserved);
  write_list(text, "and in the device's half", of_devices);
  write_list(text, "macros of headers (one-reading)", macros);
  write_list(text, "names in conditions of the preprocessor, besides the text's own (one-reading)", conditions);
  write_list(text, "words that are refused (nothing-hidden)", refused);
  write_list(text, "compilers, in the command that compiles the program (plain-command)", compilers);
  write_list(text, "their flags", flags);
  write_list(text, "flags that compilers write into objects besides (machine-rebuilt)", machine_flags);
  write_list(text, "packages of pkg-config", packages);
  text_printf(text,
              "Declarations (main-alone, nothing-hidden): static functions and variables, structs, unions,\n"
              "enumerations, typedefs, static_assert; 'main' alone is visible to the linker. In functions: variables\n"
              "and enumerations. Functions may be declared that another file of the program defines, if no library\n"
              "owns the name. No type has a size that code computes, but a variable's own.\n");
}
