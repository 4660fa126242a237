/* Compile the step for each instruction set of the processor family, and choose one at run time. A pragma selects the
 * instruction set, rather than a compiler flag, so that one object file contains all versions. */

#include "step.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define STEP_INLINE inline __attribute__((always_inline))
#define STEP_NOINLINE __attribute__((noinline))

#define STEP_PRAGMA(...) _Pragma(#__VA_ARGS__)
#if defined(__clang__)
#define STEP_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define STEP_BEGIN_TARGET(list) \
    STEP_PRAGMA(clang attribute push(__attribute__((target(list))), apply_to = function))
#define STEP_END_TARGET STEP_PRAGMA(clang attribute pop)
#else
#define STEP_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (step_uints){__VA_ARGS__})
#define STEP_BEGIN_TARGET(list) STEP_PRAGMA(GCC push_options) STEP_PRAGMA(GCC target(list))
#define STEP_END_TARGET STEP_PRAGMA(GCC pop_options)
#endif
/* Keep a vector that is used several times in a register. Otherwise the compiler loads it again for each use, and
 * loads are the bottleneck (bench/NOTES.md). */
#if defined(__x86_64__)
#define STEP_IN_REGISTER(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define STEP_IN_REGISTER(vector) __asm__("" : "+w"(vector))
#else
#define STEP_IN_REGISTER(vector)
#endif

#define STEP_MIN(a, b) ((a) < (b) ? (a) : (b))

/* Maximum number of factors in each of the 8 products of StepLoss. A factor is between 1/2 and 1, so the product of all
 * columns stays above 2^−960 and does not underflow. One panel of up to 30 rows adds at most 60 factors, half of this
 * maximum, so the products are folded into `total` in time. A step has at most MAX_INPUTS_PER_STEP = 16 rows
 * (w2v/_settings.py). */
enum { LOSS_FACTORS = 120 };

/* Whether prefetches go to the first-level cache rather than the second. The first level was faster on Intel's
 * processors, the second on AMD's (bench/NOTES.md). */
static int prefetch_to_first_level = 0;

/* Each element of a vector combines the random bits with its own constant, so that the elements are rounded
 * independently. */
static const uint32_t STREAMS[16] __attribute__((aligned(64))) = {
    0x3c6ef372, 0xdaa66d2b, 0x78dde6e4, 0x1715609d, 0xb54cda56, 0x5384540f, 0xf1bbcdc8, 0x8ff34781,
    0x2e2ac13a, 0xcc623af3, 0x6a99b4ac, 0x08d12e65, 0xa708a81e, 0x454021d7, 0xe3779b90, 0x81af1549};

static inline int64_t step_cache_lines(int64_t floats) { return (floats + ROW_ALIGNMENT - 1) & -ROW_ALIGNMENT; }

/* Return the number of floats in a panel of n rows, and the number of floats that `count` pointers occupy. */
static inline int64_t step_panel(int64_t n) { return step_cache_lines(n * STEP_PANEL); }
static inline int64_t step_pointers(int64_t count) { return step_cache_lines(2 * count); }

/* Return the block size that divides `rows` into the fewest blocks of at most `limit` rows, all about equally large. */
static inline int64_t step_block(int64_t rows, int64_t limit) {
    const int64_t blocks = (rows + limit - 1) / limit;
    return (rows + blocks - 1) / blocks;
}

/* Return the next `floats` floats of scratch, and advance `scratch` beyond them. */
static inline float *step_allocate(float **scratch, int64_t floats) {
    float *const taken = *scratch;
    *scratch += floats;
    return taken;
}

/* The data that the phases of a step share: the division into blocks, and the arrays in scratch for their results. */
typedef struct {
    int64_t n;             /* number of rows of X: all inputs, or 1 for their mean */
    float **x;             /* X */
    float **updated;       /* the n rows to which alpha E Y is added: X itself, or the change of the mean */
    int64_t block, blocks; /* output rows in a block, and number of blocks */
    int64_t panel;         /* floats in a panel of n rows; each block of outputs has a panel */
    const float *target;   /* by column, with one panel for each block */
    const float *offset;
    float *error;          /* `blocks` panels: S, which the link replaces by alpha E */
    float *gram;           /* X Xᵀ in panels, if rows are sequential; otherwise NULL */
    float *copies;         /* space for n rows, then for n pointers */
} StepLayout;

