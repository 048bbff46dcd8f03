// What tests ask of the stand-in libamdhip64.so beside HIP itself. Plain C, so that ctypes reaches it too.
//
// Environment:
//   HIP_STANDIN_ARCH           gcnArchName of each device, separated by commas; "none" is no GPU at all.
//                              Default: gfx90a:sramecc+:xnack-
//   HIP_STANDIN_COMPUTE_UNITS  multiProcessorCount of each device. Default: that of the real GPU.
//   HIP_STANDIN_EVENT_MS       hipEventElapsedTime's answer. Default: the time it took.
//   HIP_STANDIN_RECORD         A file to which each launch is appended as one line of JSON.
//
// A launch, here and in the file (on one line):
//   {"sequence": 0, "kernel": "_Z6kernelPii", "device": 0, "arch": "gfx90a:sramecc+:xnack-", "stream": 0,
//    "grid": [1, 1, 1], "block": [64, 1, 1], "dynamic_shared_bytes": 0,
//    "args": [{"name": "n", "kind": "by_value", "offset": 8, "size": 4, "bytes": "2a000000"}]}
// The grid is in blocks. Streams are numbered in the order of creation, 0 is the null stream. The names,
// offsets and sizes of the arguments are those of the code object's metadata, the bytes are in memory order;
// a struct's padding is in them, and nobody but the caller says what is in padding. Launches through
// hipModuleLaunchKernel's "extra" have the whole buffer besides, as "kernarg".
#ifndef HIP_STANDIN_H
#define HIP_STANDIN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Launches since the start or the last reset, recorded or not.
size_t hip_standin_launch_count(void);

// Copies the JSON of one recorded launch and a zero byte, cut off at capacity. Returns its length without the
// zero byte, or 0 when there is no such launch. With capacity 0 the buffer may be NULL.
size_t hip_standin_launch_json(size_t index, char *buffer, size_t capacity);

// Forgets all launches; the next one has sequence 0.
void hip_standin_reset(void);

// 0: launches are checked and counted, but neither kept nor written, so that a benchmark does not time the
// recording.
void hip_standin_set_recording(int on);

// As HIP_STANDIN_RECORD; NULL or "" writes no file. Returns 0, or -1 when the file cannot be opened.
int hip_standin_set_record_file(const char *path);

// As HIP_STANDIN_ARCH. Device code that was loaded for the earlier devices is looked up anew.
void hip_standin_set_arch(const char *arch);

// As HIP_STANDIN_COMPUTE_UNITS; 0 is the default.
void hip_standin_set_compute_units(int count);

#ifdef __cplusplus
}
#endif

#endif
