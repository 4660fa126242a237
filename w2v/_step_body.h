/* The step's source, included by _step.c once for each instruction set, which defines
 *
 *     NAME(x)        x with the set's name appended
 *     LANES          floats in a vector register
 *     BLOCK_INPUTS   input rows whose scores are held in registers at once (× BLOCK_OUTPUTS)
 *     UNROLL         vectors of each row that one pass of the update holds in registers
 *
 * With 32 registers 4 × 6 scores need 24 accumulators and 5 operands; the update of 6 outputs × 2 vectors needs
 * 12 old values, 12 new ones and 5 operands. With 16 registers the same blocks are 2 × 6 and 6 × 1. */

#define ROW_LANES LEAST(LANES, PANEL) /* scores are worked on a panel's row at a time */
#define vec NAME(vec)
#define lanes NAME(lanes)
#define row NAME(row)
#define bits NAME(bits)

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t lanes __attribute__((vector_size(4 * LANES), may_alias));
typedef float row __attribute__((vector_size(4 * ROW_LANES), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * ROW_LANES), may_alias));

#define EACH(index, count) _Pragma("GCC unroll 24") for (int index = 0; index < (count); index++)
#define AT(pointer) (*(vec *)(pointer))
#define ROW(pointer) (*(row *)(pointer))

static INLINE vec NAME(splat)(float x) { return x - (vec){0}; }

static INLINE row NAME(select)(bits mask, row yes, row no) { return (row)((mask & (bits)yes) | (~mask & (bits)no)); }

/* One level of the transpose-reduce: adds the halves of each vector while packing two vectors into one. After
 * log2(LANES) levels lane k holds the sum of vector k's lanes. Each shuffle is one instruction. */
