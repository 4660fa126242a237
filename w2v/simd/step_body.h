/* The step's source, included by step.c once for each instruction set, which defines
 *
 *     NAME(x)        x with the set's name appended
 *     LANES          floats in a vector register
 *     REGISTERS      vector registers, 16 or 32
 *
 * Outputs are worked on in blocks of 6. With 32 registers 4 × 6 scores need 24 accumulators and 5 operands; the update
 * of 6 outputs × 2 vectors needs 12 old values, 12 new ones and 5 operands. By turns nothing asks for the old ones, and
 * blocks are of up to 8: 2 × 8 scores, 8 × 2 new values. With 16 registers they are 2 × 6 and 6 × 1, turns or not. */

#if REGISTERS == 32
#define BLOCK_INPUTS 4
#define TURN_OUTPUTS PANEL
#define UNROLL 2
#else
#define BLOCK_INPUTS 2
#define TURN_OUTPUTS BLOCK_OUTPUTS
#define UNROLL 1
#endif

#define STRETCH 4 /* vectors */
#define ROW_LANES LEAST(LANES, PANEL) /* scores are worked on a panel's row at a time */
#define vec NAME(vec)
#define lanes NAME(lanes)
#define words NAME(words)
#define row NAME(row)
#define bits NAME(bits)

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
typedef int32_t lanes __attribute__((vector_size(4 * LANES), may_alias));
typedef uint32_t words __attribute__((vector_size(4 * LANES), may_alias));
typedef float row __attribute__((vector_size(4 * ROW_LANES), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * ROW_LANES), may_alias));

#define EACH(index, count) _Pragma("GCC unroll 24") for (int index = 0; index < (count); index++)
#define AT(pointer) (*(vec *)(pointer))
#define ROW(pointer) (*(row *)(pointer))
#define WORDS(pointer) (*(words *)(pointer))

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
        const union { vec both; row of[2]; } rows = {FOLD_8(low, high)};
        EACH(i, 1 + last % 2) ROW(scores + k * LANES + i * PANEL) = rows.of[i];
    }
#endif
}

/* Scores of I × J rows, as I rows of a panel. */
static INLINE void NAME(score_block)(const int I, const int J, float *const *x, float *const *y, int64_t width,
                                     float *scores) {
    vec sums[BLOCK_INPUTS * BLOCK_OUTPUTS];
    const float *inputs[BLOCK_INPUTS], *outputs[TURN_OUTPUTS];
    EACH(i, I) inputs[i] = x[i];
    EACH(j, J) outputs[j] = y[j];
    EACH(k, I * J) sums[k] = (vec){0};
    for (int64_t d = 0; d < width; d += LANES) {
        vec input[BLOCK_INPUTS];
        EACH(i, I) input[i] = AT(inputs[i] + d);
        EACH(j, J) {
            vec output = AT(outputs[j] + d);
            IN_REGISTER(output);
            EACH(i, I) sums[i * J + j] += input[i] * output;
        }
    }
    NAME(sum_lanes)(I, J, sums, scores);
}

#define BLOCK_CASES(macro, ...) \
    macro(1, __VA_ARGS__) macro(2, __VA_ARGS__) macro(3, __VA_ARGS__) macro(4, __VA_ARGS__) macro(5, __VA_ARGS__) \
    macro(6, __VA_ARGS__)
#if REGISTERS == 32
#define TURN_CASES(macro, ...) BLOCK_CASES(macro, __VA_ARGS__) macro(7, __VA_ARGS__) macro(8, __VA_ARGS__)
#else
#define TURN_CASES BLOCK_CASES
#endif

#define SCORE_CASE(J, I) \
    case (I) * 16 + (J): NAME(score_block)(I, J, x, y, width, scores); break;

static NOINLINE void NAME(score)(int64_t I, int64_t J, float *const *x, float *const *y, int64_t width, float *scores) {
    switch (I * 16 + J) {
        TURN_CASES(SCORE_CASE, 1)
        TURN_CASES(SCORE_CASE, 2)
#if BLOCK_INPUTS == 4
        BLOCK_CASES(SCORE_CASE, 3)
        BLOCK_CASES(SCORE_CASE, 4)
#endif
    }
}

/* Adds E Y to `from`, or to `x` where that is NULL, which gives `to`, and Eᵀ X to J output rows, over U vectors of each
 * row. `x` holds the inputs' values before the step; the outputs' are those before the step or, by turns, as the inputs
 * before have moved them. */
