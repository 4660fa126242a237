/* One update step: a few input rows times a few output rows.
 *
 *     S = X Yᵀ − offset                 scores, n × m
 *     E = target − weight · link(S)     error; the link is the logistic function of each score, or a softmax over each
 *                                       row of S (a softmax takes the weights through the offset)
 *     X ← X + alpha E Y                 both updates use the values from before the step, unless it is sequential
 *     Y ← Y + alpha Eᵀ X
 *
 * step.c compiles step_body.h once for each instruction set. step_choose() returns the functions for one of them. */

#ifndef W2V_STEP_H
#define W2V_STEP_H

#include <stdint.h>

/* Scores, targets and offsets are stored in panels. A panel has STEP_PANEL columns. The first BLOCK_OUTPUTS of them
 * belong to output rows. The rest are padding, so that a row of a panel fills vector registers completely. */
enum {
    ROW_ALIGNMENT = 16, /* floats in a cache line: every row is padded with zeros to whole cache lines */
    BLOCK_OUTPUTS = 6,  /* output rows with scores computed together */
    STEP_PANEL = 8,     /* columns in a panel */
};
static const float UNUSED_OFFSET = 1e30f; /* of a column without an output row; its probability is below 2e-28 */

/* Return the column of output row j, and the number of columns for m output rows. */
static inline int64_t step_column(int64_t j) { return j / BLOCK_OUTPUTS * STEP_PANEL + j % BLOCK_OUTPUTS; }
static inline int64_t step_columns(int64_t m) { return (m + BLOCK_OUTPUTS - 1) / BLOCK_OUTPUTS * STEP_PANEL; }

/* The loss so far is total + Σ linear − Σ log(product). Logarithms are slow, so factors are multiplied first, and one
 * logarithm is taken of the product. */
typedef struct {
    float linear[STEP_PANEL], product[STEP_PANEL]; /* aligned to a cache line */
    double total;
    int64_t factors;         /* number of factors in each product */
    float effective_samples; /* softmax with weights: the effective sample size, (Σr)² / Σr² where r is e^score of
                              * each draw; the minimum over input rows */
} StepLoss;

/* Convert a bfloat16, which is the upper half of a float, to that float. */
static inline float step_bfloat16_to_float(uint16_t half) {
    const union {
        uint32_t bits;
        float value;
    } x = {(uint32_t)half << 16};
    return x.value;
}

/* Round a float to one of the two nearest bfloat16: away from zero if adding `chance` to the lower half carries, else
 * towards zero. With a uniform `chance` the mean is preserved (stochastic rounding, Gupta et al. 2015). */
static inline uint16_t step_float_to_bfloat16(float value, uint16_t chance) {
    const union {
        float value;
        uint32_t bits;
    } x = {value};
    return (uint16_t)((x.bits + chance) >> 16);
}

typedef struct {
    int64_t width;          /* values of a row to use, a multiple of StepFunctions.lanes; values after them stay 0 */
    int64_t n, m;           /* number of input rows and of output rows */
    float **inputs;         /* n rows X */
    float **outputs;        /* m rows Y. They are distinct, except that a row of zeros may occur several times. Its
                             * offset is UNUSED_OFFSET and its target 0, so it stays zero */
    const float *target;    /* by column, aligned to a cache line */
    const float *offset;    /* by column, aligned to a panel */
    const float *weight;    /* by column, aligned to a panel: how often the row was drawn; NULL if every row was drawn
                             * once. A softmax takes the weight from the offset, and uses this array only to compute
                             * loss->effective_samples */
    int64_t softmax;        /* columns before this one form one softmax, the others a second; 0: logistic function */
    int repeats;            /* whether an input row occurs twice; each occurrence counts as an input */
    int sequential;         /* whether each input row sees the output rows as updated by the input rows before it */
    int frozen_outputs;     /* whether Y stays as it is: only X is updated, and the step is not sequential */
    int pooled;             /* whether X is a single row: the mean of the n rows, or their sum with input_weight */
    const float *input_weight; /* n factors of the rows in this sum, and of their updates; NULL: take the mean */
    float gradient_scale;   /* if pooled, each of the n rows receives this times the update of X */
    int64_t fixed_inputs;   /* if pooled without input_weight, this number of rows, the first ones, stay as they are */
    float alpha;            /* learning rate */
    float **prefetch;       /* rows of the next steps, to prefetch during the update */
    int64_t prefetch_count; /* number of these rows */
    float *scratch;         /* step_scratch(...) floats, aligned to a cache line */
    int bfloat16;           /* whether rows are bfloat16, with a width that is a multiple of 2 · ROW_ALIGNMENT. Then
                             * they are converted to floats in scratch, and rounded after the update */
    uint64_t random;        /* random bits for this rounding */
    StepLoss *loss;         /* the step adds Σ −log p(target) to it */
} Step;

int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16);
void step_loss_start(StepLoss *loss);
double step_loss_total(StepLoss *loss); /* add the pending logarithms to the total, and return it */

/* The input matrix with subwords: the own row of each word, and the rows of n-grams. */
typedef struct {
    char *rows;
    int64_t row_bytes, width; /* bytes and values in a row */
    int bfloat16;
    float *scratch;           /* 2 · width floats, aligned to a cache line */
} StepMatrix;

typedef struct {
    int64_t lanes; /* floats in a vector register */
    void (*step)(const Step *step);
    /* to, copy ← scale · the sum of n subwords of a word */
    void (*compose)(const StepMatrix *matrix, int64_t n, const int32_t *rows, float scale, void *to, void *copy,
                    uint32_t random);
    /* row k ← row k + shares[k] · (now − then) */
    void (*update_subwords)(const StepMatrix *matrix, int64_t n, const int32_t *rows, const float *shares,
                            const void *now, const void *then, uint32_t random);
} StepFunctions;

/* Return the functions for an instruction set: "avx512", "avx2", "neon" or "baseline". NULL: this machine cannot run
 * it. */
const StepFunctions *step_choose(const char *name);

#endif
