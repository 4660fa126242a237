/* Calls the step repeatedly, each time on other rows of a pool that stays in cache. */

#include "step.h"

enum { MAX_ROWS = 32 }; /* inputs, or outputs, of one call */

/* Takes step k with shapes[k % shape_count] inputs and m outputs; `choices` holds 2 * MAX_ROWS rows of the pool for each
 * shape, the inputs first. Rows have `size` values and begin `stride` floats apart. Returns the loss. */
double take_steps(const char *instruction_set, float *pool, int64_t stride, int64_t size, const int32_t *choices,
                  const int32_t *shapes, int64_t shape_count, int64_t m, int pooled, float alpha, const float *target,
                  const float *offset, float *scratch, int64_t calls) {
    static _Thread_local StepLoss loss __attribute__((aligned(64)));
    float *inputs[MAX_ROWS], *outputs[MAX_ROWS];
    const StepFunctions *const functions = step_choose(instruction_set);
    const int64_t width = (size + functions->lanes - 1) / functions->lanes * functions->lanes; /* as in training */
    Step step = {.width = width, .m = m, .inputs = inputs, .outputs = outputs, .target = target, .offset = offset,
                 .pooled = pooled, .gradient_scale = 1, .alpha = alpha, .scratch = scratch, .loss = &loss};
    loss.total = 0;
    step_loss_start(&loss);
    for (int64_t k = 0, shape = 0; k < calls; k++) {
        const int32_t *chosen = choices + shape * 2 * MAX_ROWS;
        step.n = shapes[shape];
        for (int64_t i = 0; i < step.n; i++) inputs[i] = pool + chosen[i] * stride;
        for (int64_t j = 0; j < m; j++) outputs[j] = pool + chosen[MAX_ROWS + j] * stride;
        functions->step(&step);
        if (++shape == shape_count) shape = 0;
    }
    return step_loss_total(&loss);
}