static INLINE void NAME(update_block)(const int turns, const int J, const int U, int64_t n, int64_t d, float *const *x,
                                      float *const *from, float *const *to, float *const *y, const float *error) {
    vec before[TURN_OUTPUTS * UNROLL], now[TURN_OUTPUTS * UNROLL];
    EACH(j, J) EACH(u, U) now[j * U + u] = before[j * U + u] = AT(y[j] + d + u * LANES);
    for (int64_t i = 0; i < n; i++) {
        vec input[UNROLL], sum[2][UNROLL]; /* two sums: half the wait for one multiply-add to end before the next */
        EACH(u, U) input[u] = AT(x[i] + d + u * LANES);
        if (from)
            EACH(u, U) sum[0][u] = AT(from[i] + d + u * LANES);
        else
            EACH(u, U) sum[0][u] = input[u];
        EACH(j, J) {
            const vec e = NAME(splat)(error[i * PANEL + j]);
            if (j == 1)
                EACH(u, U) sum[1][u] = e * (turns ? now : before)[j * U + u];
            else
                EACH(u, U) sum[j % 2][u] += e * (turns ? now : before)[j * U + u];
            EACH(u, U) now[j * U + u] += e * input[u];
        }
        if (J > 1) EACH(u, U) sum[0][u] += sum[1][u];
        EACH(u, U) AT(to[i] + d + u * LANES) = sum[0][u];
    }
    EACH(j, J) EACH(u, U) AT(y[j] + d + u * LANES) = now[j * U + u];
}

/* Fetches the lines of the first `ahead` rows that are needed soon which start from value `begin` to `end`. */
static INLINE void NAME(fetch)(const Step *s, int64_t begin, int64_t end, int64_t ahead, int first_level) {
    begin = (begin >> s->bfloat16) + ROW_ALIGNMENT - 1 & -ROW_ALIGNMENT;
    for (int64_t line = begin; line < end >> s->bfloat16; line += ROW_ALIGNMENT)
        for (int64_t k = 0; k < ahead; k++)
            if (first_level)
                __builtin_prefetch(s->ahead[k] + line, 0, 3);
            else
                __builtin_prefetch(s->ahead[k] + line, 0, 2);
}

/* The same over the whole rows, while those that are needed soon are fetched. */
static INLINE void NAME(update)(const int turns, const int J, const Step *s, int64_t n, float *const *x,
                                float *const *from, float *const *to, float *const *y, const float *error,
                                int64_t ahead) {
    const int first_level = into_first_level;
    float *outputs[TURN_OUTPUTS];
    EACH(j, J) outputs[j] = y[j];
    int64_t d = 0;
    for (; d + UNROLL * LANES <= s->width; d += UNROLL * LANES) {
        NAME(update_block)(turns, J, UNROLL, n, d, x, from, to, outputs, error);
        NAME(fetch)(s, d, d + UNROLL * LANES, ahead, first_level);
    }
    for (; d < s->width; d += LANES) {
        NAME(update_block)(turns, J, 1, n, d, x, from, to, outputs, error);
        NAME(fetch)(s, d, d + LANES, ahead, first_level);
    }
}

/* e^x for x ≤ 0, to |x| / 4 + 3 ulp: 2^k · e^r with |r| ≤ ln 2 / 2 and Taylor's polynomial for e^r, by halves, for it is
 * waited for. Below −64 it stays at 1.6e-28: smaller ones become denormal numbers when they are multiplied, and those
 * are slow (bench/NOTES.md). */
static INLINE row NAME(exp)(row x) {
    x = NAME(select)(x < -64.0f, x - x - 64.0f, x);
    const row shift = x - x + 0x1.8p23f, rounded = x * 1.44269504f + shift;
    const row r = x - (rounded - shift) * 0.693147181f, square = r * r;
    const row high = 0.0416666667f + r * 8.33333333e-3f + square * 1.38888889e-3f;
    const row p = 1.0f + r + square * (0.5f + r * 0.166666667f + square * high);
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
static INLINE void NAME(logistic)(const int weighted, const Step *s, int64_t first, int64_t end, int64_t columns,
                                  const float *target, const float *offset, int64_t panel, float *scores,
                                  const float *gram) {
    StepLoss *const loss = s->loss;
    row linear = ROW(loss->linear), product = ROW(loss->product);
    int64_t factors = loss->factors;
    for (int64_t i = first; i < end; i++)
        for (int64_t column = 0; column < columns; column += ROW_LANES) {
            float *const at = scores + column / PANEL * panel + column % PANEL;
            const row t = ROW(target + column);
            row score = ROW(at + i * PANEL) - ROW(offset + column);
            if (gram)
                for (int64_t k = 0; k < i; k++)
                    score += gram[k / TURN_OUTPUTS * panel + i * PANEL + k % TURN_OUTPUTS] * ROW(at + k * PANEL);
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
                if (s->weight) squares += u * u / ROW(s->weight + column);
            }
            for (int k = 0; k < ROW_LANES; k++) total += sum[k], square += squares[k], target += targets[k];
            if (s->weight) s->loss->effective = LEAST(total * total / square, s->loss->effective);
            if (from == 0) total += scores[i * PANEL];
            s->loss->total += log(total) + top - target;
            for (int64_t column = from; column < to; column += ROW_LANES) {
                float *const at = NAME(score_at)(scores, panel, i, column);
                ROW(at) = s->alpha * (ROW(s->target + column) - ROW(at) / total);
            }
        }
}

