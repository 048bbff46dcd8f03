// Built by the tests, with macros that make it wrong in one way each.
#include "standin.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#ifndef EXPORT
#define EXPORT __attribute__((visibility("default")))
#endif

static atomic_int loads;

__attribute__((constructor)) static void opened(void) { fputs("standin: opened\n", stderr); }

EXPORT int standin_load(void) {
    usleep(50000);
    atomic_fetch_add(&loads, 1);
#ifdef FAILING_LOAD
    return STANDIN_NO_DEVICE;
#else
    return STANDIN_OK;
#endif
}

#ifndef WITHOUT_SUM
EXPORT int standin_sum(const struct standin_job *job, float *result, size_t columns, float scale, bool twice,
                       standin_handle *stream) {
    (void)stream;
    double sum = 0;
    for (size_t i = 0; i < job->rows * columns; ++i)
        sum += job->data[i];
    *result = (float)(sum * job->factor * scale * (twice ? 2 : 1) + job->range.high + job->tag[2]);
    return STANDIN_OK;
}
#endif

EXPORT int standin_fail(int code) { return code; }
EXPORT int64_t standin_loads(void) { return loads; }
EXPORT void standin_reset(uint16_t to) { loads = to; }