/* Copy targets and offsets to one panel for each block, because sequential blocks differ in size from BLOCK_OUTPUTS. */
static void step_place_columns(const Step *s, const StepLayout *layout, float *target, float *offset) {
    for (int64_t column = 0, j = 0; column < layout->blocks * STEP_PANEL; column++) {
        const int used = column % STEP_PANEL < layout->block && j < s->m;
        target[column] = used ? s->target[step_column(j)] : 0;
        offset[column] = used ? s->offset[step_column(j)] : UNUSED_OFFSET;
        j += used;
    }
}

int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16) {
    const int64_t converted = bfloat16 ? step_pointers(n + m) + (n + m) * width : 0, rows = pooled ? 1 : n;
    const int64_t columns = step_columns(m), panels = (columns + step_columns(rows)) / STEP_PANEL;
    return converted + 2 * width + step_panel(rows) * panels + 2 * columns + rows * width + step_pointers(rows);
}

void step_loss_start(StepLoss *loss) {
    *loss = (StepLoss){.effective_samples = INFINITY};
    for (int k = 0; k < STEP_PANEL; k++) loss->product[k] = 1;
}

double step_loss_total(StepLoss *loss) {
    double product = 1;
    for (int k = 0; k < STEP_PANEL; k++) {
        loss->total += loss->linear[k];
        product *= loss->product[k];
        loss->linear[k] = 0;
        loss->product[k] = 1;
    }
    loss->factors = 0;
    return loss->total -= log(product);
}

#define STEP_LANES 4
#define STEP_NAME(x) x##_baseline
#if defined(__aarch64__)
#define STEP_REGISTERS 32
#else
#define STEP_REGISTERS 16
#endif
#include "step_body.h"

#if defined(__x86_64__)
STEP_BEGIN_TARGET("avx2,fma")
#define STEP_LANES 8
#define STEP_REGISTERS 16
#define STEP_NAME(x) x##_avx2
#include "step_body.h"
STEP_END_TARGET

STEP_BEGIN_TARGET("avx512f,avx512dq,avx512vl,avx2,fma")
#define STEP_LANES 16
#define STEP_REGISTERS 32
#define STEP_NAME(x) x##_avx512
#include "step_body.h"
STEP_END_TARGET
#endif

#if defined(__x86_64__)
/* Read CPUID directly: __builtin_cpu_supports needs a runtime library, and zig's version of it does not recognise any
 * instruction set. The operating system must also save the vector registers when it switches threads: XCR0 tells. */
static const StepFunctions *step_for_x86(const char *name) {
    enum { YMM = 0x06, ZMM = 0xe6 }; /* bits of XCR0 */
    const uint32_t avx512 = bit_AVX512F | bit_AVX512DQ | bit_AVX512VL;
    uint32_t a, b, c, d, vendor, saved;
    if (!__get_cpuid(0, &a, &vendor, &c, &d) || !__get_cpuid(1, &a, &b, &c, &d)) return NULL;
    prefetch_to_first_level = vendor == signature_INTEL_ebx;
    if (!(c & bit_OSXSAVE) || !(c & bit_FMA) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return NULL;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    if (!strcmp(name, "avx512") && (saved & ZMM) == ZMM && (b & avx512) == avx512) return &functions_avx512;
    if (!strcmp(name, "avx2") && (saved & YMM) == YMM && b & bit_AVX2) return &functions_avx2;
    return NULL;
}
#endif

const StepFunctions *step_choose(const char *name) {
#if defined(__x86_64__)
    const StepFunctions *const chosen = step_for_x86(name);
    if (chosen) return chosen;
#endif
#if defined(__aarch64__)
    if (!strcmp(name, "neon")) return &functions_baseline;
#endif
    return strcmp(name, "baseline") ? NULL : &functions_baseline;
}