/* Scores of the rows from `first` to `end` → errors, in place. */
static INLINE void NAME(link)(const Step *s, int64_t first, int64_t end, int64_t columns, const float *target,
                              const float *offset, int64_t panel, float *scores, const float *gram) {
    if (s->softmax)
        NAME(softmax)(s, first, end, panel, scores);
    else if (s->weight)
        NAME(logistic)(1, s, first, end, columns, target, offset, panel, scores, gram);
    else
        NAME(logistic)(0, s, first, end, columns, target, offset, panel, scores, gram);
}

/* row ← mean of the inputs, change ← 0, over U vectors. Returns how many floats they are. */
static INLINE int64_t NAME(pool)(const int U, int64_t d, int64_t n, float *const *inputs, float *row, float *change) {
    vec sum[STRETCH];
    EACH(u, U) sum[u] = AT(inputs[0] + d + u * LANES);
    for (int64_t i = 1; i < n; i++) EACH(u, U) sum[u] += AT(inputs[i] + d + u * LANES);
    EACH(u, U) AT(row + d + u * LANES) = sum[u] * (1.0f / (float)n);
    EACH(u, U) AT(change + d + u * LANES) = (vec){0};
    return U * LANES;
}

/* Adds a share of the change to each input, over U vectors. Returns how many floats they are. */
static INLINE int64_t NAME(spread)(const int U, int64_t d, int64_t n, float *const *inputs, float share,
                                   const float *change) {
    vec part[STRETCH];
    EACH(u, U) part[u] = share * AT(change + d + u * LANES);
    for (int64_t i = 0; i < n; i++) EACH(u, U) AT(inputs[i] + d + u * LANES) += part[u];
    return U * LANES;
}

/* Calls a function of so many vectors over a whole row. */
#define ALONG(width, function, ...)        \
    for (int64_t d = 0; d < (width);)      \
        d += d + STRETCH * LANES <= (width) ? NAME(function)(STRETCH, d, __VA_ARGS__) : NAME(function)(1, d, __VA_ARGS__);

#define UPDATE_CASE(J, turns) \
    case (turns) * 16 + (J): \
        NAME(update)(turns, J, s, n, x, from, to, s->outputs + j, error, j ? 0 : s->ahead_count); break;

static NOINLINE void NAME(move)(const Step *s) {
    const int64_t m = s->m, width = s->width, n = s->pooled ? 1 : s->n, panel = step_panel(n);
    float *room = s->scratch, **inputs = s->inputs, **sums = inputs, *pooled_row, *pooled_change;
    if (s->pooled) {
        pooled_row = room;
        pooled_change = room + width;
        room += 2 * width;
        ALONG(width, pool, s->n, s->inputs, pooled_row, pooled_change)
        inputs = &pooled_row;
        sums = &pooled_change;
    }

    const int64_t block = s->turns ? share(m, TURN_OUTPUTS) : BLOCK_OUTPUTS, blocks = (m + block - 1) / block;
    const int64_t input_block = s->turns ? 2 : share(n, BLOCK_INPUTS), columns = blocks * PANEL;
    const float *target = s->target, *offset = s->offset;
    float *error = room, *gram = NULL;
    room += panel * blocks;
    if (s->turns) {
        place(s, block, columns, room, room + columns);
        target = room;
        offset = room + columns;
        room += 2 * columns;
        if (n > 1) {
            gram = room;
            room += panel * step_columns(n) / PANEL;
        }
    }
    int64_t known = 0; /* rows of errors; the link is slow and, by turns, a chain: scores are multiplied meanwhile */
    const int64_t pace = share(input_block, blocks);
    for (int64_t i = 0; i < n; i += input_block) {
        const int64_t I = LEAST(n - i, input_block);
        float *scores = error + i * PANEL;
        for (int64_t j = 0; j < m; j += block, scores += panel) {
            NAME(score)(I, LEAST(m - j, block), inputs + i, s->outputs + j, width, scores);
            const int64_t first = known;
            known = LEAST(known + pace, i);
            if (first < known) NAME(link)(s, first, known, columns, target, offset, panel, error, gram);
        }
        if (gram)
            for (int64_t j = 0; j < i + I - 1; j += TURN_OUTPUTS)
                NAME(score)(I, LEAST(i + I - 1 - j, TURN_OUTPUTS), inputs + i, inputs + j, width,
                            gram + j / TURN_OUTPUTS * panel + i * PANEL);
    }
    NAME(link)(s, known, n, columns, target, offset, panel, error, gram);

    /* Where an input is read again after it has moved, its old value or its new one stands in scratch meanwhile. */
    float **x = inputs, **held = NULL;
    if (!s->pooled && (s->repeats || m > block)) {
        float **const rows = (float **)(room + n * width);
        for (int64_t i = 0; i < n; i++) rows[i] = room + i * width;
        if (s->repeats) {
            for (int64_t i = 0; i < n; i++) memcpy(rows[i], inputs[i], width * sizeof(float));
            x = rows;
        } else
            held = rows;
    }
    const int turns = s->turns || n == 1; /* the first turn is like any other */
    for (int64_t j = 0; j < m; j += block, error += panel) {
        float **const from = held && j ? held : sums == x ? NULL : sums, **const to = held && j + block < m ? held : sums;
        switch (turns * 16 + LEAST(m - j, block)) {
            BLOCK_CASES(UPDATE_CASE, 0)
            TURN_CASES(UPDATE_CASE, 1)
        }
    }
    if (s->pooled) ALONG(width, spread, s->n, s->inputs, s->spread, pooled_change)
}

/* A row of bfloat16, the high halves of floats, as floats: of every 2 · LANES those of even place before those of odd
 * place, for a step asks no more of the order than that it is the same in all rows. */
static INLINE void NAME(widen)(int64_t width, const float *from, float *to) {
    for (int64_t d = 0; d < width; d += 2 * LANES) {
        const words pair = WORDS(from + d / 2);
        WORDS(to + d) = pair << 16;
        WORDS(to + d + LANES) = pair & 0xffff0000u;
    }
}

/* The way back, each value rounded by chance like step_rounded's: late in a run nearly all changes are smaller than half
 * the distance between two bfloat16, and rounding to the nearest would lose them. */
static INLINE void NAME(narrow)(int64_t width, const float *from, float *to, uint32_t random) {
    words noise = (WORDS(STREAMS) ^ random) * 0x85ebca6bu;
    noise = (noise ^ noise >> 15) * 0xc2b2ae35u;
    for (int64_t d = 0; d < width; d += 2 * LANES, noise += 0x9e3779b9u) {
        const words even = WORDS(from + d) + (noise & 0xffffu), odd = WORDS(from + d + LANES) + (noise >> 16);
        WORDS(to + d / 2) = even >> 16 | (odd & 0xffff0000u);
    }
}

void NAME(step)(const Step *s) {
    if (!s->bfloat16) {
        NAME(move)(s);
        return;
    }
    Step floats = *s;
    float *room = s->scratch + step_pointers(s->n + s->m);
    floats.inputs = (float **)s->scratch;
    floats.outputs = floats.inputs + s->n;
    for (int64_t k = 0; k < s->n + s->m; k++) {
        float *const row = k < s->n ? s->inputs[k] : s->outputs[k - s->n];
        int64_t same = k; /* an input that stands twice is one row */
        if (s->repeats && k < s->n)
            for (same = 0; s->inputs[same] != row;) same++;
        floats.inputs[k] = same < k ? floats.inputs[same] : room;
        if (same < k) continue;
        NAME(widen)(s->width, row, room);
        room += s->width;
    }
    floats.scratch = room;
    NAME(move)(&floats);
    for (int64_t k = 0; k < s->n + s->m; k++)
        NAME(narrow)(s->width, floats.inputs[k], k < s->n ? s->inputs[k] : s->outputs[k - s->n],
                     (uint32_t)(s->random >> 32) + (uint32_t)k * (uint32_t)(s->random | 1));
}

#undef REGISTERS
#undef TURN_OUTPUTS
#undef ROW_LANES
#undef STRETCH
#undef vec
#undef lanes
#undef words
#undef row
#undef bits
#undef NAME
#undef LANES
#undef BLOCK_INPUTS
#undef UNROLL
#undef EACH
#undef AT
#undef ROW
#undef WORDS
#undef FOLD_1
#undef FOLD_2
#undef FOLD_4
#undef FOLD_8
#undef BLOCK_CASES
#undef TURN_CASES
#undef SCORE_CASE
#undef ALONG
#undef UPDATE_CASE