#if LANES == 16
#define FOLD_1(a, b)                                                                                       \
    (SHUFFLE(lanes, a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +                       \
     SHUFFLE(lanes, a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31))
#define FOLD_2(a, b)                                                                                       \
    (SHUFFLE(lanes, a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +                       \
     SHUFFLE(lanes, a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
#define FOLD_4(a, b)                                                                                       \
    (SHUFFLE(lanes, a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +                         \
     SHUFFLE(lanes, a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#define FOLD_8(a, b)                                                                                       \
    (SHUFFLE(lanes, a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +                       \
     SHUFFLE(lanes, a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31))
#elif LANES == 8
#define FOLD_1(a, b)                                                                                       \
    (SHUFFLE(lanes, a, b, 0, 8, 1, 9, 4, 12, 5, 13) + SHUFFLE(lanes, a, b, 2, 10, 3, 11, 6, 14, 7, 15))
#define FOLD_2(a, b)                                                                                       \
    (SHUFFLE(lanes, a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(lanes, a, b, 2, 3, 10, 11, 6, 7, 14, 15))
#define FOLD_4(a, b)                                                                                       \
    (SHUFFLE(lanes, a, b, 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(lanes, a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#else
#define FOLD_1(a, b) (SHUFFLE(lanes, a, b, 0, 4, 1, 5) + SHUFFLE(lanes, a, b, 2, 6, 3, 7))
#define FOLD_2(a, b) (SHUFFLE(lanes, a, b, 0, 1, 4, 5) + SHUFFLE(lanes, a, b, 2, 3, 6, 7))
#endif

/* Sums the lanes of I × J vectors into I rows of PANEL scores; those past J are left without meaning. */
static INLINE void NAME(sum_lanes)(const int I, const int J, vec *v, float *scores) {
    vec pairs[BLOCK_INPUTS * 4], fours[BLOCK_INPUTS * 2];
    EACH(i, I) EACH(k, 4) pairs[i * 4 + k] = FOLD_1(v[i * J + LEAST(2 * k, J - 1)], v[i * J + LEAST(2 * k + 1, J - 1)]);
    EACH(k, I * 2) fours[k] = FOLD_2(pairs[2 * k], pairs[2 * k + 1]);
#if LANES == 4
    EACH(k, I * 2) AT(scores + k * LANES) = fours[k];
#elif LANES == 8
    EACH(i, I) AT(scores + i * LANES) = FOLD_4(fours[2 * i], fours[2 * i + 1]);
#else
    EACH(k, (I + 1) / 2) {
        const int last = LEAST(2 * k + 1, I - 1);
        const vec low = FOLD_4(fours[4 * k], fours[4 * k + 1]), high = FOLD_4(fours[2 * last], fours[2 * last + 1]);
        AT(scores + k * LANES) = FOLD_8(low, high);
    }
#endif
}

/* Scores of I × J rows, as I rows of a panel. */
static INLINE void NAME(score_block)(const int I, const int J, float *const *x, float *const *y, int64_t width,
                                     float *scores) {
    vec sums[BLOCK_INPUTS * BLOCK_OUTPUTS];
    EACH(k, I * J) sums[k] = (vec){0};
    for (int64_t d = 0; d < width; d += LANES) {
        vec input[BLOCK_INPUTS];
        EACH(i, I) input[i] = AT(x[i] + d);
        EACH(j, J) {
            const vec output = AT(y[j] + d);
            EACH(i, I) sums[i * J + j] += input[i] * output;
        }
    }
    NAME(sum_lanes)(I, J, sums, scores);
}

/* Adds E Y to the input sums and Eᵀ X to J output rows, over U vectors of each row. `x` holds the inputs' values before
 * the step; the outputs' are those before the step or, by turns, as the inputs before have moved them. */
static INLINE void NAME(update_block)(const int turns, const int J, const int U, int64_t n, int64_t d, float *const *x,
                                      int64_t x_at, float *const *x_sums, float *const *y, const float *error) {
    vec before[BLOCK_OUTPUTS * UNROLL], now[BLOCK_OUTPUTS * UNROLL];
    EACH(j, J) EACH(u, U) now[j * U + u] = before[j * U + u] = AT(y[j] + d + u * LANES);
    for (int64_t i = 0; i < n; i++) {
        vec input[UNROLL], sum[2][UNROLL]; /* two sums: half the wait for one multiply-add to end before the next */
        EACH(u, U) input[u] = AT(x[i] + x_at + u * LANES);
        EACH(u, U) sum[0][u] = x == x_sums ? input[u] : AT(x_sums[i] + d + u * LANES);
        EACH(u, U) sum[1][u] = (vec){0};
        EACH(j, J) {
            const vec e = NAME(splat)(error[i * PANEL + j]);
            EACH(u, U) sum[j % 2][u] += e * (turns ? now : before)[j * U + u];
            EACH(u, U) now[j * U + u] += e * input[u];
        }
        EACH(u, U) AT(x_sums[i] + d + u * LANES) = sum[0][u] + sum[1][u];
    }
    EACH(j, J) EACH(u, U) AT(y[j] + d + u * LANES) = now[j * U + u];
}

#define ALL_OUTPUTS(macro, ...) \
    macro(1, __VA_ARGS__) macro(2, __VA_ARGS__) macro(3, __VA_ARGS__) macro(4, __VA_ARGS__) macro(5, __VA_ARGS__) \
    macro(6, __VA_ARGS__)

#define SCORE_CASE(J, I) \
    case (I) * 8 + (J): NAME(score_block)(I, J, x, y, width, scores); break;

static NOINLINE void NAME(score)(int I, int J, float *const *x, float *const *y, int64_t width, float *scores) {
    switch (I * 8 + J) {
        ALL_OUTPUTS(SCORE_CASE, 1)
        ALL_OUTPUTS(SCORE_CASE, 2)
#if BLOCK_INPUTS == 4
        ALL_OUTPUTS(SCORE_CASE, 3)
        ALL_OUTPUTS(SCORE_CASE, 4)
#endif
    }
}

/* e^x for x ≤ 0, to 3 ulp: 2^k · e^r with |r| ≤ ln 2 / 2 and Taylor's polynomial for e^r. Below −64 it stays at
 * 1.6e-28: smaller ones become denormal numbers when they are multiplied, and those are slow (bench/NOTES.md). */
static INLINE row NAME(exp)(row x) {
    x = NAME(select)(x < -64.0f, x - x - 64.0f, x);
    const row shift = x - x + 0x1.8p23f, rounded = x * 1.44269504f + shift, k = rounded - shift;
    const row r = x - k * 0.693145752f - k * 1.42860677e-6f;
    const row p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666667f + r * (0.0416666667f +
                  r * (8.33333333e-3f + r * 1.38888889e-3f)))));
    return (row)((bits)p + ((bits)rounded << 23));
}

/* Where the scores of input i begin for the vector of columns from `column` on. */
static INLINE float *NAME(score_at)(float *scores, int64_t panel, int64_t i, int64_t column) {
    return scores + column / PANEL * panel + i * PANEL + column % PANEL;
}

/* Scores of the rows from `first` to `end` → alpha (target − weight · logistic(score − offset)), in place, row by row.
 * `gram`, where there is one, holds the products of the inputs: it adds to a row's scores what the rows before it
 * have moved the outputs by. Loss: Σ weight · log(1 + e^s) − target · s; of the logarithms there is one for a running
 * Π (1 + e^−|s|), and one for each weight but 1, which are few. */
static INLINE void NAME(logistic)(const int weighted, const Step *s, int64_t first, int64_t end, int64_t panel,
                                  float *scores, const float *gram) {
    StepLoss *const loss = s->loss;
    row linear = ROW(loss->linear), product = ROW(loss->product);
    int64_t factors = loss->factors;
    const int64_t columns = step_columns(s->m);
    for (int64_t i = first; i < end; i++)
        for (int64_t column = 0; column < columns; column += ROW_LANES) {
            float *const at = scores + column / PANEL * panel + column % PANEL;
            const row t = ROW(s->target + column);
            row score = ROW(at + i * PANEL) - ROW(s->offset + column);
            if (gram)
                for (int64_t k = 0; k < i; k++)
                    score += gram[k / BLOCK_OUTPUTS * panel + i * PANEL + k % BLOCK_OUTPUTS] * ROW(at + k * PANEL);
            const row size = (row)((bits)score & 0x7fffffff), positive = (row)((bits)score & (score > 0.0f));
            const row u = NAME(exp)(-size), one = size - size + 1.0f;
            const row weight = weighted ? ROW(s->weight + column) : one;
            linear += weight * positive - t * score;
            product *= 1.0f + u;
            ROW(at + i * PANEL) = s->alpha * (t - weight * (NAME(select)(score < 0.0f, u, one) / (1.0f + u)));
            if (weighted)
                for (int k = 0; k < ROW_LANES; k++)
                    if (weight[k] != 1.0f) loss->total += (weight[k] - 1.0f) * log1pf(u[k]);
            if (++factors == LOSS_FACTORS) {
                ROW(loss->linear) = linear;
                ROW(loss->product) = product;
                step_loss_total(loss);
                linear = size - size;
                product = one;
                factors = 0;
            }
        }
    ROW(loss->linear) = linear;
    ROW(loss->product) = product;
    loss->factors = factors;
}

/* Scores of the rows from `first` to `end` → alpha (target − softmax(score − offset)), in place; a row has one softmax
 * or two. Loss: log Σ e^s − target · s. */
static NOINLINE void NAME(softmax)(const Step *s, int64_t first, int64_t end, int64_t panel, float *scores) {
    const int64_t columns = step_columns(s->m);
    for (int64_t i = first; i < end; i++)
        for (int64_t from = 0, to = LEAST(s->softmax, columns); from < columns; from = to, to = columns) {
            row greatest = ROW(s->offset) - INFINITY, targets = {0}, sum = {0}, squares = {0};
            for (int64_t column = from; column < to; column += ROW_LANES) {
                float *const at = NAME(score_at)(scores, panel, i, column);
                const row score = ROW(at) - ROW(s->offset + column);
                greatest = NAME(select)(score > greatest, score, greatest);
                targets += ROW(s->target + column) * score;
                ROW(at) = score;
            }
            float top = greatest[0], total = 0, square = 0, target = 0;
            for (int k = 1; k < ROW_LANES; k++) top = greatest[k] > top ? greatest[k] : top;
            for (int64_t column = from; column < to; column += ROW_LANES) {
                float *const at = NAME(score_at)(scores, panel, i, column);
                row u = NAME(exp)(ROW(at) - top);
                ROW(at) = u;
                if (column == 0) u[0] = 0; /* the predicted word is no sample */
                sum += u;
                squares += u * u;
            }
            for (int k = 0; k < ROW_LANES; k++) total += sum[k], square += squares[k], target += targets[k];
            s->loss->effective = LEAST(total * total / square, s->loss->effective);
            if (from == 0) total += scores[i * PANEL];
            s->loss->total += log(total) + top - target;
            for (int64_t column = from; column < to; column += ROW_LANES) {
                float *const at = NAME(score_at)(scores, panel, i, column);
                ROW(at) = s->alpha * (ROW(s->target + column) - ROW(at) / total);
            }
        }
}

#define UPDATE_CASE(J, turns, U) \
    case (turns) * 8 + (J): \
        NAME(update_block)(turns, J, U, n, d, x, x_at, sums, s->outputs + j, error); break;

static INLINE void NAME(update)(const Step *s, const int U, int64_t d, int64_t n, float **inputs, float **x,
                                float **sums, const float *error) {
    int64_t x_at = d;
    if (x != inputs) {
        x_at = 0;
        for (int64_t i = 0; i < n; i++) EACH(u, U) AT(x[i] + u * LANES) = AT(inputs[i] + d + u * LANES);
    }
    for (int64_t j = 0; j < s->m; j += BLOCK_OUTPUTS, error += step_panel(n))
        switch (s->turns * 8 + LEAST(s->m - j, BLOCK_OUTPUTS)) {
            ALL_OUTPUTS(UPDATE_CASE, 0, U)
            ALL_OUTPUTS(UPDATE_CASE, 1, U)
        }
    for (int64_t line = d & -ROW_ALIGNMENT; line < d + U * LANES; line += ROW_ALIGNMENT)
        for (int64_t k = 0; k < s->ahead_count; k++) __builtin_prefetch(s->ahead[k] + line, 0, 2);
}

/* row ← mean of the inputs, change ← 0 */
static INLINE void NAME(pool)(int64_t n, float *const *inputs, int64_t width, float *row, float *change) {
    const float share = 1.0f / (float)n;
    for (int64_t d = 0; d < width; d += LANES) {
        vec sum = AT(inputs[0] + d);
        for (int64_t i = 1; i < n; i++) sum += AT(inputs[i] + d);
        AT(row + d) = sum * share;
        AT(change + d) = (vec){0};
    }
}

static INLINE void NAME(spread)(int64_t n, float *const *inputs, int64_t width, float share, const float *change) {
    for (int64_t i = 0; i < n; i++) {
        float *const input = inputs[i];
        for (int64_t d = 0; d < width; d += LANES) AT(input + d) += share * AT(change + d);
    }
}

void NAME(step)(const Step *s) {
    const int64_t m = s->m, width = s->width, n = s->pooled ? 1 : s->n;
    float *room = s->scratch, **inputs = s->inputs, **sums = inputs, *pooled_row, *pooled_change;
    if (s->pooled) {
        pooled_row = room;
        pooled_change = room + width;
        room += 2 * width;
        NAME(pool)(s->n, s->inputs, width, pooled_row, pooled_change);
        inputs = &pooled_row;
        sums = &pooled_change;
    }

    const int64_t panel = step_panel(n);
    float *const error = room, *gram = NULL;
    room += panel * step_columns(m) / PANEL;
    if (s->turns && n > 1) {
        gram = room;
        room += panel * step_columns(n) / PANEL;
    }
    for (int64_t i = 0; i < n; i += BLOCK_INPUTS) {
        const int64_t I = LEAST(n - i, BLOCK_INPUTS);
        for (int64_t j = 0; j < m; j += BLOCK_OUTPUTS)
            NAME(score)(I, LEAST(m - j, BLOCK_OUTPUTS), inputs + i, s->outputs + j, width,
                        error + j / BLOCK_OUTPUTS * panel + i * PANEL);
        if (gram)
            for (int64_t j = 0; j < i + I - 1; j += BLOCK_OUTPUTS)
                NAME(score)(I, LEAST(i + I - 1 - j, BLOCK_OUTPUTS), inputs + i, inputs + j, width,
                            gram + j / BLOCK_OUTPUTS * panel + i * PANEL);
        if (s->softmax)
            NAME(softmax)(s, i, i + I, panel, error);
        else if (s->weight)
            NAME(logistic)(1, s, i, i + I, panel, error, gram);
        else
            NAME(logistic)(0, s, i, i + I, panel, error, gram);
    }
    if (s->probe) return;

    float **x = inputs;
    if (!s->pooled && (m > BLOCK_OUTPUTS || s->repeats)) { /* an input changes before it is last read: copy it */
        x = (float **)(room + n * UNROLL * LANES);
        for (int64_t i = 0; i < n; i++) x[i] = room + i * UNROLL * LANES;
    }
    int64_t d = 0;
    for (; d + UNROLL * LANES <= width; d += UNROLL * LANES) NAME(update)(s, UNROLL, d, n, inputs, x, sums, error);
    for (; d < width; d += LANES) NAME(update)(s, 1, d, n, inputs, x, sums, error);
    if (s->pooled) NAME(spread)(s->n, s->inputs, width, s->spread, pooled_change);
}

#undef ROW_LANES
#undef vec
#undef lanes
#undef row
#undef bits
#undef NAME
#undef LANES
#undef BLOCK_INPUTS
#undef UNROLL
#undef EACH
#undef AT
#undef ROW
#undef FOLD_1
#undef FOLD_2
#undef FOLD_4
#undef FOLD_8
#undef ALL_OUTPUTS
#undef SCORE_CASE
#undef UPDATE_CASE
