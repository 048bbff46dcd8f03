/* SPDX-License-Identifier: MIT
 *
 * What a lazy library exports besides CK's own functions. Plain C.
 *
 * Every lazy library has its own copy of these functions: a program that uses two of them takes the address
 * from the right one (dlsym on its handle), or sets environment variables, which reach both.
 */
#ifndef CK_JIT_H
#define CK_JIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CK_JIT_EXPORT __attribute__((visibility("default")))

/* Counters of this library in this process, since it was loaded. */
struct ck_jit_stats_t {
    uint64_t hits;          /* blobs taken from a cache directory */
    uint64_t compiles;      /* compiles this process ran to the end with success */
    uint64_t waits;         /* times it waited for another thread or process that had the blob in hand */
    uint64_t failures;      /* blobs that could not be had, once for each attempt */
    double compile_seconds; /* spent in `compiles`, as the clock on the wall saw it */
    uint64_t reserved[8];   /* zero */
};

/* Compiled blobs go to `path` from now on. Null or "" changes nothing. */
CK_JIT_EXPORT void ck_jit_set_cache_dir(const char *path);

/* Copies why the calling thread's latest call could not load a kernel, cut to `size` - 1 bytes and closed
 * with a zero.
 * "" if it could. Returns the length of the whole text; a null buffer or size 0 only asks for that. */
CK_JIT_EXPORT size_t ck_jit_last_error(char *buffer, size_t size);

/* Compiles these blobs (file names as in the manifest) into the cache, in the background. Nothing is loaded.
 * 0: under way, failures will be on stderr. -1: not started, and ck_jit_last_error() says why. */
CK_JIT_EXPORT int ck_jit_prefetch(const char *const *names, size_t count);

/* 0, or -1 for a null pointer. */
CK_JIT_EXPORT int ck_jit_stats(struct ck_jit_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif
