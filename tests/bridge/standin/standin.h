/* A small library that uses everything a bridge can carry. */
#ifndef STANDIN_H
#define STANDIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum standin_status {
    STANDIN_OK = 0,
    STANDIN_NO_DEVICE = 3,
    STANDIN_LOST = 7,
    STANDIN_NEGATIVE = -2,
};

typedef struct {
    float low, high;
} standin_range;

struct standin_job {
    int32_t rows;
    double factor;
    const float *data;
    uint8_t tag[3];
    standin_range range;
};

typedef struct standin_handle standin_handle;

#ifdef __cplusplus
extern "C" {
#endif

/* Runs once; slow on purpose, so that a second run in another thread would show. */
int standin_load(void);

// Adds up rows * columns numbers, times factor.
int standin_sum(const struct standin_job *job, float *result, size_t columns, float scale, bool twice,
                standin_handle *stream);

/* Returns the code it is given. */
int standin_fail(int code);

/* How many times standin_load ran. */
int64_t standin_loads(void);

/* Sets the number of loads back. */
void standin_reset(uint16_t to);

#ifdef __cplusplus
}
#endif
#endif
