/* The source code of the step. step.c includes it once for each instruction set, with these macros defined:
 *
 *     STEP_NAME(x)       x with the set's name appended
 *     STEP_LANES         floats in a vector register
 *     STEP_REGISTERS     number of vector registers, 16 or 32
 *
 * step_floats() is the step on float rows. step() also handles bfloat16. Before them come the phases of a step in their
 * order: pool, score, link, update and scatter.
 *
 * Score and update work on blocks of rows, with results that stay in registers. Blocks are as large as the registers
 * allow. With 32 registers, 4 × 6 scores need 24 accumulators and 5 operands, and the update of 6 outputs by 2 vectors
 * needs 12 old values, 12 new ones and 5 operands. Sequential rows do not need the old values, so their blocks have up
 * to 8 outputs: 2 × 8 scores, and 8 × 2 new values. With 16 registers the blocks have 2 × 6 scores and 6 × 1 values,
 * sequential or not. A single input row has an update of its own, which keeps the errors in registers. */

#if STEP_REGISTERS == 32
#define STEP_MAX_INPUTS 4        /* maximum of input rows in a block of scores */
#define STEP_SEQUENTIAL_INPUTS 2 /* the same for sequential input rows */
#define STEP_MAX_OUTPUTS 8       /* maximum of output rows in a block for sequential input rows, else BLOCK_OUTPUTS */
#define STEP_UPDATE_VECTORS 2    /* vectors of each row that are updated together */
#else
#define STEP_MAX_INPUTS 2
#define STEP_SEQUENTIAL_INPUTS 2
#define STEP_MAX_OUTPUTS 6
#define STEP_UPDATE_VECTORS 1
#endif
#define STEP_POOL_VECTORS 8   /* vectors of each row that are pooled, composed or updated together */
#define STEP_SINGLE_VECTORS 2 /* vectors of each row that are updated together for a single input */
#define STEP_LINK_ROWS 4      /* rows of scores that pass through the logistic function together */

#define step_vec STEP_NAME(step_vec)
#define step_uints STEP_NAME(step_uints)
#define step_row STEP_NAME(step_row)
#define step_row_ints STEP_NAME(step_row_ints)

/* step_vec       a vector register of floats
 * step_uints     a vector register of 32-bit unsigned integers
 * step_row       the floats in a row of a panel, or in the part of it that fits in a register
 * step_row_ints  the same part as 32-bit integers */
#define STEP_ROW_LANES STEP_MIN(STEP_LANES, STEP_PANEL)
typedef float step_vec __attribute__((vector_size(4 * STEP_LANES), may_alias));
typedef uint32_t step_uints __attribute__((vector_size(4 * STEP_LANES), may_alias));
typedef float step_row __attribute__((vector_size(4 * STEP_ROW_LANES), may_alias));
typedef int32_t step_row_ints __attribute__((vector_size(4 * STEP_ROW_LANES), may_alias));

/* An unrolled loop, so that arrays indexed by its counter stay in registers. */
#define STEP_EACH(index, count) _Pragma("GCC unroll 24") for (int index = 0; index < (count); index++)
#define STEP_VEC(pointer) (*(step_vec *)(pointer))
#define STEP_UINTS(pointer) (*(step_uints *)(pointer))
#define STEP_ROW(pointer) (*(step_row *)(pointer))

static STEP_INLINE step_vec STEP_NAME(splat)(float x) { return x - (step_vec){0}; }

/* Return the larger, or the smaller, of each pair of values; the second if one of them is NaN. */
#if defined(__x86_64__) && STEP_LANES == 4
#define STEP_LARGER __builtin_ia32_maxps
#define STEP_SMALLER __builtin_ia32_minps
#elif defined(__x86_64__)
#define STEP_LARGER __builtin_ia32_maxps256
#define STEP_SMALLER __builtin_ia32_minps256
#else
static STEP_INLINE step_row STEP_NAME(select)(step_row_ints mask, step_row yes, step_row no) {
    return (step_row)((mask & (step_row_ints)yes) | (~mask & (step_row_ints)no));
}
#define STEP_LARGER(a, b) STEP_NAME(select)((a) > (b), a, b)
#define STEP_SMALLER(a, b) STEP_NAME(select)((a) < (b), a, b)
#endif

/* Call function(U, d, ...) for all vectors of a row: for U vectors from float d on. U is a compile-time constant. */
#define STEP_FOR_VECTORS(function, width, ...)                                                     \
    do {                                                                                           \
        int64_t d = 0;                                                                             \
        for (; d + STEP_POOL_VECTORS * STEP_LANES <= width; d += STEP_POOL_VECTORS * STEP_LANES)   \
            function(STEP_POOL_VECTORS, d, __VA_ARGS__);                                           \
        switch ((width - d) / STEP_LANES) {                                                        \
        case 1: function(1, d, __VA_ARGS__); break;                                                \
        case 2: function(2, d, __VA_ARGS__); break;                                                \
        case 3: function(3, d, __VA_ARGS__); break;                                                \
        case 4: function(4, d, __VA_ARGS__); break;                                                \
        case 5: function(5, d, __VA_ARGS__); break;                                                \
        case 6: function(6, d, __VA_ARGS__); break;                                                \
        case 7: function(7, d, __VA_ARGS__); break;                                                \
        }                                                                                          \
    } while (0)

/* -- pool: X ← the mean of the input rows, or their weighted sum --------------------------------------------------- */

/* Pool U vectors of each row from float d on. */
static STEP_INLINE void STEP_NAME(pool_vectors)(const int U, int64_t d, int64_t n, float *const *inputs, float *mean) {
    step_vec sum[STEP_POOL_VECTORS];
    STEP_EACH(u, U) sum[u] = STEP_VEC(inputs[0] + d + u * STEP_LANES);
    for (int64_t i = 1; i < n; i++) {
        const float *const row = inputs[i] + d;
        STEP_EACH(u, U) sum[u] += STEP_VEC(row + u * STEP_LANES);
    }
    STEP_EACH(u, U) STEP_VEC(mean + d + u * STEP_LANES) = sum[u] * (1.0f / (float)n);
}

