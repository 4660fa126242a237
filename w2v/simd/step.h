/* The one update step: a few input rows times a few output rows.
 *
 *     S = X Yᵀ − offset        scores, n × m
 *     E = target − link(S)     error; link: the logistic function of each score, or the softmax of a row's
 *     X ← X + alpha E Y        both updates use the values read before the step
 *     Y ← Y + alpha Eᵀ X
 *
 * step.c compiles the same source, step_body.h, for each instruction set and step_choose() picks one. */

#ifndef W2V_STEP_H
#define W2V_STEP_H

#include <stdint.h>

enum {
    ROW_ALIGNMENT = 16, /* floats in a cache line: every row starts on one and is padded with zeros to one */
    BLOCK_OUTPUTS = 6,  /* output rows whose scores are computed together; they fill the first columns */
    PANEL = 8,          /* of a panel of this many, so that rows of scores never straddle a vector */
};
static const float NO_SCORE = 1e30f; /* the offset of a column without an output row: its probability is below 2e-28 */

/* Where output row j's target and offset stand, and how many columns m rows take. */
static inline int64_t step_column(int64_t j) { return j / BLOCK_OUTPUTS * PANEL + j % BLOCK_OUTPUTS; }
static inline int64_t step_columns(int64_t m) { return (m + BLOCK_OUTPUTS - 1) / BLOCK_OUTPUTS * PANEL; }

/* The loss so far is total + Σ linear + Σ log(product): logarithms are slow, and one serves many factors. */
typedef struct {
    float linear[PANEL], product[PANEL]; /* aligned to a cache line */
    double total;
    int64_t factors; /* in each product */
    float effective; /* least (Σr)² / Σr² of a row, r = e^score of all but the first column, by a softmax with weights */
} StepLoss;

/* A bfloat16, the high half of a float, as that float. */
static inline float step_widened(uint16_t half) {
    const union {
        uint32_t bits;
        float value;
    } x = {(uint32_t)half << 16};
    return x.value;
}

/* A float as a bfloat16: the next one towards zero, or beyond if `chance` reaches as far as the rest; a chance drawn
 * evenly keeps the mean (stochastic rounding, Gupta et al. 2015). */
static inline uint16_t step_rounded(float value, uint16_t chance) {
    const union {
        float value;
        uint32_t bits;
    } x = {value};
    return (uint16_t)((x.bits + chance) >> 16);
}

typedef struct {
    int64_t width;        /* floats in a row, a multiple of ROW_ALIGNMENT */
    int64_t n, m;         /* input rows, output rows */
    float **inputs;       /* n rows X */
    float **outputs;      /* m rows Y: read and updated; no row twice */
    const float *target;  /* by column, aligned to a cache line */
    const float *offset;  /* by column, aligned to a panel */
    const float *weight;  /* by column, aligned to a panel, how often each is drawn: target − weight · logistic; or NULL */
    int64_t softmax;      /* columns before this one are a softmax, and those from it on another; 0: logistic */
    int repeats;          /* whether an input row stands twice; each time is an input of its own */
    int turns;            /* whether each input row meets the outputs as the rows before it have moved them */
    int pooled;           /* X is one row, the mean of the n rows ... */
    float spread;         /* ... which each receive this times its update */
    float alpha;          /* learning rate */
    float **ahead;        /* rows that the next steps need, fetched into cache while this one computes */
    int64_t ahead_count;
    float *scratch;       /* step_scratch(...) floats, aligned to a cache line */
    int bfloat16;         /* whether rows are of bfloat16, width a multiple of 2 · ROW_ALIGNMENT: they are widened to
                           * floats in scratch, and rounded when they have moved ... */
    uint64_t random;      /* ... by these bits */
    StepLoss *loss;       /* grows by Σ −log p(target) */
} Step;

int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16);
void step_loss_start(StepLoss *loss);
double step_loss_total(StepLoss *loss); /* settles the pending logarithms */

typedef void (*StepFunction)(const Step *step);

/* The step for an instruction set ("avx512", "avx2", "baseline"), NULL where this machine cannot run it. */
StepFunction step_choose(const char *name);

#endif
