/* One update step: a few input rows times a few output rows.
 *
 *     S = X Yᵀ − offset                 scores, n × m
 *     E = target − weight · link(S)     error; the link is the logistic function of each score, or a softmax over each
 *                                       row of S, whose weights are 1
 *     X ← X + alpha E Y                 both updates use the values from before the step, unless it is sequential
 *     Y ← Y + alpha Eᵀ X
 *
 * step.c compiles one source, step_body.h, for each instruction set; step_choose() returns one of the results. */

#ifndef W2V_STEP_H
#define W2V_STEP_H

#include <stdint.h>

/* Scores, targets and offsets are stored in panels. A panel has STEP_PANEL columns, of which the first BLOCK_OUTPUTS
 * belong to output rows; the rest are padding, so that a row of a panel fills whole vector registers. */
enum {
    ROW_ALIGNMENT = 16, /* floats in a cache line: every row is padded with zeros to whole cache lines */
    BLOCK_OUTPUTS = 6,  /* output rows whose scores are computed together */
    STEP_PANEL = 8,     /* columns in a panel */
};
static const float NO_SCORE = 1e30f; /* the offset of a column without an output row: its probability is below 2e-28 */

/* The column of output row j's target and offset, and the number of columns of m output rows. */
static inline int64_t step_column(int64_t j) { return j / BLOCK_OUTPUTS * STEP_PANEL + j % BLOCK_OUTPUTS; }
static inline int64_t step_columns(int64_t m) { return (m + BLOCK_OUTPUTS - 1) / BLOCK_OUTPUTS * STEP_PANEL; }

/* The loss so far is total + Σ linear − Σ log(product). One logarithm is taken of a product of many factors, because
 * logarithms are slow. */
typedef struct {
    float linear[STEP_PANEL], product[STEP_PANEL]; /* aligned to a cache line */
    double total;
    int64_t factors; /* number of factors in each product */
    float effective; /* softmax with weights: the smallest (Σr)² / Σr² of an input row, where r is e^score of each
                      * draw: how many draws have an effect */
} StepLoss;

/* A bfloat16, which is the upper half of a float, as that float. */
static inline float step_widened(uint16_t half) {
    const union {
        uint32_t bits;
        float value;
    } x = {(uint32_t)half << 16};
    return x.value;
}

/* A float rounded to one of the two nearest bfloat16: away from zero if adding `chance` to the lower half carries, else
 * towards zero. With a uniform `chance` the mean is preserved (stochastic rounding, Gupta et al. 2015). */
static inline uint16_t step_rounded(float value, uint16_t chance) {
    const union {
        float value;
        uint32_t bits;
    } x = {value};
    return (uint16_t)((x.bits + chance) >> 16);
}

typedef struct {
    int64_t width;          /* values of a row to use, a multiple of StepFunctions.lanes; those behind them stay zero */
    int64_t n, m;           /* number of input rows and of output rows */
    float **inputs;         /* n rows X */
    float **outputs;        /* m rows Y, all different but a row of zeros, which may stand in several places: there the
                             * offset is NO_SCORE and the target 0, so it stays zero */
    const float *target;    /* by column, aligned to a cache line */
    const float *offset;    /* by column, aligned to a panel */
    const float *weight;    /* by column, aligned to a panel: how often the row was drawn; NULL: all were drawn once. A
                             * softmax has it in the offset, and needs it here for loss->effective alone */
    int64_t softmax;        /* columns before this one form one softmax, the others a second; 0: logistic function */
    int repeats;            /* whether an input row occurs twice; each occurrence is an input of its own */
    int sequential;         /* whether each input row sees the output rows as updated by the input rows before it */
    int pooled;             /* whether X is a single row, the mean of the n rows ... */
    float gradient_scale;   /* ... each of which then receives this times the update of X */
    float alpha;            /* learning rate */
    float **prefetch;       /* rows that the next steps need, fetched into cache during the update ... */
    int64_t prefetch_count; /* ... and their number */
    float *scratch;         /* step_scratch(...) floats, aligned to a cache line */
    int bfloat16;           /* whether rows are bfloat16, with a width that is a multiple of 2 · ROW_ALIGNMENT: they are
                             * widened to floats in scratch, and rounded after the update ... */
    uint64_t random;        /* ... with these random bits */
    StepLoss *loss;         /* increased by Σ −log p(target) */
} Step;

int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16);
void step_loss_start(StepLoss *loss);
double step_loss_total(StepLoss *loss); /* takes the pending logarithms */

/* A matrix whose rows are the parts of words: their own rows, and those of their n-grams. */
typedef struct {
    char *rows;
    int64_t row_bytes, width; /* of a row; its values */
    int bfloat16;
    float *scratch;           /* 2 · width floats, aligned to a cache line */
} StepParts;

typedef struct {
    int64_t lanes; /* floats in a vector register */
    void (*step)(const Step *step);
    /* to ← scale · the sum of n parts of a word */
    void (*compose)(const StepParts *parts, int64_t n, const int32_t *rows, float scale, void *to, uint32_t random);
    /* parts[k] ← parts[k] + shares[k] · (now − then) */
    void (*spread)(const StepParts *parts, int64_t n, const int32_t *rows, const float *shares, const void *now,
                   const void *then, uint32_t random);
} StepFunctions;

/* The functions for an instruction set ("avx512", "avx2", "neon", "baseline"); NULL if this machine cannot run it. */
const StepFunctions *step_choose(const char *name);

#endif