static STEP_INLINE void STEP_NAME(pool_weighted)(const int U, int64_t d, const Step *s, float *pooled) {
    step_vec sum[STEP_POOL_VECTORS];
    STEP_EACH(u, U) sum[u] = (step_vec){0};
    for (int64_t i = 0; i < s->n; i++) {
        const float *const row = s->inputs[i] + d;
        const step_vec weight = STEP_NAME(splat)(s->input_weight[i]);
        STEP_EACH(u, U) sum[u] += weight * STEP_VEC(row + u * STEP_LANES);
    }
    STEP_EACH(u, U) STEP_VEC(pooled + d + u * STEP_LANES) = sum[u];
}

static STEP_INLINE void STEP_NAME(pool)(const Step *s, const StepLayout *layout) {
    if (s->input_weight)
        STEP_FOR_VECTORS(STEP_NAME(pool_weighted), s->width, s, layout->x[0]);
    else
        STEP_FOR_VECTORS(STEP_NAME(pool_vectors), s->width, s->n, s->inputs, layout->x[0]);
}

/* -- score: S ← X Yᵀ, and for sequential rows G ← X Xᵀ ------------------------------------------------------------ */

/* STEP_FOLD_k is one level of a transposing reduction: it adds groups of k lanes of each vector and packs two vectors
 * into one. After log2(STEP_LANES) levels, lane i contains the sum of the lanes of vector i. Each shuffle is one
 * instruction. */
