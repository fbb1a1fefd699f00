#include "gen/audit/program/externals.h"

#include <string.h>

#include "gen/base/text.h"

/* Names of an effect, between spaces; a star matches any rest. The first match wins. */
static const struct {
  enum effect effect;
  const char *names;
} table[] = {
    {EFFECT_MEMORY, " memcpy memmove memset memcmp __builtin_memcpy __builtin_memset __builtin_memmove "
                    "__builtin_object_size __builtin_prefetch strlen strnlen strcmp strncmp strchr strrchr strstr "
                    "atoi atol atoll atof strtol strtoll strtoul strtoull strtod strtof isalpha isdigit isprint "
                    "isspace isupper islower isalnum ispunct toupper tolower __ctype_* "},
    {EFFECT_ALLOCATION, " __builtin_alloca* alloca "},
    {EFFECT_ARITHMETIC,
     " sqrt sqrtf exp expf exp2 exp2f expm1 expm1f log logf log2 log2f log10 log10f log1p log1pf pow powf sin sinf cos "
     "cosf tan tanf sinh sinhf cosh coshf tanh tanhf asin asinf acos acosf atan atanf atan2 atan2f erf erff erfc erfcf "
     "fabs fabsf floor floorf ceil ceilf round roundf trunc truncf rint rintf nearbyint nearbyintf lrint lrintf lround "
     "lroundf fmin fminf fmax fmaxf fma fmaf fmod fmodf remainder remainderf copysign copysignf ldexp ldexpf scalbn "
     "scalbnf cbrt cbrtf hypot hypotf frexp frexpf ilogb ilogbf isnan isnanf isinf isinff isfinite finite finitef "
     "abs labs llabs __fpclassify* __isnan* __isinf* __finite* __signbit* "
     "__builtin_fabs* __builtin_isnan __builtin_isinf* __builtin_isfinite __builtin_isnormal __builtin_signbit* "
     "__builtin_nan* __builtin_inf* __builtin_huge_val* __builtin_shuffle* __builtin_convertvector __builtin_expect* "
     "__builtin_assume* __builtin_clz* __builtin_ctz* __builtin_popcount* __builtin_bswap* __builtin_sqrt* "
     "__builtin_fma* __builtin_copysign* __builtin_unreachable __builtin_constant_p __builtin_offsetof "
     "__builtin_choose_expr __builtin_add_overflow __builtin_sub_overflow __builtin_mul_overflow __builtin_reduce_* "
     "__builtin_elementwise_* __builtin_ia32_cvtne2ps2bf16_512 __builtin_ia32_dpbf16ps_512 omp_get_thread_num "
     "omp_get_num_threads omp_get_max_threads omp_in_parallel "
     "accel_random accel_draw_normals accel_stream accel_add_squares* accel_add_sizes* "
     "accel_root_of_squares accel_sum_of_integers "
     "__syncthreads __syncthreads_or __syncwarp __shfl_sync __shfl_xor_sync __shfl_up_sync __shfl_down_sync "
     "__ballot_sync __ffs __popc atomicAdd "
     "__umul64hi __umulhi __bfloat162float __float2bfloat16_rn __half2float __float2half_rn __float_to_tf32 dim3 "
     "__pipeline_memcpy_async __pipeline_commit __pipeline_wait_prior load_part store_part fill_part multiply_parts "},
    {EFFECT_LIBRARY, " accel_multiply accel_multiply_quantized accel_multiply_int8 accel_multiply_q8_0 "
                     "accel_gemv accel_forget_packed accel_convolve "
                     "accel_gpu_multiply accel_gpu_attend* "
                     "accel_gpu_convolve dnnl_sgemm dnnl_gemm_* "
                     "cblas_sgemm cblas_dgemm cblas_gemm_* cblas_sbgemm* "},
    {EFFECT_COLLECTIVE,
     " MPI_Allreduce MPI_Iallreduce MPI_Reduce MPI_Bcast MPI_Allgather* MPI_Iallgather* MPI_Reduce_scatter* "
     "MPI_Ireduce_scatter* MPI_Send MPI_Isend MPI_Recv MPI_Irecv MPI_Sendrecv* MPI_Wait* MPI_Test* MPI_Barrier "
     "MPI_Alltoall* nccl* accel_all_reduce* accel_start_all_reduce* accel_start_reduce_scatter* "
     "accel_start_all_gather accel_start_all_gather_from accel_advance_collectives "
     "accel_gpu_start_* accel_gpu_all_reduce* accel_wait_collectives accel_wait_reductions accel_wait_gathers "
     "accel_reduce_scatter* accel_all_gather* accel_all_to_all accel_broadcast* accel_exchange_starts "
     "accel_dispatch_rows accel_collect_rows accel_send accel_start_send accel_wait_sends accel_wait_send "
     "accel_receive accel_take "
     "accel_add_other accel_send_receive "},
    {EFFECT_BATCH,
     " accel_start_read accel_wait_reads accel_start_load accel_start_store accel_start_load_layer "
     "accel_start_store_layer accel_wait_disk accel_load_sequences accel_load_masked accel_load_documents "
     "accel_load_input "
     "accel_eval_number accel_gpu_feed_* accel_gpu_prefetch* accel_gpu_wait_prefetch accel_gpu_launch "
     "accel_gpu_report* "
     "accel_gpu_stream "
     "accel_gpu_zero accel_gpu_copy accel_gpu_record accel_gpu_wait accel_gpu_range_* "
     "accel_micro_batches_of accel_contributors_in accel_require_finite_loss accel_require_finite_norm "
     "accel_require_lower_scale accel_report_skipped accel_xla_step accel_xla_forward* "},
    {EFFECT_CLOCK, " accel_begin_profile_step accel_profile_part accel_end_profile_step accel_gpu_begin_trace "
                   "accel_gpu_profile_part "
                   "accel_gpu_end_trace "},
    {EFFECT_RUNTIME, " accel_* "},
    {EFFECT_ALLOCATION,
     " malloc calloc realloc reallocarray free aligned_alloc posix_memalign memalign valloc pvalloc mmap mmap64 munmap "
     "mremap madvise mlock* munlock* brk sbrk strdup strndup asprintf vasprintf getline getdelim malloc_* "
     "__libc_malloc __libc_* "},
    {EFFECT_FILE,
     " fopen* fclose freopen* fdopen fread* fwrite* fgets fgetc getc getchar gets fputs fputc putc putchar puts printf "
     "fprintf vprintf vfprintf dprintf scanf fscanf __isoc99_scanf __isoc99_fscanf fseek* ftell* rewind fflush setvbuf "
     "setbuf tmpfile* tmpnam mkstemp* mkdtemp open open64 openat* creat read pread* write pwrite* readv writev close "
     "lseek* stat fstat* lstat access unlink* remove rename* link symlink readlink mkdir rmdir opendir readdir "
     "closedir glob globfree feof ferror clearerr fileno "
     "chdir getcwd chmod chown truncate ftruncate fsync fdatasync sync dup dup2 pipe* ioctl fcntl perror syslog "
     "flock sendfile splice "},
    {EFFECT_NETWORK,
     " socket connect bind listen accept accept4 send sendto sendmsg recv recvfrom recvmsg getaddrinfo gethostby* "
     "getpeername getsockname setsockopt getsockopt shutdown inet_* select poll ppoll epoll_* curl_* "},
    {EFFECT_ENVIRONMENT,
     " getenv secure_getenv setenv putenv unsetenv clearenv getpid getppid getuid geteuid getgid getlogin getpw* "
     "gethostname uname sysconf getrlimit setrlimit getauxval setlocale localeconv nl_langinfo getopt* "},
    {EFFECT_CLOCK,
     " time clock clock_* gettimeofday times ftime nanosleep sleep usleep alarm timer_* localtime* gmtime* mktime "
     "strftime ctime* difftime rand srand random srandom rand_r drand48 srand48 lrand48 arc4random* getrandom "
     "getentropy omp_get_wtime omp_get_wtick __rdtsc _rdtsc __builtin_ia32_rdtsc* __builtin_readcyclecounter "
     "__builtin_ia32_rdrand* __builtin_ia32_rdseed* "},
    {EFFECT_PROCESS,
     " fork vfork clone exec* system popen pclose posix_spawn* wait waitpid kill raise signal sigaction abort exit "
     "_exit "
     "_Exit quick_exit atexit at_quick_exit on_exit setjmp _setjmp sigsetjmp longjmp siglongjmp __builtin_setjmp "
     "__builtin_longjmp pthread_* thrd_* mtx_* cnd_* sem_* dlopen dlsym dlclose syscall ptrace prctl mprotect "
     "sched_* __builtin_trap __assert_fail __builtin_return_address __builtin_frame_address __builtin_apply* "
     "qsort* bsearch* "},
};

enum effect external_effect(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (text_lists(table[i].names, name, true)) return table[i].effect;
  return EFFECT_UNKNOWN;
}

bool external_is_listed(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (text_lists(table[i].names, name, false)) return true;
  return false;
}

bool external_is_runtime(const char *name) {
  return text_lists(" accel_* ", name, true);
}

bool external_is_uniform(const char *name) {
  return text_lists(
      " accel_first_step accel_steps accel_next_event accel_eval_is_due accel_eval_begin_together accel_mean_is_due ",
      name, false);
}

bool effect_is_of_steps(enum effect effect) {
  return effect <= EFFECT_BATCH;
}

const char *effect_word(enum effect effect) {
  static const char *const words[] = {
      "arithmetic",
      "memory",
      "a matrix library",
      "an exchange among ranks",
      "the runtime's batches",
      "the runtime",
      "allocation",
      "a file",
      "the network",
      "the environment",
      "a clock or chance",
      "processes and threads",
      "what is not known",
  };
  return words[effect];
}

bool external_meets_lanes(const char *name) {
  const size_t length = strlen(name), ending = strlen("_sync");
  if (strcmp(name, "__syncwarp") == 0) return true;
  return strncmp(name, "__", 2) == 0 && length > ending && strcmp(name + length - ending, "_sync") == 0;
}