#if STEP_LANES == 16
#define STEP_FOLD_1(a, b)                                                                           \
    (STEP_SHUFFLE(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +                 \
     STEP_SHUFFLE(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31))
#define STEP_FOLD_2(a, b)                                                                           \
    (STEP_SHUFFLE(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +                 \
     STEP_SHUFFLE(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
#define STEP_FOLD_4(a, b)                                                                           \
    (STEP_SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +                   \
     STEP_SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#define STEP_FOLD_8(a, b)                                                                           \
    (STEP_SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +                 \
     STEP_SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31))
#elif STEP_LANES == 8
#define STEP_FOLD_1(a, b)                                                                           \
    (STEP_SHUFFLE(a, b, 0, 8, 1, 9, 4, 12, 5, 13) + STEP_SHUFFLE(a, b, 2, 10, 3, 11, 6, 14, 7, 15))
#define STEP_FOLD_2(a, b)                                                                           \
    (STEP_SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + STEP_SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15))
#define STEP_FOLD_4(a, b)                                                                           \
    (STEP_SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + STEP_SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#else
#define STEP_FOLD_1(a, b) (STEP_SHUFFLE(a, b, 0, 4, 1, 5) + STEP_SHUFFLE(a, b, 2, 6, 3, 7))
#define STEP_FOLD_2(a, b) (STEP_SHUFFLE(a, b, 0, 1, 4, 5) + STEP_SHUFFLE(a, b, 2, 3, 6, 7))
#endif

/* Sum the lanes of I × J vectors into I rows of a panel. Columns past J are undefined. */
static STEP_INLINE void STEP_NAME(sum_lanes)(const int I, const int J, step_vec *v, float *scores) {
    step_vec pairs[STEP_MAX_INPUTS * 4], fours[STEP_MAX_INPUTS * 2];
    STEP_EACH(i, I) STEP_EACH(k, 4) {
        const int even = STEP_MIN(2 * k, J - 1), odd = STEP_MIN(2 * k + 1, J - 1);
        pairs[i * 4 + k] = STEP_FOLD_1(v[i * J + even], v[i * J + odd]);
    }
    STEP_EACH(k, I * 2) fours[k] = STEP_FOLD_2(pairs[2 * k], pairs[2 * k + 1]);
#if STEP_LANES == 4
    STEP_EACH(k, I * 2) STEP_VEC(scores + k * STEP_LANES) = fours[k];
#elif STEP_LANES == 8
    STEP_EACH(i, I) STEP_VEC(scores + i * STEP_LANES) = STEP_FOLD_4(fours[2 * i], fours[2 * i + 1]);
#else
    STEP_EACH(k, (I + 1) / 2) {
        const int last = STEP_MIN(2 * k + 1, I - 1);
        const step_vec low = STEP_FOLD_4(fours[4 * k], fours[4 * k + 1]);
        const step_vec high = STEP_FOLD_4(fours[2 * last], fours[2 * last + 1]);
        const union { step_vec both; step_row of[2]; } rows = {STEP_FOLD_8(low, high)};
        STEP_EACH(i, 1 + last % 2) STEP_ROW(scores + k * STEP_LANES + i * STEP_PANEL) = rows.of[i];
    }
#endif
}

/* Compute the dot products of I rows x with J rows y, as I rows of a panel. */
static STEP_INLINE void STEP_NAME(score_block)(const int I, const int J, float *const *x, float *const *y,
                                               int64_t width, float *scores) {
    step_vec sums[STEP_MAX_INPUTS * BLOCK_OUTPUTS];
    const float *inputs[STEP_MAX_INPUTS], *outputs[STEP_MAX_OUTPUTS];
    STEP_EACH(i, I) inputs[i] = x[i];
    STEP_EACH(j, J) outputs[j] = y[j];
    STEP_EACH(k, I * J) sums[k] = (step_vec){0};
    for (int64_t d = 0; d < width; d += STEP_LANES) {
        step_vec input[STEP_MAX_INPUTS];
        STEP_EACH(i, I) input[i] = STEP_VEC(inputs[i] + d);
        STEP_EACH(j, J) {
            step_vec output = STEP_VEC(outputs[j] + d);
            STEP_IN_REGISTER(output);
            STEP_EACH(i, I) sums[i * J + j] += input[i] * output;
        }
    }
    STEP_NAME(sum_lanes)(I, J, sums, scores);
}

/* Call score_block with a compile-time constant for J. It is at most BLOCK_OUTPUTS, or STEP_MAX_OUTPUTS for sequential
 * rows, which come in blocks of at most STEP_SEQUENTIAL_INPUTS. */
static STEP_INLINE void STEP_NAME(score_outputs)(const int I, int64_t J, float *const *x, float *const *y,
                                                 int64_t width, float *scores) {
    switch (J) {
    case 1: STEP_NAME(score_block)(I, 1, x, y, width, scores); break;
    case 2: STEP_NAME(score_block)(I, 2, x, y, width, scores); break;
    case 3: STEP_NAME(score_block)(I, 3, x, y, width, scores); break;
    case 4: STEP_NAME(score_block)(I, 4, x, y, width, scores); break;
    case 5: STEP_NAME(score_block)(I, 5, x, y, width, scores); break;
    case 6: STEP_NAME(score_block)(I, 6, x, y, width, scores); break;
#if STEP_MAX_OUTPUTS == 8
    case 7: if (I <= STEP_SEQUENTIAL_INPUTS) STEP_NAME(score_block)(I, 7, x, y, width, scores); break;
    case 8: if (I <= STEP_SEQUENTIAL_INPUTS) STEP_NAME(score_block)(I, 8, x, y, width, scores); break;
#endif
    }
}

static STEP_NOINLINE void STEP_NAME(score_rows)(int64_t I, int64_t J, float *const *x, float *const *y, int64_t width,
                                                float *scores) {
    switch (I) {
    case 1: STEP_NAME(score_outputs)(1, J, x, y, width, scores); break;
    case 2: STEP_NAME(score_outputs)(2, J, x, y, width, scores); break;
#if STEP_MAX_INPUTS == 4
    case 3: STEP_NAME(score_outputs)(3, J, x, y, width, scores); break;
    case 4: STEP_NAME(score_outputs)(4, J, x, y, width, scores); break;
#endif
    }
}

/* Compute S and, for sequential rows, the part of G that they need: the products of each row with the rows before. */
static STEP_INLINE void STEP_NAME(score)(const Step *s, const StepLayout *layout) {
    const int64_t n = layout->n, block = layout->block, panel = layout->panel;
    const int64_t inputs = s->sequential ? STEP_SEQUENTIAL_INPUTS : step_block(n, STEP_MAX_INPUTS);
    for (int64_t i = 0; i < n; i += inputs) {
        const int64_t I = STEP_MIN(n - i, inputs), before = i + I - 1;
        float *to = layout->error + i * STEP_PANEL;
        for (int64_t j = 0; j < s->m; j += block, to += panel)
            STEP_NAME(score_rows)(I, STEP_MIN(s->m - j, block), layout->x + i, s->outputs + j, s->width, to);
        if (!layout->gram) continue;
        to = layout->gram + i * STEP_PANEL;
        for (int64_t k = 0; k < before; k += STEP_MAX_OUTPUTS, to += panel)
            STEP_NAME(score_rows)(I, STEP_MIN(before - k, STEP_MAX_OUTPUTS), layout->x + i, layout->x + k, s->width,
                                  to);
    }
}

/* -- link: S ← alpha E = alpha (target − link(S − offset)) -------------------------------------------------------- */

/* e ← e^x of R vectors, with an error of at most |x| / 4 + 3 ulp. e^x is 2^k · e^r with |r| ≤ ln 2 / 2. e^r is a Taylor
 * polynomial, evaluated in two halves for a shorter chain of dependent operations. x is clamped to ±64, and NaN becomes
 * 64. Values below e^−64 would make products denormal, which is slow (bench/NOTES.md). Values from e^89 on would
 * overflow. */
static STEP_INLINE void STEP_NAME(exp)(const int R, const step_row *x, step_row *e) {
    const step_row most = 64.0f - (step_row){0};
    step_row rounded[STEP_LINK_ROWS], r[STEP_LINK_ROWS], square[STEP_LINK_ROWS], p[STEP_LINK_ROWS];
    STEP_EACH(k, R) r[k] = STEP_LARGER(STEP_SMALLER(x[k], most), -most);
    STEP_EACH(k, R) rounded[k] = r[k] * 1.44269504f + 0x1.8p23f;
    STEP_EACH(k, R) r[k] = r[k] - (rounded[k] - 0x1.8p23f) * 0.693147181f;
    STEP_EACH(k, R) square[k] = r[k] * r[k];
    STEP_EACH(k, R) p[k] = 0.0416666667f + r[k] * 8.33333333e-3f + square[k] * 1.38888889e-3f;
    STEP_EACH(k, R) p[k] = 0.5f + r[k] * 0.166666667f + square[k] * p[k];
    STEP_EACH(k, R) p[k] = 1.0f + r[k] + square[k] * p[k];
    STEP_EACH(k, R) e[k] = (step_row)((step_row_ints)p[k] + ((step_row_ints)rounded[k] << 23));
}

/* Return the address of the score in row i and `column`. */
static STEP_INLINE float *STEP_NAME(score_at)(float *scores, int64_t panel, int64_t i, int64_t column) {
    return scores + column / STEP_PANEL * panel + i * STEP_PANEL + column % STEP_PANEL;
}

/* S ← alpha E, where E = target − weight · logistic(S − offset), in R rows from row i on. Their operations are
 * interleaved, because a single row would have to wait for the result of each operation.
 *
 * Sequential rows come one by one. The rows before row i have moved the outputs by Σ_k<i alpha E_k X_k, which adds
 * Σ_k<i G_ik alpha E_k to the scores of row i.
 *
 * The loss is Σ weight · log(1 + e^s) − target · s, and log(1 + e^s) = max(s, 0) − log max(p, 1 − p) for p =
 * logistic(s). The factors max(p, 1 − p) are multiplied first, and one logarithm is taken of their product. A weight
 * other than 1 needs a logarithm of its own, but such weights are rare. */
static STEP_INLINE void STEP_NAME(logistic_rows)(const int R, const int weighted, const Step *s,
                                                 const StepLayout *layout, int64_t i, int64_t from, int64_t to,
                                                 step_row *linear, step_row *product) {
    const int64_t panel = layout->panel;
    const float *const gram = layout->gram;
    const step_row zero = {0}, one = 1.0f - zero;
    for (int64_t column = from; column < to; column += STEP_ROW_LANES) {
        float *const scores = STEP_NAME(score_at)(layout->error, panel, 0, column);
        float *const at = scores + i * STEP_PANEL;
        const step_row target = STEP_ROW(layout->target + column), offset = STEP_ROW(layout->offset + column);
        const step_row weight = weighted ? STEP_ROW(s->weight + column) : one;
        step_row score[STEP_LINK_ROWS], minus[STEP_LINK_ROWS], p[STEP_LINK_ROWS], larger[STEP_LINK_ROWS];
        STEP_EACH(r, R) score[r] = STEP_ROW(at + r * STEP_PANEL) - offset;
        if (R == 1 && gram)
            for (int64_t k = 0; k < i; k++)
                score[0] += gram[k / STEP_MAX_OUTPUTS * panel + i * STEP_PANEL + k % STEP_MAX_OUTPUTS] *
                            STEP_ROW(scores + k * STEP_PANEL);
        STEP_EACH(r, R) minus[r] = -score[r];
        STEP_NAME(exp)(R, minus, p);
        STEP_EACH(r, R) p[r] = 1.0f / (1.0f + p[r]);
        STEP_EACH(r, R) larger[r] = STEP_LARGER(p[r], 1.0f - p[r]);
        STEP_EACH(r, R) *linear += weight * STEP_LARGER(zero, score[r]) - target * score[r];
        STEP_EACH(r, R) *product *= larger[r];
        STEP_EACH(r, R) STEP_ROW(at + r * STEP_PANEL) = s->alpha * (target - weight * p[r]);
        if (weighted)
            STEP_EACH(r, R) for (int k = 0; k < STEP_ROW_LANES; k++)
                if (weight[k] != 1.0f) s->loss->total -= (weight[k] - 1.0f) * logf(larger[r][k]);
    }
}

/* Apply the logistic link to all rows, in columns `from` to `to`. */
static STEP_INLINE void STEP_NAME(logistic)(const int weighted, const Step *s, const StepLayout *layout, int64_t from,
                                            int64_t to) {
    StepLoss *const loss = s->loss;
    step_row linear = STEP_ROW(loss->linear), product = STEP_ROW(loss->product);
    const int64_t n = layout->n;
    int64_t i = 0;
    if (!layout->gram) {
        for (; i + STEP_LINK_ROWS <= n; i += STEP_LINK_ROWS)
            STEP_NAME(logistic_rows)(STEP_LINK_ROWS, weighted, s, layout, i, from, to, &linear, &product);
        for (; i + 2 <= n; i += 2) STEP_NAME(logistic_rows)(2, weighted, s, layout, i, from, to, &linear, &product);
    }
    for (; i < n; i++) STEP_NAME(logistic_rows)(1, weighted, s, layout, i, from, to, &linear, &product);
    STEP_ROW(loss->linear) = linear;
    STEP_ROW(loss->product) = product;
    loss->factors += n * (to - from) / STEP_ROW_LANES;
    if (loss->factors > LOSS_FACTORS / 2) step_loss_total(loss);
}

/* S ← alpha E, where E = target − softmax(S − offset); each row has one softmax or two. Loss: log Σ e^s − target · s. */
static STEP_NOINLINE void STEP_NAME(softmax)(const Step *s, int64_t n, int64_t panel, float *scores) {
    const int64_t columns = step_columns(s->m);
    for (int64_t i = 0; i < n; i++)
        for (int64_t from = 0, to = STEP_MIN(s->softmax, columns); from < columns; from = to, to = columns) {
            step_row maxima = STEP_ROW(s->offset) - INFINITY, targets = {0}, sums = {0}, squares = {0};
            for (int64_t column = from; column < to; column += STEP_ROW_LANES) {
                float *const at = STEP_NAME(score_at)(scores, panel, i, column);
                const step_row score = STEP_ROW(at) - STEP_ROW(s->offset + column);
                maxima = STEP_LARGER(score, maxima);
                targets += STEP_ROW(s->target + column) * score;
                STEP_ROW(at) = score;
            }
            float max = maxima[0], sum = 0, square = 0, target = 0;
            for (int k = 1; k < STEP_ROW_LANES; k++) max = maxima[k] > max ? maxima[k] : max;
            for (int64_t column = from; column < to; column += STEP_ROW_LANES) {
                float *const at = STEP_NAME(score_at)(scores, panel, i, column);
                step_row u = STEP_ROW(at) - max;
                STEP_NAME(exp)(1, &u, &u);
                STEP_ROW(at) = u;
                /* If words were drawn, column 0 is the predicted word, which is not a sample: leave it out of both sums
                 * for effective_samples, and then add it to `sum`. */
                if (column == 0) u[0] = 0;
                sums += u;
                if (s->weight) squares += u * u / STEP_ROW(s->weight + column);
            }
            for (int k = 0; k < STEP_ROW_LANES; k++) sum += sums[k], square += squares[k], target += targets[k];
            if (s->weight) s->loss->effective_samples = STEP_MIN(sum * sum / square, s->loss->effective_samples);
            if (from == 0) sum += scores[i * STEP_PANEL];
            s->loss->total += log(sum) + max - target;
            for (int64_t column = from; column < to; column += STEP_ROW_LANES) {
                float *const at = STEP_NAME(score_at)(scores, panel, i, column);
                STEP_ROW(at) = s->alpha * (STEP_ROW(s->target + column) - STEP_ROW(at) / sum);
            }
        }
}

static STEP_NOINLINE void STEP_NAME(link)(const Step *s, const StepLayout *layout) {
    if (s->softmax) {
        STEP_NAME(softmax)(s, layout->n, layout->panel, layout->error);
        return;
    }
    /* All panels together may add more than LOSS_FACTORS / 2 factors to the loss; then process one panel at a time. */
    const int64_t columns = layout->blocks * STEP_PANEL;
    const int64_t at_once = layout->n * columns > LOSS_FACTORS / 2 * STEP_ROW_LANES ? STEP_PANEL : columns;
    for (int64_t from = 0, to; from < columns; from = to) {
        to = STEP_MIN(from + at_once, columns);
        if (s->weight)
            STEP_NAME(logistic)(1, s, layout, from, to);
        else
            STEP_NAME(logistic)(0, s, layout, from, to);
    }
}

/* -- update: X ← X + alpha E Y and Y ← Y + alpha Eᵀ X; `error` holds alpha E --------------------------------------- */

/* Update J outputs, and all inputs by these outputs, in U vectors of each row from float d on. `x` has the values of
 * the inputs before the step. alpha E Y is added to the rows `from`, or to `x` if `from` is NULL, and the sums are stored
 * in the rows `to`. If rows are sequential, each input sees Y as updated by the inputs before it. */
static STEP_INLINE void STEP_NAME(update_vectors)(const int sequential, const int J, const int U, int64_t n, int64_t d,
                                                  float *const *x, float *const *from, float *const *to,
                                                  float *const *y, const float *error) {
    step_vec before[STEP_MAX_OUTPUTS * STEP_UPDATE_VECTORS], now[STEP_MAX_OUTPUTS * STEP_UPDATE_VECTORS];
    STEP_EACH(j, J) STEP_EACH(u, U) now[j * U + u] = before[j * U + u] = STEP_VEC(y[j] + d + u * STEP_LANES);
    for (int64_t i = 0; i < n; i++) {
        /* A multiply-add waits for the previous one. Separate sums of even and odd outputs halve this wait. */
        step_vec input[STEP_UPDATE_VECTORS], sum[2][STEP_UPDATE_VECTORS];
        STEP_EACH(u, U) input[u] = STEP_VEC(x[i] + d + u * STEP_LANES);
        if (from)
            STEP_EACH(u, U) sum[0][u] = STEP_VEC(from[i] + d + u * STEP_LANES);
        else
            STEP_EACH(u, U) sum[0][u] = input[u];
        STEP_EACH(j, J) {
            const step_vec e = STEP_NAME(splat)(error[i * STEP_PANEL + j]);
            if (j == 1)
                STEP_EACH(u, U) sum[1][u] = e * (sequential ? now : before)[j * U + u];
            else
                STEP_EACH(u, U) sum[j % 2][u] += e * (sequential ? now : before)[j * U + u];
            STEP_EACH(u, U) now[j * U + u] += e * input[u];
        }
        if (J > 1) STEP_EACH(u, U) sum[0][u] += sum[1][u];
        STEP_EACH(u, U) STEP_VEC(to[i] + d + u * STEP_LANES) = sum[0][u];
    }
    STEP_EACH(j, J) STEP_EACH(u, U) STEP_VEC(y[j] + d + u * STEP_LANES) = now[j * U + u];
}

/* If a pair of cache lines begins at value d of a row, prefetch this pair of each of the first `count` rows. Two
 * lines per iteration are faster than one. If a row ends after the first line, that line is prefetched twice. */
static STEP_INLINE void STEP_NAME(prefetch)(const Step *s, int64_t d, int64_t count, int to_first_level) {
    const int64_t in_line = s->bfloat16 ? 2 * ROW_ALIGNMENT : ROW_ALIGNMENT; /* values in a cache line */
    if (d & (2 * in_line - 1)) return;
    const int64_t at = s->bfloat16 ? d / 2 : d, second = d + in_line < s->width ? ROW_ALIGNMENT : 0;
    for (int64_t k = 0; k < count; k++) {
        const float *const row = s->prefetch[k] + at;
        if (to_first_level) {
            __builtin_prefetch(row, 0, 3);
            __builtin_prefetch(row + second, 0, 3);
        } else {
            __builtin_prefetch(row, 0, 2);
            __builtin_prefetch(row + second, 0, 2);
        }
    }
}

/* Update all vectors of the rows for J outputs, and prefetch rows in the meantime. */
static STEP_INLINE void STEP_NAME(update_block)(const int sequential, const int J, const Step *s, int64_t n,
                                                float *const *x, float *const *from, float *const *to,
                                                float *const *y, const float *error, int64_t prefetch_count) {
    const int64_t together = STEP_UPDATE_VECTORS * STEP_LANES;
    const int to_first_level = prefetch_to_first_level;
    float *outputs[STEP_MAX_OUTPUTS];
    STEP_EACH(j, J) outputs[j] = y[j];
    int64_t d = 0;
    for (; d + together <= s->width; d += together) {
        STEP_NAME(update_vectors)(sequential, J, STEP_UPDATE_VECTORS, n, d, x, from, to, outputs, error);
        STEP_NAME(prefetch)(s, d, prefetch_count, to_first_level);
    }
    for (; d < s->width; d += STEP_LANES) {
        STEP_NAME(update_vectors)(sequential, J, 1, n, d, x, from, to, outputs, error);
        STEP_NAME(prefetch)(s, d, prefetch_count, to_first_level);
    }
}

/* Call update_block with a compile-time constant for J. */
static STEP_INLINE void STEP_NAME(update_outputs)(const int sequential, int64_t J, const Step *s, int64_t n,
                                                  float *const *x, float *const *from, float *const *to,
                                                  float *const *y, const float *error, int64_t prefetch_count) {
    switch (J) {
    case 1: STEP_NAME(update_block)(sequential, 1, s, n, x, from, to, y, error, prefetch_count); break;
    case 2: STEP_NAME(update_block)(sequential, 2, s, n, x, from, to, y, error, prefetch_count); break;
    case 3: STEP_NAME(update_block)(sequential, 3, s, n, x, from, to, y, error, prefetch_count); break;
    case 4: STEP_NAME(update_block)(sequential, 4, s, n, x, from, to, y, error, prefetch_count); break;
    case 5: STEP_NAME(update_block)(sequential, 5, s, n, x, from, to, y, error, prefetch_count); break;
    case 6: STEP_NAME(update_block)(sequential, 6, s, n, x, from, to, y, error, prefetch_count); break;
#if STEP_MAX_OUTPUTS == 8
    case 7: if (sequential) STEP_NAME(update_block)(1, 7, s, n, x, from, to, y, error, prefetch_count); break;
    case 8: if (sequential) STEP_NAME(update_block)(1, 8, s, n, x, from, to, y, error, prefetch_count); break;
#endif
    }
}

/* Each kind of update is a separate function, so that the compiler keeps its pointers and vectors in registers. */
static STEP_NOINLINE void STEP_NAME(update_sequential)(int64_t J, const Step *s, int64_t n, float *const *x,
                                                       float *const *from, float *const *to, float *const *y,
                                                       const float *error, int64_t prefetch_count) {
    STEP_NAME(update_outputs)(1, J, s, n, x, from, to, y, error, prefetch_count);
}

static STEP_NOINLINE void STEP_NAME(update_together)(int64_t J, const Step *s, int64_t n, float *const *x,
                                                     float *const *from, float *const *to, float *const *y,
                                                     const float *error, int64_t prefetch_count) {
    STEP_NAME(update_outputs)(0, J, s, n, x, from, to, y, error, prefetch_count);
}

/* Update J outputs, and a single input by these outputs, in U vectors from float d on: `to` ← `from` + alpha E Y. If
 * `from` is NULL, it counts as zeros. */
static STEP_INLINE void STEP_NAME(update_single_vectors)(const int J, const int U, int64_t d, const float *x,
                                                         const float *from, float *to, float *const *y,
                                                         const step_vec *errors) {
    step_vec input[STEP_SINGLE_VECTORS], sum[2][STEP_SINGLE_VECTORS];
    STEP_EACH(u, U) input[u] = STEP_VEC(x + d + u * STEP_LANES);
    STEP_EACH(u, U) sum[0][u] = from ? STEP_VEC(from + d + u * STEP_LANES) : (step_vec){0};
    STEP_EACH(u, U) sum[1][u] = (step_vec){0};
    STEP_EACH(j, J) STEP_EACH(u, U) {
        const step_vec output = STEP_VEC(y[j] + d + u * STEP_LANES);
        sum[j % 2][u] += errors[j] * output;
        STEP_VEC(y[j] + d + u * STEP_LANES) = output + errors[j] * input[u];
    }
    STEP_EACH(u, U) STEP_VEC(to + d + u * STEP_LANES) = sum[0][u] + sum[1][u];
}

/* Update all vectors of the rows for J outputs and a single input. The errors stay in registers. */
static STEP_INLINE void STEP_NAME(update_single_block)(const int J, const Step *s, const float *x, const float *from,
                                                       float *to, float *const *y, const float *error,
                                                       int64_t prefetch_count) {
    const int64_t together = STEP_SINGLE_VECTORS * STEP_LANES;
    const int to_first_level = prefetch_to_first_level;
    step_vec errors[STEP_MAX_OUTPUTS];
    float *outputs[STEP_MAX_OUTPUTS];
    STEP_EACH(j, J) outputs[j] = y[j];
    STEP_EACH(j, J) errors[j] = STEP_NAME(splat)(error[j]);
    int64_t d = 0;
    for (; d + together <= s->width; d += together) {
        STEP_NAME(update_single_vectors)(J, STEP_SINGLE_VECTORS, d, x, from, to, outputs, errors);
        STEP_NAME(prefetch)(s, d, prefetch_count, to_first_level);
    }
    for (; d < s->width; d += STEP_LANES) {
        STEP_NAME(update_single_vectors)(J, 1, d, x, from, to, outputs, errors);
        STEP_NAME(prefetch)(s, d, prefetch_count, to_first_level);
    }
}

static STEP_NOINLINE void STEP_NAME(update_single)(int64_t J, const Step *s, const float *x, const float *from,
                                                   float *to, float *const *y, const float *error,
                                                   int64_t prefetch_count) {
    switch (J) {
    case 1: STEP_NAME(update_single_block)(1, s, x, from, to, y, error, prefetch_count); break;
    case 2: STEP_NAME(update_single_block)(2, s, x, from, to, y, error, prefetch_count); break;
    case 3: STEP_NAME(update_single_block)(3, s, x, from, to, y, error, prefetch_count); break;
    case 4: STEP_NAME(update_single_block)(4, s, x, from, to, y, error, prefetch_count); break;
    case 5: STEP_NAME(update_single_block)(5, s, x, from, to, y, error, prefetch_count); break;
    case 6: STEP_NAME(update_single_block)(6, s, x, from, to, y, error, prefetch_count); break;
#if STEP_MAX_OUTPUTS == 8
    case 7: STEP_NAME(update_single_block)(7, s, x, from, to, y, error, prefetch_count); break;
    case 8: STEP_NAME(update_single_block)(8, s, x, from, to, y, error, prefetch_count); break;
#endif
    }
}

/* Update an input by m frozen outputs, in U vectors from float d on: `to` ← `from` + alpha E Y. If `from` is NULL, it
 * counts as zeros. */
static STEP_INLINE void STEP_NAME(update_input_vectors)(const int U, int64_t d, const Step *s, int64_t panel,
                                                        const float *error, const float *from, float *to) {
    step_vec sum[STEP_POOL_VECTORS];
    STEP_EACH(u, U) sum[u] = from ? STEP_VEC(from + d + u * STEP_LANES) : (step_vec){0};
    for (int64_t j = 0; j < s->m; j++) {
        const step_vec e = STEP_NAME(splat)(error[j / BLOCK_OUTPUTS * panel + j % BLOCK_OUTPUTS]);
        const float *const output = s->outputs[j] + d;
        STEP_EACH(u, U) sum[u] += e * STEP_VEC(output + u * STEP_LANES);
    }
    STEP_EACH(u, U) STEP_VEC(to + d + u * STEP_LANES) = sum[u];
}

/* Update X only. The errors are known, so a row that occurs twice is updated twice, without a copy of its old value. */
static STEP_NOINLINE void STEP_NAME(update_inputs)(const Step *s, const StepLayout *layout) {
    const int to_first_level = prefetch_to_first_level;
    for (int64_t d = 0; d < s->width; d += STEP_LANES) STEP_NAME(prefetch)(s, d, s->prefetch_count, to_first_level);
    for (int64_t i = 0; i < layout->n; i++) {
        const float *const error = layout->error + i * STEP_PANEL, *const from = s->pooled ? NULL : layout->x[i];
        STEP_FOR_VECTORS(STEP_NAME(update_input_vectors), s->width, s, layout->panel, error, from, layout->updated[i]);
    }
}

/* Update X and Y, one block of outputs after the other. Each block reads the old X and adds its part to the new X, so
 * with several blocks both are needed at the same time. If no row occurs twice, scratch has the new X until the last
 * block. If a row occurs twice, scratch has a copy of the old X, and the rows themselves become the new X. */
static STEP_INLINE void STEP_NAME(update)(const Step *s, const StepLayout *layout) {
    const int64_t n = layout->n, m = s->m, block = layout->block;
    float **x = layout->x, **const updated = layout->updated, **sums = updated;
    if (!s->pooled && (s->repeats || m > block)) {
        float **const rows = (float **)(layout->copies + n * s->width);
        for (int64_t i = 0; i < n; i++) rows[i] = layout->copies + i * s->width;
        if (s->repeats) {
            for (int64_t i = 0; i < n; i++) memcpy(rows[i], x[i], s->width * sizeof(float));
            x = rows;
        } else
            sums = rows;
    }
    const float *error = layout->error;
    for (int64_t j = 0; j < m; j += block, error += layout->panel) {
        const int64_t J = STEP_MIN(m - j, block), prefetch_count = j ? 0 : s->prefetch_count;
        float **const begin = j ? sums : updated, **const from = begin == x ? NULL : begin;
        float **const to = j + block < m ? sums : updated;
        if (n == 1) /* NULL: the change of a mean begins at zero */
            STEP_NAME(update_single)(J, s, x[0], s->pooled && !j ? NULL : begin[0], to[0], s->outputs + j, error,
                                     prefetch_count);
        else if (s->sequential)
            STEP_NAME(update_sequential)(J, s, n, x, from, to, s->outputs + j, error, prefetch_count);
        else
            STEP_NAME(update_together)(J, s, n, x, from, to, s->outputs + j, error, prefetch_count);
    }
}

/* -- scatter: each input row ← itself + gradient_scale · the change of the mean ----------------------------------- */

/* Add the change to U vectors of each row from float d on. */
static STEP_INLINE void STEP_NAME(scatter_vectors)(const int U, int64_t d, int64_t n, float *const *inputs, float scale,
                                                   const float *change) {
    step_vec part[STEP_POOL_VECTORS];
    STEP_EACH(u, U) part[u] = scale * STEP_VEC(change + d + u * STEP_LANES);
    for (int64_t i = 0; i < n; i++) {
        float *const row = inputs[i] + d;
        STEP_EACH(u, U) STEP_VEC(row + u * STEP_LANES) += part[u];
    }
}

/* Add the change times the row's weight to U vectors of each row from float d on. */
static STEP_INLINE void STEP_NAME(scatter_weighted)(const int U, int64_t d, const Step *s, const float *change) {
    step_vec part[STEP_POOL_VECTORS];
    STEP_EACH(u, U) part[u] = STEP_VEC(change + d + u * STEP_LANES);
    for (int64_t i = 0; i < s->n; i++) {
        float *const row = s->inputs[i] + d;
        const step_vec weight = STEP_NAME(splat)(s->input_weight[i]);
        STEP_EACH(u, U) STEP_VEC(row + u * STEP_LANES) += weight * part[u];
    }
}

static STEP_INLINE void STEP_NAME(scatter)(const Step *s, const StepLayout *layout) {
    if (s->input_weight)
        STEP_FOR_VECTORS(STEP_NAME(scatter_weighted), s->width, s, layout->updated[0]);
    else
        STEP_FOR_VECTORS(STEP_NAME(scatter_vectors), s->width, s->n - s->fixed_inputs, s->inputs + s->fixed_inputs,
                         s->gradient_scale, layout->updated[0]);
}

/* -- the step ----------------------------------------------------------------------------------------------------- */

/* Divide the step into blocks, and scratch into arrays. */
static STEP_INLINE StepLayout STEP_NAME(lay_out)(const Step *s) {
    float *scratch = s->scratch;
    StepLayout layout = {
        .n = s->pooled ? 1 : s->n, .x = s->inputs, .updated = s->inputs, .target = s->target, .offset = s->offset};
    layout.block = s->sequential ? step_block(s->m, STEP_MAX_OUTPUTS) : BLOCK_OUTPUTS;
    layout.blocks = (s->m + layout.block - 1) / layout.block;
    layout.panel = step_panel(layout.n);
    if (s->pooled) {
        float *const mean = step_allocate(&scratch, s->width), *const change = step_allocate(&scratch, s->width);
        layout.x = (float **)step_allocate(&scratch, step_pointers(2));
        layout.updated = layout.x + 1;
        layout.x[0] = mean;
        layout.updated[0] = change;
    }
    layout.error = step_allocate(&scratch, layout.panel * layout.blocks);
    if (s->sequential) {
        const int64_t columns = layout.blocks * STEP_PANEL;
        float *const target = step_allocate(&scratch, columns), *const offset = step_allocate(&scratch, columns);
        step_place_columns(s, &layout, target, offset);
        layout.target = target;
        layout.offset = offset;
        if (layout.n > 1) layout.gram = step_allocate(&scratch, layout.panel * step_columns(layout.n) / STEP_PANEL);
    }
    layout.copies = scratch;
    return layout;
}

static STEP_NOINLINE void STEP_NAME(step_floats)(const Step *s) {
    const StepLayout layout = STEP_NAME(lay_out)(s);
    if (s->pooled) STEP_NAME(pool)(s, &layout);
    STEP_NAME(score)(s, &layout);
    STEP_NAME(link)(s, &layout);
    if (s->frozen_outputs)
        STEP_NAME(update_inputs)(s, &layout);
    else
        STEP_NAME(update)(s, &layout);
    if (s->pooled) STEP_NAME(scatter)(s, &layout);
}

/* Convert a row of bfloat16, the upper halves of floats, to floats. This changes the order of values: in each group of
 * 2 · STEP_LANES, values at even positions come first, then values at odd positions. That does not matter, since all
 * rows of a step have the same order. */
static STEP_INLINE void STEP_NAME(bfloat16_to_floats)(int64_t width, const float *from, float *to) {
    for (int64_t d = 0; d < width; d += 2 * STEP_LANES) {
        const step_uints pair = STEP_UINTS(from + d / 2);
        STEP_UINTS(to + d) = pair << 16;
        STEP_UINTS(to + d + STEP_LANES) = pair & 0xffff0000u;
    }
}

/* Reverse bfloat16_to_floats, with stochastic rounding as in step_float_to_bfloat16. Late in training, nearly all
 * changes are smaller than half the distance between two neighbouring bfloat16, and rounding to the nearest would lose
 * them. */
static STEP_INLINE void STEP_NAME(floats_to_bfloat16)(int64_t width, const float *from, float *to, uint32_t random) {
    step_uints noise = (STEP_UINTS(STREAMS) ^ random) * 0x85ebca6bu;
    noise = (noise ^ noise >> 15) * 0xc2b2ae35u;
    for (int64_t d = 0; d < width; d += 2 * STEP_LANES, noise += 0x9e3779b9u) {
        const step_uints even = STEP_UINTS(from + d) + (noise & 0xffffu);
        const step_uints odd = STEP_UINTS(from + d + STEP_LANES) + (noise >> 16);
        STEP_UINTS(to + d / 2) = even >> 16 | (odd & 0xffff0000u);
    }
}

static void STEP_NAME(step)(const Step *s) {
    if (!s->bfloat16) {
        STEP_NAME(step_floats)(s);
        return;
    }
    const int64_t rows = s->n + s->m;
    Step floats = *s;
    floats.scratch = s->scratch + step_pointers(rows);
    floats.inputs = (float **)s->scratch;
    floats.outputs = floats.inputs + s->n;
    /* floats.outputs follows floats.inputs in memory, so floats.inputs[k] with k ≥ n is an output row. */
    for (int64_t k = 0; k < rows; k++) {
        float *const row = k < s->n ? s->inputs[k] : s->outputs[k - s->n];
        int64_t first = k; /* an input that occurs twice is converted once */
        if (s->repeats && k < s->n)
            for (first = 0; s->inputs[first] != row;) first++;
        if (first < k)
            floats.inputs[k] = floats.inputs[first];
        else {
            floats.inputs[k] = step_allocate(&floats.scratch, s->width);
            STEP_NAME(bfloat16_to_floats)(s->width, row, floats.inputs[k]);
        }
    }
    STEP_NAME(step_floats)(&floats);
    for (int64_t k = 0; k < (s->frozen_outputs ? s->n : rows); k++)
        STEP_NAME(floats_to_bfloat16)(s->width, floats.inputs[k], k < s->n ? s->inputs[k] : s->outputs[k - s->n],
                                      (uint32_t)(s->random >> 32) + (uint32_t)k * (uint32_t)(s->random | 1));
}

/* -- subwords ----------------------------------------------------------------------------------------------------- */

/* Add U vectors of the subwords from float d on. */
static STEP_INLINE void STEP_NAME(compose_vectors)(const int U, int64_t d, const StepMatrix *p, int64_t n,
                                                   const int32_t *rows, float scale, float *to, float *copy) {
    const char *const first = p->rows + d * sizeof(float);
    step_vec sum[STEP_POOL_VECTORS];
    STEP_EACH(u, U) sum[u] = (step_vec){0};
    for (int64_t k = 0; k < n; k++) {
        const float *const part = (const float *)(first + rows[k] * p->row_bytes);
        STEP_EACH(u, U) sum[u] += STEP_VEC(part + u * STEP_LANES);
    }
    STEP_EACH(u, U) STEP_VEC(to + d + u * STEP_LANES) = STEP_VEC(copy + d + u * STEP_LANES) = scale * sum[u];
}

static void STEP_NAME(compose)(const StepMatrix *p, int64_t n, const int32_t *rows, float scale, void *to, void *copy,
                               uint32_t random) {
    if (!p->bfloat16) {
        STEP_FOR_VECTORS(STEP_NAME(compose_vectors), p->width, p, n, rows, scale, to, copy);
        return;
    }
    float *const sum = p->scratch, *const part = p->scratch + p->width;
    for (int64_t d = 0; d < p->width; d += STEP_LANES) STEP_VEC(sum + d) = (step_vec){0};
    for (int64_t k = 0; k < n; k++) {
        STEP_NAME(bfloat16_to_floats)(p->width, (const float *)(p->rows + rows[k] * p->row_bytes), part);
        for (int64_t d = 0; d < p->width; d += STEP_LANES) STEP_VEC(sum + d) += STEP_VEC(part + d);
    }
    for (int64_t d = 0; d < p->width; d += STEP_LANES) STEP_VEC(sum + d) *= scale;
    STEP_NAME(floats_to_bfloat16)(p->width, sum, to, random);
    memcpy(copy, to, p->row_bytes);
}

/* Update U vectors of the subwords from float d on. */
static STEP_INLINE void STEP_NAME(update_subword_vectors)(const int U, int64_t d, const StepMatrix *p, int64_t n,
                                                          const int32_t *rows, const float *shares, const float *now,
                                                          const float *then) {
    char *const first = p->rows + d * sizeof(float);
    step_vec change[STEP_POOL_VECTORS];
    STEP_EACH(u, U) change[u] = STEP_VEC(now + d + u * STEP_LANES) - STEP_VEC(then + d + u * STEP_LANES);
    for (int64_t k = 0; k < n; k++) {
        float *const part = (float *)(first + rows[k] * p->row_bytes);
        const step_vec share = STEP_NAME(splat)(shares[k]);
        STEP_EACH(u, U) STEP_VEC(part + u * STEP_LANES) += share * change[u];
    }
}

static void STEP_NAME(update_subwords)(const StepMatrix *p, int64_t n, const int32_t *rows, const float *shares,
                                       const void *now, const void *then, uint32_t random) {
    if (!p->bfloat16) {
        STEP_FOR_VECTORS(STEP_NAME(update_subword_vectors), p->width, p, n, rows, shares, now, then);
        return;
    }
    float *const change = p->scratch, *const part = p->scratch + p->width;
    STEP_NAME(bfloat16_to_floats)(p->width, now, change);
    STEP_NAME(bfloat16_to_floats)(p->width, then, part);
    for (int64_t d = 0; d < p->width; d += STEP_LANES) STEP_VEC(change + d) -= STEP_VEC(part + d);
    for (int64_t k = 0; k < n; k++) {
        float *const row = (float *)(p->rows + rows[k] * p->row_bytes);
        const step_vec share = STEP_NAME(splat)(shares[k]);
        STEP_NAME(bfloat16_to_floats)(p->width, row, part);
        for (int64_t d = 0; d < p->width; d += STEP_LANES) STEP_VEC(part + d) += share * STEP_VEC(change + d);
        STEP_NAME(floats_to_bfloat16)(p->width, part, row, random + (uint32_t)k * 0x9e3779b9u);
    }
}

static const StepFunctions STEP_NAME(functions) = {STEP_LANES, STEP_NAME(step), STEP_NAME(compose),
                                                   STEP_NAME(update_subwords)};

#undef STEP_NAME
#undef STEP_LANES
#undef STEP_REGISTERS
#undef STEP_MAX_INPUTS
#undef STEP_SEQUENTIAL_INPUTS
#undef STEP_MAX_OUTPUTS
#undef STEP_UPDATE_VECTORS
#undef STEP_POOL_VECTORS
#undef STEP_LINK_ROWS
#undef STEP_SINGLE_VECTORS
#undef STEP_FOR_VECTORS
#undef STEP_LARGER
#undef STEP_SMALLER
#undef step_vec
#undef step_uints
#undef step_row
#undef step_row_ints
#undef STEP_ROW_LANES
#undef STEP_EACH
#undef STEP_VEC
#undef STEP_UINTS
#undef STEP_ROW
#undef STEP_FOLD_1
#undef STEP_FOLD_2
#undef STEP_FOLD_4
#undef STEP_FOLD_8
